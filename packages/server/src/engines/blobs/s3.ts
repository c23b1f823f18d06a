/**
 * Blobs in a bucket of an S3-compatible store. A small blob is one PUT, a large one a multipart upload; reads are
 * ranged GETs, resumed after a disconnect. Owns the keys: `blobs/`, the last two characters of the id, and the id.
 * `s3/requests` signs and retries.
 */
import type { Log } from '../../base/log.ts'
import { s3ListKeysMax, s3PartBytes, s3PartsMax, s3RemovalsMax } from '../../limits/storage.ts'
import { readS3Blob } from '../s3/reading.ts'
import { S3Requests } from '../s3/requests.ts'
import { openSpool, type SpooledPart } from '../s3/spool.ts'
import { elementsIn, textIn } from '../s3/xml.ts'
import { EngineError } from '../sql/error.ts'
import { type Blobs, checkBlobId, isBlobId, type ListedBlob } from './blobs.ts'
import { createBlobMeter } from './meter.ts'
import type { StoreAddress } from './store-address.ts'

const prefix = 'blobs/'
const keyOf = (id: string): string => `${prefix}${id.slice(-2)}/${id}`

/** Sends nothing yet: an unavailable store does not keep a server from starting. */
export function openS3Blobs(options: StoreAddress & { readonly spoolFolder: string; readonly log: Log }): Blobs {
  const requests = new S3Requests(options)

  async function writeTo(key: string, body: AsyncIterable<Uint8Array>, bounds: { bytesMax: number; size?: number }) {
    const meter = createBlobMeter({ ...bounds, bytesMax: Math.min(bounds.bytesMax, s3PartBytes * s3PartsMax) })
    const spool = await openSpool(options.spoolFolder, s3PartBytes)
    const parts = createParts(requests, key)
    try {
      for await (const chunk of body) {
        meter.add(chunk)
        for (let at = 0; at < chunk.length; ) {
          // Only now is it certain that this part is not the last.
          if (spool.size === s3PartBytes) await parts.send(() => spool.take())
          at += await spool.add(chunk.subarray(at))
        }
      }
      const written = meter.end()
      if (written.size <= s3PartBytes) await put(requests, key, spool.take())
      else {
        await parts.send(() => spool.take())
        await parts.complete(written.size)
      }
      return written
    } catch (error) {
      await parts.abort()
      throw error
    } finally {
      await spool.close()
    }
  }

  return {
    write(id, body, bounds) {
      checkBlobId(id)
      return writeTo(keyOf(id), body, bounds)
    },
    async read(id, range) {
      checkBlobId(id)
      return { kind: 'stream', stream: await readS3Blob(requests, { id, key: keyOf(id), ...range }) }
    },
    async remove(ids) {
      for (const id of ids) checkBlobId(id)
      // Single deletes, a few at a time: not every store supports bulk deletes.
      const left = ids.values()
      const removeRest = async (): Promise<void> => {
        for (const id of left) await requests.send({ method: 'DELETE', key: keyOf(id), tolerated: ['NoSuchKey'] })
      }
      await Promise.all(Array.from({ length: s3RemovalsMax }, removeRest))
    },
    listOlderThan: (beforeMs) => listOlderThan(requests, beforeMs),
    async removeUnfinished(beforeMs) {
      let removed = 0
      for await (const { key, uploadId } of listUnfinished(requests, beforeMs)) {
        await abortUpload(requests, key, uploadId)
        removed++
      }
      return removed
    },
    findFault: async () => (await requests.probe())?.message ?? null,
    close: async () => requests.close(),
  }
}

const abortUpload = (requests: S3Requests, key: string, uploadId: string): Promise<unknown> =>
  requests.send({ method: 'DELETE', key, query: { uploadId }, tolerated: ['NoSuchUpload'] })

/** Sends a part or a complete blob; returns its ETag. */
async function put(requests: S3Requests, key: string, part: SpooledPart, query: Readonly<Record<string, string>> = {}) {
  const answer = await requests.send({ method: 'PUT', key, query, body: part })
  return answer?.headers.get('etag') ?? ''
}

