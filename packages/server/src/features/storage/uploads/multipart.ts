/** Multipart uploads. `uploads` stores sessions and parts, `objects` evaluates access rules. */
import { required } from '../../../access/check.ts'
import { badRequest, invalidToken, payloadTooLarge } from '../../../errors.ts'
import type { Call } from '../../../http/endpoint.ts'
import { partBytesMax } from '../../../limits/storage.ts'
import { parseKey } from '../keys.ts'
import { parseMetadata } from '../metadata.ts'
import type { StoredObject } from '../object-rows.ts'
import type { UploadAuthorization } from './admission.ts'
import { normalizeType } from './content.ts'
import { chooseParts, type Parts } from './parts.ts'
import { bodyOf, toApiError, type UploadDeps } from './upload.ts'
import type { OpenUpload, Part } from './upload-rows.ts'
import type { Uploads } from './uploads.ts'

export interface CreateBody {
  readonly key: string
  readonly contentType?: string | undefined
  readonly customMetadata?: unknown
}

export interface Multipart {
  create(authorization: UploadAuthorization, body: CreateBody): Promise<OpenUpload>
  /** Stores the request's body as a part. */
  uploadPart(
    authorization: UploadAuthorization,
    call: Call,
    query: { uploadId: string; partNumber: number; key: string },
  ): Promise<Part>
  complete(authorization: UploadAuthorization, body: CompleteBody): Promise<StoredObject>
  abort(authorization: UploadAuthorization, body: { uploadId: string; key: string }): Promise<void>
  parts(authorization: UploadAuthorization, uploadId: string, key: string): Promise<readonly Part[]>
}

export interface CompleteBody {
  readonly uploadId: string
  readonly key: string
  readonly parts: readonly { readonly partNumber: number; readonly etag: string }[]
}

export function createMultipart(shared: UploadDeps, uploads: Uploads, parts: Parts): Multipart {
  const { objects, blobRegistry, admission } = shared

  /** A signed URL permits one key, which the body must name as well. */
  function keyFor({ ticket }: UploadAuthorization, key: string): string {
    if (ticket && key !== ticket.key) throw invalidToken()
    return parseKey(key)
  }

  /** Largest part in bytes. Throws if a required length is missing, or the length exceeds the bound of all parts. */
  function boundPart(upload: OpenUpload, authorization: UploadAuthorization, length: number | null): number {
    if (upload.budget !== null && !length)
      throw badRequest('Uploading a part with a signed URL requires a positive Content-Length')
    const bytesMax = Math.min(partBytesMax, authorization.bytesMax)
    // With a budget, `reserve` rejects excess bytes and closes the upload.
    if (upload.budget === null && length !== null && length > bytesMax) throw payloadTooLarge(bytesMax)
    return bytesMax
  }

  return {
    async create(authorization, { key: text, contentType, customMetadata }) {
      const { call, ticket } = authorization
      required(call.permissions.insert(), call.caller)
      const key = keyFor(authorization, text)
      const metadata = parseMetadata(customMetadata ?? {}, 'customMetadata')
      await admission.checkTicket(ticket)
      await objects.checkOverwrite(call, key)
      const type = normalizeType(contentType)
      return uploads.open(authorization, { key, kind: 'multipart', type, customMetadata: metadata, length: null })
    },

    async uploadPart(authorization, call, { uploadId, partNumber: number, key }) {
      const upload = await uploads.get(authorization, uploadId, 'multipart', keyFor(authorization, key))
      const length = call.rawBody.declaredBytes
      const bytesMax = boundPart(upload, authorization, length)
      await uploads.reserve(authorization, upload, length ?? 0)
      const size = length === null ? {} : { size: length }
      const scope = { bucket: authorization.call.bucket, owner: upload.uploader }
      const blob = await blobRegistry
        .stage(bodyOf(call, bytesMax), { bytesMax, ...size }, scope)
        .catch((error: unknown) => {
          throw toApiError(error)
        })
      return parts.set(authorization, upload, number, blob)
    },

    async complete(authorization, { uploadId, key, parts: listed }) {
      required(authorization.call.permissions.insert(), authorization.call.caller)
      const upload = await uploads.get(authorization, uploadId, 'multipart', keyFor(authorization, key))
      return uploads.finish(authorization, upload, (stored) => chooseParts(listed, stored))
    },

    async abort(authorization, { uploadId, key }) {
      await uploads.abort(
        authorization,
        await uploads.get(authorization, uploadId, 'multipart', keyFor(authorization, key)),
      )
    },

    parts: async (authorization, uploadId, key) =>
      uploads.parts(await uploads.get(authorization, uploadId, 'multipart', keyFor(authorization, key))),
  }
}
