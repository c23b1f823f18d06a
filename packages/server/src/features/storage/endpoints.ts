/** HTTP endpoints of files: upload, download, list, delete and metadata. `admission` and `objects` authorize them. */

import { required } from '../../access/check.ts'
import type { Clock } from '../../base/clock.ts'
import { z } from '../../base/schemas/z.ts'
import type { Blobs } from '../../engines/blobs/blobs.ts'
import { imageFits, imageFormats } from '../../engines/images/images.ts'
import { ApiError, badRequest, invalidField } from '../../errors.ts'
import { type Call, type Endpoint, endpoint } from '../../http/endpoint.ts'
import { cursorParam, integerParam, limitParam, textParam, wordParam } from '../../http/input/query-schema.ts'
import { fitItems, itemBytesMax } from '../../http/replies/large-responses.ts'
import { createListCursors } from '../../http/replies/list-cursor.ts'
import { json } from '../../http/replies/reply.ts'
import { listLimitDefault, listLimitMax } from '../../limits/api.ts'
import { batchKeysMax, imageSideMax } from '../../limits/storage.ts'
import { type Buckets, deleteScope, readScope, writeScope } from './buckets.ts'
import { sendContent } from './download.ts'
import { type ImageVariants, variantOf } from './images.ts'
import { parseKey } from './keys.ts'
import { type Metadata, parseMetadata } from './metadata.ts'
import type { StoredObject } from './object-rows.ts'
import type { Objects } from './objects.ts'
import {
  at,
  common,
  doneSchema,
  fileSchema,
  keySchema,
  keysSchema,
  noQuery,
  open,
  signedQuery,
  toFile,
} from './schemas.ts'
import type { Admission } from './uploads/admission.ts'
import type { Upload } from './uploads/upload.ts'

export interface FileEndpointsDeps {
  readonly buckets: Buckets
  readonly admission: Admission
  readonly objects: Objects
  readonly upload: Upload
  readonly imageVariants: ImageVariants
  readonly blobs: Blobs
  /** Seals cursors. */
  readonly secret: string
  /** Largest JSON response, in bytes. */
  readonly responseBytes: () => number
  readonly clock: Clock
}

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
const metadataBody = z
  .unknown()
  .refine((value) => typeof value === 'object' && value !== null, 'must be an object')
  .meta({ type: 'object', additionalProperties: { type: 'string' } }) as z.ZodType<object>
const uploadForm = z.object({
  file: z.string().meta({ format: 'binary' }),
  key: keySchema,
  metadata: z.string().optional().meta({ description: 'JSON object of strings' }),
})
const listedSchema = fileSchema.pick({ key: true, size: true, uploaded: true, contentType: true, etag: true })

const keyOf = ({ params }: Pick<Call, 'params'>): string => parseKey(params.key ?? '')

export const createFileEndpoints = (deps: FileEndpointsDeps): readonly Endpoint[] => [
  listEndpoint(deps),
  uploadEndpoint(deps),
  downloadEndpoint(deps),
  ...deleteEndpoints(deps),
  ...metadataEndpoints(deps),
]

function listEndpoint({ buckets, objects, secret, responseBytes }: FileEndpointsDeps): Endpoint {
  const cursors = createListCursors<[key: string]>(secret, 'storage list')
  return endpoint({
    ...common,
    name: 'storage.list',
    method: 'GET',
    answersViewedUser: true,
    paths: at(),
    summary: 'List files',
    description: 'In order of their keys; only files that the read rule allows.',
    scope: readScope,
    query: listQuery,
    replies: {
      200: {
        description: 'A page of files',
        schema: z.object({
          objects: z.array(listedSchema),
          files: z.array(listedSchema).describe('Identical to `objects`'),
          truncated: z.boolean(),
          cursor: z.string().nullable(),
        }),
      },
    },
    errors: [403, 404],
    async handle(call) {
      const bucketCall = buckets.resolve(call)
      const bucket = bucketCall.bucket.name
      const { limit, cursor } = call.query
      const prefix = parsePrefix(call.query.prefix ?? '')
      const after = cursor === undefined ? null : cursors.parse([bucket, prefix], cursor)[0]
      const { objects: found, next } = await objects.list(bucketCall, { prefix, after, limit })
      // Each object appears in the response twice (`objects` and `files`).
      const { items: shown, isCut } = await fitItems(found.map(toListed), itemBytesMax(responseBytes()) / 2)
      const last = isCut ? (shown.at(-1)?.key ?? null) : next
      return json({
        objects: shown,
        files: shown,
        truncated: last !== null,
        cursor: last === null ? null : cursors.format([bucket, prefix], [last]),
      })
    },
  })
}

const toListed = ({ key, size, createdAt, contentType, etag }: StoredObject) => ({
  key,
  size,
  uploaded: createdAt,
  contentType,
  etag,
})

/** Throws 400 for text that not every engine stores. */
function parsePrefix(text: string): string {
  if (!text.isWellFormed() || text.includes('\0')) throw invalidField('prefix', 'pattern', 'must be text without NUL')
  return text
}