/** Multipart upload of one blob, created with its first part. One part is in flight at a time. */
function createParts(requests: S3Requests, key: string) {
  const tags: string[] = []
  let uploadId: string | null = null
  let sending: Promise<void> = Promise.resolve()

  async function begin(): Promise<string> {
    const answer = await requests.send({ method: 'POST', key, query: { uploads: '' } })
    const given = textIn(answer?.text ?? '', 'UploadId')
    if (given === null) throw new EngineError('unavailable', 'The store did not return an upload id')
    return given
  }
  async function sendNow(part: SpooledPart): Promise<void> {
    uploadId ??= await begin()
    tags.push(await put(requests, key, part, { partNumber: String(tags.length + 1), uploadId }))
  }
  return {
    /** Waits for the previous part, then starts to send this one while the caller continues. */
    async send(take: () => SpooledPart): Promise<void> {
      await sending
      sending = sendNow(take())
      // A failure while the caller waits for the body is thrown at the next part.
      sending.catch(() => {})
    },
    async complete(size: number): Promise<void> {
      await sending
      const list = tags.map((tag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${tag}</ETag></Part>`).join('')
      const body = `<CompleteMultipartUpload>${list}</CompleteMultipartUpload>`
      const query = { uploadId: uploadId ?? '' }
      const answer = await requests.send({ method: 'POST', key, query, body, tolerated: ['NoSuchUpload'] })
      if (answer !== null) return
      // An attempt whose response was lost may have succeeded.
      const found = await requests.send({ method: 'HEAD', key, tolerated: ['NoSuchKey'] })
      if (Number(found?.headers.get('content-length')) !== size)
        throw new EngineError('unavailable', 'The store has lost an upload')
    },
    /** Never rejects: if it fails, `removeUnfinished` aborts the upload. */
    async abort(): Promise<void> {
      await sending.catch(() => {})
      if (uploadId !== null) await abortUpload(requests, key, uploadId).catch(() => {})
    },
  }
}

async function* listOlderThan(requests: S3Requests, beforeMs: number): AsyncGenerator<ListedBlob> {
  let token: string | null = ''
  while (token !== null) {
    const query: Record<string, string> = { 'list-type': '2', prefix, 'max-keys': String(s3ListKeysMax) }
    if (token !== '') query['continuation-token'] = token
    const page: string = (await requests.send({ method: 'GET', query }))?.text ?? ''
    for (const element of elementsIn(page, 'Contents')) {
      const id = idIn(textIn(element, 'Key') ?? '')
      const modifiedMs = Date.parse(textIn(element, 'LastModified') ?? '')
      if (id !== null && modifiedMs < beforeMs) yield { id, size: Number(textIn(element, 'Size')), modifiedMs }
    }
    token = textIn(page, 'NextContinuationToken')
  }
}

/** Null for a foreign key. */
function idIn(key: string): string | null {
  const id = key.slice(key.lastIndexOf('/') + 1)
  return isBlobId(id) && key === keyOf(id) ? id : null
}

async function* listUnfinished(requests: S3Requests, beforeMs: number) {
  let after: string | null = ''
  while (after !== null) {
    const query: Record<string, string> = { uploads: '', prefix, 'max-uploads': String(s3ListKeysMax) }
    // Pages by key alone: not every store accepts the id of a finished upload as a marker. Several uploads of one key
    // exist only after a lost response; the next call finds those left out.
    if (after !== '') query['key-marker'] = after
    const page: string = (await requests.send({ method: 'GET', query }))?.text ?? ''
    for (const element of elementsIn(page, 'Upload')) {
      const [key, uploadId] = [textIn(element, 'Key') ?? '', textIn(element, 'UploadId') ?? '']
      const begunMs = Date.parse(textIn(element, 'Initiated') ?? '')
      if (idIn(key) !== null && begunMs < beforeMs) yield { key, uploadId }
    }
    after = textIn(page, 'IsTruncated') === 'true' ? textIn(page, 'NextKeyMarker') : null
  }
}
