/** HTTP endpoints of storage, without multipart and tus uploads (`uploads/upload-endpoints.ts`). */
import { z } from 'zod'
import { imageFits, imageFormats } from '../../engines/images/images.ts'
import { type Call, type Endpoint, endpoint, type Params, type Reply } from '../../http/endpoint.ts'
import { cursorParam, integerParam, limitParam, textParam, wordParam } from '../../http/input/query-schema.ts'
import { listLimitDefault, listLimitMax } from '../../limits/api.ts'
import { batchKeysMax, imageSideMax } from '../../limits/storage.ts'
import { scopeOf } from './buckets.ts'

export const signedQuery = z.object({
  token: textParam('Token of a signed upload URL; replaces credentials'),
  key: textParam('The key of the signed upload URL'),
})
const downloadQuery = z.object({
  token: textParam('Token of a signed download URL; replaces credentials'),
  width: integerParam({ max: imageSideMax, description: 'Images: size in pixels' }),
  height: integerParam({ max: imageSideMax, description: 'Images: size in pixels' }),
  fit: wordParam(imageFits, 'Images: how the image is fitted into width and height; default `cover`'),
  format: wordParam([...imageFormats, 'jpg'], 'Images: output format; default: the stored format'),
})
const listQuery = z.object({
  prefix: textParam('Prefix of the keys'),
  limit: limitParam({ default: listLimitDefault, max: listLimitMax }),
  cursor: cursorParam(),
})
const noQuery = z.object({})

const key = z.string().meta({ description: 'Key of the file' })
const expiresIn = z.string().optional().meta({ description: 'Lifetime, for example `30m` or `1h`; at most `7d`' })
const keys = z.array(z.string()).min(1).max(batchKeysMax)
const keysBody = z.object({ keys })
const signedUrlBody = z.object({ key, expiresIn })
const signedUrlsBody = z.object({ keys, expiresIn })
const signedUploadBody = z.object({
  key,
  expiresIn,
  maxFileSize: z
    .union([z.string(), z.number()])
    .optional()
    .meta({ description: 'Number of bytes, or a size such as `5MB`' }),
})
const metadataBody = z
  .unknown()
  .refine((value) => typeof value === 'object' && value !== null, 'must be an object')
  .meta({ type: 'object', additionalProperties: { type: 'string' } }) as z.ZodType<object>
const uploadForm = z.object({
  file: z.string().meta({ format: 'binary' }),
  key,
  metadata: z.string().optional().meta({ description: 'JSON object of strings' }),
})

export const storedFile = z.object({
  key: z.string(),
  size: z.number(),
  httpMetadata: z.object({ contentType: z.string() }),
  customMetadata: z.record(z.string(), z.string()),
  uploaded: z.string(),
  contentType: z.string(),
  etag: z.string(),
  uploadedBy: z.string().nullable(),
})
const listed = storedFile.pick({ key: true, size: true, uploaded: true, contentType: true, etag: true })
const signedUrl = z.object({ url: z.string(), expiresAt: z.string() })
export const done = z.object({ ok: z.literal(true) })

export const reads = (params: Params): string => scopeOf(params.bucket, 'read')
export const writes = (params: Params): string => scopeOf(params.bucket, 'write')
const deletes = (params: Params): string => scopeOf(params.bucket, 'delete')

export const at = (rest = ''): string[] => [`/api/storage/:bucket${rest}`]

export interface StorageHandlers {
  upload(call: Call<z.infer<typeof signedQuery>>): Promise<Reply>
  download(call: Call<z.infer<typeof downloadQuery>>): Promise<Reply>
  list(call: Call<z.infer<typeof listQuery>>): Promise<Reply>
  delete(call: Call): Promise<Reply>
  deleteBatch(call: Call<unknown, z.infer<typeof keysBody>>): Promise<Reply>
  metadata(call: Call): Promise<Reply>
  updateMetadata(call: Call<unknown, object>): Promise<Reply>
  signedUrl(call: Call<unknown, z.infer<typeof signedUrlBody>>): Promise<Reply>
  signedUrls(call: Call<unknown, z.infer<typeof signedUrlsBody>>): Promise<Reply>
  signedUploadUrl(call: Call<unknown, z.infer<typeof signedUploadBody>>): Promise<Reply>
}

/** `rules` for endpoints that accept public rules or signed URLs in place of credentials. */
const common = { tag: 'Storage', credentials: 'user', rateLimit: 'storage' } as const
export const open = { ...common, credentials: 'rules' } as const

