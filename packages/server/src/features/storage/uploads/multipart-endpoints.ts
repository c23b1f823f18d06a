/** HTTP endpoints of multipart uploads. */
import { z } from '../../../base/schemas/z.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { requiredIntegerParam, textParam } from '../../../http/input/query-schema.ts'
import { json } from '../../../http/replies/reply.ts'
import { completeBodyBytesMax, partNumberMax } from '../../../limits/storage.ts'
import { writeScope } from '../buckets.ts'
import { at, doneSchema, fileSchema, open, signedQuery, toFile } from '../schemas.ts'
import type { Admission } from './admission.ts'
import type { Multipart } from './multipart.ts'

export interface MultipartEndpointsDeps {
  readonly admission: Admission
  readonly multipart: Multipart
}

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

const uploadSchema = z.object({ uploadId: z.string(), key: z.string() })
const partSchema = z.object({ partNumber: z.number(), etag: z.string() })
const partsSchema = uploadSchema.extend({ parts: z.array(partSchema.extend({ size: z.number() })) })

const upload = { ...open, scope: writeScope } as const

export const createMultipartEndpoints = (deps: MultipartEndpointsDeps): readonly Endpoint[] => [
  createEndpoint(deps),
  ...partEndpoints(deps),
  ...closingEndpoints(deps),
]

const createEndpoint = ({ admission, multipart }: MultipartEndpointsDeps): Endpoint =>
  endpoint({
    ...upload,
    name: 'storage.multipartCreate',
    method: 'POST',
    paths: at('/multipart/create'),
    summary: 'Create a multipart upload',
    query: signedQuery,
    body: createBody,
    replies: { 200: { description: 'The upload', schema: uploadSchema } },
    errors: [404, 409],
    async handle(call) {
      const { id, key } = await multipart.create(await admission.authorizeUpload(call), call.body)
      return json({ uploadId: id, key })
    },
  })

const partEndpoints = ({ admission, multipart }: MultipartEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    ...upload,
    name: 'storage.uploadPart',
    method: 'POST',
    paths: at('/multipart/upload-part'),
    summary: 'Upload a part',
    description:
      'With a signed URL that has a maximum size, a positive `Content-Length` is required and counts against it.',
    query: partQuery,
    accepts: { contentType: 'application/octet-stream' },
    replies: { 200: { description: 'The part', schema: partSchema } },
    errors: [404, 413],
    async handle(call) {
      const { number, etag } = await multipart.uploadPart(await admission.authorizeUpload(call), call, call.query)
      return json({ partNumber: number, etag })
    },
  }),
  endpoint({
    ...upload,
    name: 'storage.multipartParts',
    method: 'GET',
    paths: at('/uploads/:uploadId/parts'),
    summary: 'List the parts of an upload',
    query: partsQuery,
    replies: { 200: { description: 'The parts, ordered by number', schema: partsSchema } },
    errors: [404],
    async handle(call) {
      const { uploadId = '' } = call.params
      const { key } = call.query
      const parts = await multipart.parts(await admission.authorizeUpload(call), uploadId, key)
      return json({
        uploadId,
        key,
        parts: parts.map(({ number, size, etag }) => ({ partNumber: number, size, etag })),
      })
    },
  }),
]

const closingEndpoints = ({ admission, multipart }: MultipartEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    ...upload,
    name: 'storage.multipartComplete',
    method: 'POST',
    paths: at('/multipart/complete'),
    summary: 'Complete a multipart upload',
    query: signedQuery,
    body: completeBody,
    bodyBytesMax: completeBodyBytesMax,
    replies: { 200: { description: 'The stored file', schema: fileSchema } },
    errors: [404],
    handle: async (call) => json(toFile(await multipart.complete(await admission.authorizeUpload(call), call.body))),
  }),
  endpoint({
    ...upload,
    name: 'storage.multipartAbort',
    method: 'POST',
    paths: at('/multipart/abort'),
    summary: 'Abort a multipart upload',
    query: signedQuery,
    body: sessionBody,
    replies: { 200: { description: 'Aborted', schema: doneSchema } },
    errors: [404],
    async handle(call) {
      await multipart.abort(await admission.authorizeUpload(call), call.body)
      return json({ ok: true })
    },
  }),
]
