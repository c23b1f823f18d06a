/** HTTP endpoints of multipart and tus uploads. */
import { z } from 'zod'
import { type Call, type Endpoint, endpoint, type Reply } from '../../../http/endpoint.ts'
import { requiredIntegerParam, textParam } from '../../../http/input/query-schema.ts'
import { completeBodyBytesMax, partNumberMax } from '../../../limits/storage.ts'
import { at, done, open, signedQuery, storedFile, writes } from '../endpoints.ts'

const createBody = z.object({
  key: z.string(),
  contentType: z.string().optional(),
  customMetadata: z.unknown().optional(),
})
const partQuery = z.object({
  uploadId: z.string(),
  partNumber: requiredIntegerParam({ max: partNumberMax }),
  key: z.string(),
  token: textParam('Token of the signed upload URL that created the upload'),
})
const sessionBody = z.object({ uploadId: z.string(), key: z.string() })
const completeBody = sessionBody.extend({
  parts: z
    .array(z.object({ partNumber: z.int(), etag: z.string() }))
    .min(1)
    .max(partNumberMax),
})
const partsQuery = z.object({ key: z.string(), token: textParam('As for `upload-part`') })

export interface UploadHandlers {
  create(call: Call<z.infer<typeof signedQuery>, z.infer<typeof createBody>>): Promise<Reply>
  uploadPart(call: Call<z.infer<typeof partQuery>>): Promise<Reply>
  complete(call: Call<z.infer<typeof signedQuery>, z.infer<typeof completeBody>>): Promise<Reply>
  abort(call: Call<z.infer<typeof signedQuery>, z.infer<typeof sessionBody>>): Promise<Reply>
  parts(call: Call<z.infer<typeof partsQuery>>): Promise<Reply>
  tusOptions(): Reply
  tusCreate(call: Call<z.infer<typeof signedQuery>>): Promise<Reply>
  tusHead(call: Call<z.infer<typeof signedQuery>>): Promise<Reply>
  tusPatch(call: Call<z.infer<typeof signedQuery>>): Promise<Reply>
  tusTerminate(call: Call<z.infer<typeof signedQuery>>): Promise<Reply>
}

const tus = { ...open, tag: 'Storage: tus', query: signedQuery, scope: writes } as const

export function uploadEndpoints(handlers: UploadHandlers): Endpoint[] {
  return [
    endpoint({
      ...open,
      name: 'storage.multipartCreate',
      method: 'POST',
      paths: at('/multipart/create'),
      summary: 'Create a multipart upload',
      scope: writes,
      query: signedQuery,
      body: createBody,
      replies: {
        200: { description: 'The upload', schema: z.object({ uploadId: z.string(), key: z.string() }) },
      },
      errors: [404, 409],
      handle: handlers.create,
    }),
    endpoint({
      ...open,
      name: 'storage.uploadPart',
      method: 'POST',
      paths: at('/multipart/upload-part'),
      summary: 'Upload a part',
      description:
        'With a signed URL that has a maximum size, a positive `Content-Length` is required and counts against it.',
      scope: writes,
      query: partQuery,
      accepts: { contentType: 'application/octet-stream' },
      replies: {
        200: { description: 'The part', schema: z.object({ partNumber: z.number(), etag: z.string() }) },
      },
      errors: [404, 413],
      handle: handlers.uploadPart,
    }),
    endpoint({
      ...open,
      name: 'storage.multipartComplete',
      method: 'POST',
      paths: at('/multipart/complete'),
      summary: 'Complete a multipart upload',
      scope: writes,
      query: signedQuery,
      body: completeBody,
      bodyBytesMax: completeBodyBytesMax,
      replies: { 200: { description: 'The stored file', schema: storedFile } },
      errors: [404],
      handle: handlers.complete,
    }),
    endpoint({
      ...open,
      name: 'storage.multipartAbort',
      method: 'POST',
      paths: at('/multipart/abort'),
      summary: 'Abort a multipart upload',
      scope: writes,
      query: signedQuery,
      body: sessionBody,
      replies: { 200: { description: 'Aborted', schema: done } },
      errors: [404],
      handle: handlers.abort,
    }),
    endpoint({
      ...open,
      name: 'storage.multipartParts',
      method: 'GET',
      paths: at('/uploads/:uploadId/parts'),
      summary: 'List the parts of an upload',
      scope: writes,
      query: partsQuery,
      replies: {
        200: {
          description: 'The parts, ordered by number',
          schema: z.object({
            uploadId: z.string(),
            key: z.string(),
            parts: z.array(z.object({ partNumber: z.number(), size: z.number(), etag: z.string() })),
          }),
        },
      },
      errors: [404],
      handle: handlers.parts,
    }),
    endpoint({
      tag: tus.tag,
      name: 'storage.tusOptions',
      method: 'OPTIONS',
      paths: at('/uploads/tus'),
      summary: 'tus capabilities',
      credentials: 'public',
      rateLimit: null,
      replies: { 204: { description: '`Tus-Version` and `Tus-Extension`' } },
      handle: handlers.tusOptions,
    }),
    endpoint({
      ...tus,
      name: 'storage.tusCreate',
      method: 'POST',
      paths: at('/uploads/tus'),
      summary: 'Create a resumable upload (tus)',
      description:
        'Requires `Upload-Length`, and `Upload-Metadata` with `key` and optionally `contentType` and `customMetadata` (JSON).',
      replies: { 201: { description: '`Location` of the upload' } },
      errors: [404, 409, 412, 413],
      handle: handlers.tusCreate,
    }),
    endpoint({
      ...tus,
      name: 'storage.tusHead',
      method: 'HEAD',
      paths: at('/uploads/tus/:uploadId'),
      summary: 'Get the offset of a resumable upload (tus)',
      replies: { 200: { description: '`Upload-Offset` and `Upload-Length`' } },
      errors: [404, 412],
      handle: handlers.tusHead,
    }),
    endpoint({
      ...tus,
      name: 'storage.tusPatch',
      method: 'PATCH',
      paths: at('/uploads/tus/:uploadId'),
      summary: 'Append to a resumable upload (tus)',
      accepts: { contentType: 'application/offset+octet-stream' },
      replies: { 204: { description: 'The new `Upload-Offset`; the last chunk stores the file' } },
      errors: [404, 409, 412, 413, 415],
      handle: handlers.tusPatch,
    }),
    endpoint({
      ...tus,
      name: 'storage.tusTerminate',
      method: 'DELETE',
      paths: at('/uploads/tus/:uploadId'),
      summary: 'Abort a resumable upload (tus)',
      replies: { 204: { description: 'Aborted' } },
      errors: [404, 412],
      handle: handlers.tusTerminate,
    }),
  ]
}