export function storageEndpoints(handlers: StorageHandlers): Endpoint[] {
  return [
    endpoint({
      ...common,
      name: 'storage.list',
      method: 'GET',
      paths: at(),
      summary: 'List files',
      description: 'In order of their keys; only files that the read rule allows.',
      scope: reads,
      query: listQuery,
      replies: {
        200: {
          description: 'A page of files',
          schema: z.object({
            objects: z.array(listed),
            files: z.array(listed).describe('Identical to `objects`'),
            truncated: z.boolean(),
            cursor: z.string().nullable(),
          }),
        },
      },
      errors: [403, 404],
      handle: handlers.list,
    }),
    endpoint({
      ...open,
      name: 'storage.upload',
      method: 'POST',
      paths: at('/upload'),
      summary: 'Upload a file',
      description: 'A signed upload URL (`token` and `key`) replaces credentials.',
      scope: writes,
      query: signedQuery,
      accepts: { contentType: 'multipart/form-data', schema: uploadForm },
      replies: { 201: { description: 'The stored file', schema: storedFile } },
      errors: [404, 413, 415],
      handle: handlers.upload,
    }),
    endpoint({
      ...open,
      name: 'storage.download',
      method: 'GET',
      paths: at('/:key+'),
      summary: 'Download a file',
      description:
        'Supports range and conditional requests. Slashes in the key may be escaped as `%2F`, which addresses every key unambiguously.',
      scope: reads,
      query: downloadQuery,
      replies: {
        200: { description: 'The bytes' },
        206: { description: 'The requested ranges' },
        304: { description: 'The client’s copy is current' },
      },
      errors: [404, 412, 416],
      handle: handlers.download,
    }),
    endpoint({
      ...common,
      name: 'storage.delete',
      method: 'DELETE',
      paths: at('/:key+'),
      summary: 'Delete a file',
      scope: deletes,
      query: noQuery,
      replies: { 200: { description: 'Deleted', schema: done } },
      errors: [403, 404],
      handle: handlers.delete,
    }),
    endpoint({
      ...common,
      name: 'storage.deleteBatch',
      method: 'POST',
      paths: at('/delete-batch'),
      summary: 'Delete several files',
      description: `At most ${batchKeysMax} keys; the delete rule is evaluated for each file.`,
      scope: deletes,
      query: noQuery,
      body: keysBody,
      replies: {
        200: {
          description: 'The deleted keys, and the keys that failed with their errors',
          schema: z.object({
            deleted: z.array(z.string()),
            failed: z.array(z.object({ key: z.string(), error: z.string() })),
          }),
        },
      },
      errors: [403, 404],
      handle: handlers.deleteBatch,
    }),
    endpoint({
      ...common,
      name: 'storage.metadata',
      method: 'GET',
      paths: at('/:key+/metadata'),
      summary: 'Get file metadata',
      scope: reads,
      query: noQuery,
      replies: { 200: { description: 'The stored file', schema: storedFile } },
      errors: [403, 404],
      handle: handlers.metadata,
    }),
    endpoint({
      ...common,
      name: 'storage.updateMetadata',
      method: 'PATCH',
      paths: at('/:key+/metadata'),
      summary: 'Update custom metadata',
      scope: writes,
      query: noQuery,
      body: metadataBody,
      replies: { 200: { description: 'The stored file', schema: storedFile } },
      errors: [403, 404],
      handle: handlers.updateMetadata,
    }),
    endpoint({
      ...common,
      name: 'storage.signedUrl',
      isSecret: true,
      method: 'POST',
      paths: at('/signed-url'),
      summary: 'Create a signed download URL',
      scope: reads,
      query: noQuery,
      body: signedUrlBody,
      replies: { 200: { description: 'The URL', schema: signedUrl } },
      errors: [403, 404],
      handle: handlers.signedUrl,
    }),
    endpoint({
      ...common,
      name: 'storage.signedUrls',
      isSecret: true,
      method: 'POST',
      paths: at('/signed-urls'),
      summary: 'Create several signed download URLs',
      description: `At most ${batchKeysMax} keys; keys of files that do not exist are omitted.`,
      scope: reads,
      query: noQuery,
      body: signedUrlsBody,
      replies: {
        200: {
          description: 'The URLs',
          schema: z.object({ urls: z.array(signedUrl.extend({ key: z.string() })) }),
        },
      },
      errors: [403, 404],
      handle: handlers.signedUrls,
    }),
    endpoint({
      ...common,
      name: 'storage.signedUploadUrl',
      isSecret: true,
      method: 'POST',
      paths: at('/signed-upload-url'),
      summary: 'Create a signed upload URL for one upload',
      scope: writes,
      query: noQuery,
      body: signedUploadBody,
      replies: { 200: { description: 'The URL', schema: signedUrl.extend({ maxFileSize: z.number().optional() }) } },
      errors: [403, 404],
      handle: handlers.signedUploadUrl,
    }),
  ]
}
