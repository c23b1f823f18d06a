/** Uploads in numbered parts: SPEC's "Multipart". Rows and rules are `uploads`' and `objects`'. */
import { required } from '../../../access/check.ts'
import { badRequest, invalidToken, payloadTooLarge } from '../../../errors.ts'
import type { Call } from '../../../http/endpoint.ts'
import { partBytesMax } from '../../../limits/storage.ts'
import { parseKey } from '../keys.ts'
import { parseMetadata } from '../metadata.ts'
import type { StoredObject } from '../objects.ts'
import type { Writer } from './admission.ts'
import { normalizeType } from './content.ts'
import { asRefusal, bodyOf, type UploadParts } from './upload.ts'
import { chooseParts, type OpenUpload, type Part, type Uploads } from './uploads.ts'

export interface CreateBody {
  readonly key: string
  readonly contentType?: string | undefined
  readonly customMetadata?: unknown
}

export interface Multipart {
  create(writer: Writer, body: CreateBody): Promise<OpenUpload>
  /** Takes a part from the request's body. */
  uploadPart(writer: Writer, call: Call, query: { uploadId: string; partNumber: number; key: string }): Promise<Part>
  complete(writer: Writer, body: CompleteBody): Promise<StoredObject>
  abort(writer: Writer, body: { uploadId: string; key: string }): Promise<void>
  parts(writer: Writer, uploadId: string, key: string): Promise<readonly Part[]>
}

export interface CompleteBody {
  readonly uploadId: string
  readonly key: string
  readonly parts: readonly { readonly partNumber: number; readonly etag: string }[]
}

export function createMultipart(shared: UploadParts, uploads: Uploads): Multipart {
  const { objects, blobRows, admission } = shared

  /** A signed URL is for its one key, in the body as in the query. */
  function keyFor({ grant }: Writer, key: string): string {
    if (grant && key !== grant.key) throw invalidToken()
    return parseKey(key)
  }

  /** The bytes a part may have. Throws where SPEC wants a length, or it is too large for any part. */
  function boundPart(upload: OpenUpload, writer: Writer, length: number | null): number {
    if (upload.budget !== null && !length) throw badRequest('A signed upload needs a positive Content-Length')
    const bytesMax = Math.min(partBytesMax, writer.bytesMax)
    // Beyond a budget it is the budget that refuses, and closes the upload.
    if (upload.budget === null && length !== null && length > bytesMax) throw payloadTooLarge(bytesMax)
    return bytesMax
  }

  return {
    async create(writer, { key: text, contentType, customMetadata }) {
      const { call, grant } = writer
      required(call.permissions.insert(), call.caller)
      const key = keyFor(writer, text)
      const metadata = parseMetadata(customMetadata ?? {}, 'customMetadata')
      await admission.checkGrant(grant)
      await objects.checkOverwrite(call, key)
      const type = normalizeType(contentType)
      return uploads.open(writer, { key, kind: 'multipart', type, customMetadata: metadata, length: null })
    },

    async uploadPart(writer, call, { uploadId, partNumber: number, key }) {
      const upload = await uploads.get(writer, uploadId, 'multipart', keyFor(writer, key))
      const length = call.rawBody.declaredBytes
      const bytesMax = boundPart(upload, writer, length)
      await uploads.reserve(writer, upload, length ?? 0)
      const size = length === null ? {} : { size: length }
      const holder = { bucket: writer.call.bucket, owner: upload.uploader }
      const blob = await blobRows
        .stage(bodyOf(call, bytesMax), { bytesMax, ...size }, holder)
        .catch((error: unknown) => {
          throw asRefusal(error)
        })
      return uploads.setPart(writer, upload, number, blob)
    },

    async complete(writer, { uploadId, key, parts }) {
      required(writer.call.permissions.insert(), writer.call.caller)
      const upload = await uploads.get(writer, uploadId, 'multipart', keyFor(writer, key))
      return uploads.finish(writer, upload, (there) => chooseParts(parts, there))
    },

    async abort(writer, { uploadId, key }) {
      await uploads.abort(writer, await uploads.get(writer, uploadId, 'multipart', keyFor(writer, key)))
    },

    parts: async (writer, uploadId, key) =>
      uploads.parts(await uploads.get(writer, uploadId, 'multipart', keyFor(writer, key))),
  }
}
