/**
 * Resumable uploads (tus 1.0): chunks that continue where a broken connection, a restarted server or a closed page left
 * off.
 */
import type { Core } from '../core/core.ts'
import { failure, isPlinthError, PlinthError } from '../core/error.ts'
import type { LocalValues } from '../core/local-values.ts'
import { backoffMs, type Reply, type Request } from '../core/transport.ts'

export interface TusUpload {
  readonly core: Core
  readonly values: LocalValues
  /** `/api/storage/{bucket}/uploads/tus`. */
  readonly path: string
  readonly data: Blob
  /** `Upload-Metadata` by name. */
  readonly metadata: Readonly<Record<string, string>>
  /** Under which an unfinished upload is found again; null for data that cannot be recognized. */
  readonly fingerprint: string | null
  readonly signal: AbortSignal | undefined
  readonly onProgress: (sent: number) => void
}

/** Bytes of a request: what a broken connection sends again at most. */
const chunkBytes = 5 * 1024 * 1024
/** How long a chunk may take, in milliseconds: about 45 KB a second. */
const chunkTimeoutMs = 120_000
/** Failures in a row without progress after which an upload is given up; with backoff about four minutes. */
const failuresMax = 14

const version = { 'Tus-Resumable': '1.0.0' }

const base64 = (text: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(text)))

export async function uploadInChunks(upload: TusUpload): Promise<void> {
  const { data, values, fingerprint, onProgress } = upload
  let location = fingerprint && (await values.get(fingerprint))
  let offset = location ? await findOffset(upload, location) : null
  for (let failures = 0; offset === null || offset < data.size; )
    try {
      const reply: Reply =
        location && offset !== null ? await sendChunk(upload, location, offset) : await create(upload)
      location ||= reply.headers.get('location')
      offset = Number(reply.headers.get('upload-offset'))
      failures = 0
      onProgress(offset)
      if (fingerprint) await values.set(fingerprint, location)
    } catch (error) {
      if (!isPlinthError(error) || !(error.retryable || error.status === 409) || ++failures > failuresMax) throw error
      await wait(error.retryAfterMs ?? backoffMs(failures), upload.signal)
      if (location) offset = await findOffset(upload, location)
      // The server has given the upload up.
      if (offset === null) location = null
    }
  if (fingerprint) await values.set(fingerprint, null)
}

/** Creates the upload, with its first chunk in the same request. */
function create({ core, path, data, metadata, signal }: TusUpload): Promise<Reply> {
  const encoded = Object.entries(metadata).map(([name, value]) => `${name} ${base64(value)}`)
  const headers = { 'Upload-Length': `${data.size}`, 'Upload-Metadata': encoded.join() }
  return send(core, 'POST', path, data.slice(0, chunkBytes), headers, signal)
}

const sendChunk = ({ core, data, signal }: TusUpload, location: string, offset: number): Promise<Reply> =>
  send(core, 'PATCH', location, data.slice(offset, offset + chunkBytes), { 'Upload-Offset': `${offset}` }, signal)

function send(
  core: Core,
  method: string,
  path: string,
  raw: Blob,
  headers: Record<string, string>,
  signal: AbortSignal | undefined,
): Promise<Reply> {
  const type = { 'Content-Type': 'application/offset+octet-stream' }
  const request: Request = { raw, headers: { ...version, ...type, ...headers }, signal, timeout: chunkTimeoutMs }
  return core.transport.send(method, path, request)
}

/** How many bytes the server has; null if it no longer knows the upload. */
async function findOffset({ core, signal, data }: TusUpload, location: string): Promise<number | null> {
  try {
    const { headers } = await core.transport.send('HEAD', location, { headers: version, signal, retries: failuresMax })
    const isSame = headers.get('upload-length') === `${data.size}`
    return isSame ? Number(headers.get('upload-offset')) : null
  } catch (error) {
    if (error instanceof PlinthError && [401, 403, 404, 410].includes(error.status)) return null
    throw error
  }
}

const wait = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(failure('aborted', 'The upload was aborted', signal?.reason))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop)
    if (signal?.aborted) stop()
  })
