/**
 * Resumable uploads by tus 1.0 with creation, expiration and termination. The body is stored in chunks, so that a lost
 * connection costs at most the current chunk.
 */
import { required } from '../../../access/check.ts'
import type { Clock } from '../../../base/clock.ts'
import {
  ApiError,
  badRequest,
  conflict,
  invalidField,
  invalidToken,
  payloadTooLarge,
  unsupportedMediaType,
  unsupportedVersion,
} from '../../../errors.ts'
import type { Call, Reply } from '../../../http/endpoint.ts'
import { empty } from '../../../http/replies/reply.ts'
import { partNumberMax, tusChunkBytes, uploadIdleMs } from '../../../limits/storage.ts'
import { keyInPath, parseKey } from '../keys.ts'
import { parseMetadataText } from '../metadata.ts'
import type { SignedQuery, UploadAuthorization } from './admission.ts'
import { normalizeType } from './content.ts'
import { bodyOf, toApiError, type UploadParts } from './upload.ts'
import type { OpenUpload, Uploads } from './uploads.ts'

const version = '1.0.0'
const extensions = 'creation,expiration,termination'
const bodyType = 'application/offset+octet-stream'

export interface Tus {
  options(): Reply
  create(authorization: UploadAuthorization, call: Call<SignedQuery>): Promise<Reply>
  head(authorization: UploadAuthorization, call: Call): Promise<Reply>
  patch(authorization: UploadAuthorization, call: Call): Promise<Reply>
  terminate(authorization: UploadAuthorization, call: Call): Promise<Reply>
}

/** Throws 412 unless the client declares the supported version. */
function checkVersion(headers: Headers): void {
  if (headers.get('tus-resumable') === version) return
  throw unsupportedVersion(`Tus-Resumable must be ${version}`, { 'Tus-Version': version })
}

/** Parses a header with a number of bytes. Throws 400. */
function parseBytes(headers: Headers, name: string): number {
  const text = headers.get(name)
  if (text === null) throw invalidField(name, 'required', 'is required')
  const bytes = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(bytes)) throw invalidField(name, 'type', 'must be an integer number of bytes')
  return bytes
}

/** Parses `Upload-Metadata`. Throws 400 for values that are not base64 of UTF-8 and for duplicate names. */
function parseTusMetadata(text: string | null): ReadonlyMap<string, string> {
  const members = new Map<string, string>()
  for (const pair of text?.trim() ? text.split(',') : []) {
    const [name = '', encoded = '', ...rest] = pair.trim().split(' ')
    const bytes = Buffer.from(encoded, 'base64')
    const value = bytes.toString()
    const isGood =
      name !== '' && rest.length === 0 && bytes.equals(Buffer.from(value)) && /^[\w+/-]*={0,2}$/.test(encoded)
    if (!isGood || members.has(name))
      throw invalidField('Upload-Metadata', 'pattern', 'must be a list of unique names with base64 values')
    members.set(name, value)
  }
  return members
}