const uploadEndpoint = ({ admission, upload }: FileEndpointsDeps): Endpoint =>
  endpoint({
    ...open,
    name: 'storage.upload',
    method: 'POST',
    paths: at('/upload'),
    summary: 'Upload a file',
    description: 'A signed upload URL (`token` and `key`) replaces credentials.',
    scope: writeScope,
    query: signedQuery,
    accepts: { contentType: 'multipart/form-data', schema: uploadForm },
    replies: { 201: { description: 'The stored file', schema: fileSchema } },
    errors: [404, 413, 415],
    handle: async (call) => json(toFile(await upload(await admission.authorizeUpload(call), call)), 201),
  })

const downloadEndpoint = ({ admission, objects, imageVariants, blobs, clock }: FileEndpointsDeps): Endpoint =>
  endpoint({
    ...open,
    name: 'storage.download',
    method: 'GET',
    answersViewedUser: true,
    paths: at('/:key+'),
    summary: 'Download a file',
    description:
      'Supports range and conditional requests. Slashes in the key may be escaped as `%2F`, which addresses every key unambiguously.',
    scope: readScope,
    query: downloadQuery,
    replies: {
      200: { description: 'The bytes' },
      206: { description: 'The requested ranges' },
      304: { description: 'The client’s copy is current' },
    },
    errors: [404, 412, 416],
    async handle(call) {
      const key = keyOf(call)
      const { call: reader, token } = await admission.authorizeDownload(call, key)
      const variant = variantOf(call.query)
      if (variant && !reader.bucket.images) throw badRequest('Image transformations are not enabled for this bucket')
      const object = await objects.getReadable(reader, key, token ?? undefined)
      const content = variant ? await imageVariants.derive(reader.bucket, object, variant, call) : object
      const cache = token ? { cacheSeconds: Math.floor((token.expires - clock.now()) / 1000) } : {}
      return sendContent(blobs, content, { method: call.method, headers: call.headers, ...cache })
    },
  })

const deleteEndpoints = ({ buckets, objects }: FileEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    ...common,
    name: 'storage.delete',
    method: 'DELETE',
    paths: at('/:key+'),
    summary: 'Delete a file',
    scope: deleteScope,
    query: noQuery,
    replies: { 200: { description: 'Deleted', schema: doneSchema } },
    errors: [403, 404],
    async handle(call) {
      await objects.remove(buckets.resolve(call), keyOf(call))
      return json({ ok: true })
    },
  }),
  endpoint({
    ...common,
    name: 'storage.deleteBatch',
    method: 'POST',
    paths: at('/delete-batch'),
    summary: 'Delete several files',
    description: `At most ${batchKeysMax} keys; the delete rule is evaluated for each file.`,
    scope: deleteScope,
    query: noQuery,
    body: z.object({ keys: keysSchema }),
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
    async handle(call) {
      const bucket = buckets.resolve(call)
      required(bucket.permissions.delete(), bucket.caller)
      const keys = [...new Set(call.body.keys)]
      const results = await Promise.all(
        keys.map(async (key) => ({ key, error: await findError(() => objects.remove(bucket, parseKey(key))) })),
      )
      return json({
        deleted: results.filter(({ error }) => error === null).map(({ key }) => key),
        failed: results.filter(({ error }) => error !== null),
      })
    },
  }),
]

/** The message of an error that the client caused; null without one. Any other error is thrown. */
async function findError(work: () => Promise<void>): Promise<string | null> {
  try {
    await work()
    return null
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) return error.message
    throw error
  }
}

const metadataEndpoints = ({ buckets, objects }: FileEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    ...common,
    name: 'storage.metadata',
    method: 'GET',
    answersViewedUser: true,
    paths: at('/:key+/metadata'),
    summary: 'Get file metadata',
    scope: readScope,
    query: noQuery,
    replies: { 200: { description: 'The stored file', schema: fileSchema } },
    errors: [403, 404],
    handle: async (call) => json(toFile(await objects.getReadable(buckets.resolve(call), keyOf(call)))),
  }),
  endpoint({
    ...common,
    name: 'storage.updateMetadata',
    method: 'PATCH',
    paths: at('/:key+/metadata'),
    summary: 'Update custom metadata',
    scope: writeScope,
    query: noQuery,
    body: metadataBody,
    replies: { 200: { description: 'The stored file', schema: fileSchema } },
    errors: [403, 404],
    async handle(call) {
      const changes = parseMetadata(call.body, 'customMetadata')
      const merge = (known: object) => parseMetadata({ ...known, ...changes }, 'customMetadata')
      const { object, isReadable } = await objects.setMetadata(buckets.resolve(call), keyOf(call), merge)
      return json(isReadable ? toFile(object) : toSentMetadata(object, changes))
    },
  }),
]

/**
 * The response to a metadata update by a caller without read permission: the fields that the request contained, as it
 * has sent them. Hooks may have made others of them.
 */
const toSentMetadata = ({ key, createdAt }: StoredObject, customMetadata: Metadata) => ({
  key,
  customMetadata,
  uploaded: createdAt,
})