export function createTus(shared: UploadParts, uploads: Uploads, clock: Clock): Tus {
  const { store, objects, blobRegistry, admission } = shared

  const reply = (status: number, headers: Record<string, string> = {}): Reply =>
    empty(status, { 'Tus-Resumable': version, 'Cache-Control': 'no-store', ...headers })
  const expiry = (): Record<string, string> => ({
    'Upload-Expires': new Date(clock.now() + uploadIdleMs).toUTCString(),
  })

  async function finish(authorization: UploadAuthorization, upload: OpenUpload): Promise<void> {
    try {
      await uploads.finish(authorization, upload, (parts) => parts)
    } catch (error) {
      // A client that reconnects may send HEAD while its last chunk is still being processed: one of the two requests
      // finishes the upload.
      const { done } = await uploads.get(authorization, upload.id, 'tus', null)
      if (done === 0) throw error
    }
  }

  /** Appends the body in chunks; returns the new offset. */
  async function receive(authorization: UploadAuthorization, upload: OpenUpload, call: Call): Promise<number> {
    const length = upload.length as number
    const chunkBytes = Math.max(tusChunkBytes, Math.ceil(length / (partNumberMax / 2)))
    const reader = createChunkReader(
      bodyOf(call, length - upload.received, { tooLarge: () => payloadTooLarge(length) }),
    )
    try {
      return await append(authorization, upload, call, { reader, chunkBytes })
    } finally {
      reader.close()
    }
  }

  async function append(
    authorization: UploadAuthorization,
    upload: OpenUpload,
    { rawBody }: Pick<Call, 'rawBody'>,
    { reader, chunkBytes }: { reader: ChunkReader; chunkBytes: number },
  ): Promise<number> {
    const length = upload.length as number
    const scope = { bucket: authorization.call.bucket, owner: upload.uploader }
    const ends = upload.received + (rawBody.declaredBytes ?? length)
    let offset = upload.received
    while (await reader.hasMore()) {
      if (offset === length) throw payloadTooLarge(length)
      const bytesMax = Math.min(chunkBytes, length - offset)
      const aboutBytes = Math.max(0, Math.min(bytesMax, ends - offset))
      const blob = await blobRegistry
        .stage(reader.next(bytesMax), { bytesMax, aboutBytes }, scope)
        .catch((error: unknown) => {
          throw toApiError(error)
        })
      // A body longer than the declared length is a different file: its last chunk must not complete this one.
      if (offset + blob.size === length && ((await reader.hasMore()) || isTooLarge(reader.failure()))) {
        await blobRegistry.abandon(blob.id)
        throw payloadTooLarge(length)
      }
      offset = await uploads.append(authorization, upload, offset, blob)
    }
    const failure = reader.failure()
    if (failure !== null)
      throw failure instanceof ApiError
        ? failure
        : badRequest('The body ended before Content-Length bytes were received')
    return offset
  }

  return {
    options: () => empty(204, { 'Tus-Resumable': version, 'Tus-Version': version, 'Tus-Extension': extensions }),

    async create(authorization, { headers, params, query }) {
      checkVersion(headers)
      required(authorization.call.permissions.insert(), authorization.call.caller)
      const length = parseBytes(headers, 'Upload-Length')
      const metadata = parseTusMetadata(headers.get('upload-metadata'))
      const text = metadata.get('key')
      if (text === undefined) throw invalidField('key', 'required', 'is required in Upload-Metadata')
      const key = parseKey(text)
      if (authorization.ticket && key !== authorization.ticket.key) throw invalidToken()
      const customMetadata = parseMetadataText(metadata.get('customMetadata'), 'customMetadata')
      await admission.checkTicket(authorization.ticket)
      if (length > authorization.bytesMax) {
        await store.database.write((tx) => admission.redeemTicket(tx, authorization.ticket))
        throw payloadTooLarge(authorization.bytesMax)
      }
      await objects.checkOverwrite(authorization.call, key)
      const type = normalizeType(metadata.get('contentType') ?? metadata.get('filetype'))
      const upload = await uploads.open(authorization, { key, kind: 'tus', type, customMetadata, length })
      const signed = query.token === undefined ? '' : `?token=${query.token}&key=${keyInPath(key)}`
      const location = `/api/storage/${encodeURIComponent(params.bucket ?? '')}/uploads/tus/${upload.id}${signed}`
      return reply(201, { Location: location, ...expiry() })
    },

    async head(authorization, { headers, params }) {
      checkVersion(headers)
      const upload = await uploads.get(authorization, params.uploadId ?? '', 'tus', null)
      // All bytes received but not finished: the server stopped in between, and a client that sees the full offset does
      // not return.
      if (upload.received === upload.length && upload.done === 0) await finish(authorization, upload)
      return reply(200, {
        'Upload-Offset': String(upload.received),
        'Upload-Length': String(upload.length),
        ...expiry(),
      })
    },

    async patch(authorization, call) {
      const { headers, params, rawBody } = call
      checkVersion(headers)
      if (headers.get('content-type') !== bodyType) throw unsupportedMediaType(bodyType)
      const offset = parseBytes(headers, 'Upload-Offset')
      const upload = await uploads.get(authorization, params.uploadId ?? '', 'tus', null)
      if (offset !== upload.received) throw conflict(`Upload-Offset mismatch: expected ${upload.received}`)
      const length = upload.length as number
      if (offset + (rawBody.declaredBytes ?? 0) > length) throw payloadTooLarge(length)
      const received = await receive(authorization, upload, call)
      await admission.checkActive(authorization)
      if (received === length && upload.done === 0) await finish(authorization, upload)
      return reply(204, { 'Upload-Offset': String(received), ...expiry() })
    },

    async terminate(authorization, { headers, params }) {
      checkVersion(headers)
      await uploads.abort(authorization, await uploads.get(authorization, params.uploadId ?? '', 'tus', null))
      return reply(204)
    },
  }
}

const isTooLarge = (failure: unknown): boolean => failure instanceof ApiError && failure.status === 413

interface ChunkReader {
  /** Waits for the next byte; false at the end of the body and after a failure. */
  hasMore(): Promise<boolean>
  /** At most `bytesMax` of the next bytes; ends early at the end of the body and after a failure. */
  next(bytesMax: number): AsyncIterable<Uint8Array>
  /** The error that ended the body, or null. */
  failure(): unknown
  /** Stops reading the body. */
  close(): void
}

function createChunkReader(body: AsyncGenerator<Uint8Array>): ChunkReader {
  let left = new Uint8Array()
  let failure: unknown = null
  let ended = false

  async function hasMore(): Promise<boolean> {
    while (left.length === 0 && !ended) {
      try {
        const { done, value } = await body.next()
        if (done) ended = true
        else left = value as Uint8Array<ArrayBuffer>
      } catch (error) {
        failure = error
        ended = true
      }
    }
    return left.length > 0
  }

  return {
    hasMore,
    failure: () => failure,
    close: () => void body.return(undefined).catch(() => {}),
    async *next(bytesMax) {
      for (let size = 0; size < bytesMax && (await hasMore()); ) {
        const chunk = left.subarray(0, bytesMax - size)
        left = left.subarray(chunk.length)
        size += chunk.length
        yield chunk
      }
    },
  }
}
