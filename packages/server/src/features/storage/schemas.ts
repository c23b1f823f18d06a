/** Schemas, paths and scopes that several endpoints of storage share, and the public representation of a file. */
import { z } from '../../base/schemas/z.ts'
import { textParam } from '../../http/input/query-schema.ts'
import { batchKeysMax } from '../../limits/storage.ts'

/** `common` requires credentials; `open` accepts public rules or signed URLs in place of them. */
export const common = { tag: 'Storage', credentials: 'user', rateLimit: 'storage' } as const
export const open = { ...common, credentials: 'rules' } as const

export const at = (rest = ''): string[] => [`/api/storage/:bucket${rest}`]

export const noQuery = z.object({})
export const signedQuery = z.object({
  token: textParam('Token of a signed upload URL; replaces credentials'),
  key: textParam('The key of the signed upload URL'),
})

export const keySchema = z.string().meta({ description: 'Key of the file' })
export const keysSchema = z.array(z.string()).min(1).max(batchKeysMax)

export const doneSchema = z.object({ ok: z.literal(true) })
export const fileSchema = z.object({
  key: z.string(),
  size: z.number(),
  httpMetadata: z.object({ contentType: z.string() }),
  customMetadata: z.record(z.string(), z.string()),
  uploaded: z.string(),
  contentType: z.string(),
  etag: z.string(),
  uploadedBy: z.string().nullable(),
})

/** A file as the API shows it. */
export type File = z.infer<typeof fileSchema>

/** What of an object a file shows. */
interface ShownObject extends Pick<File, 'key' | 'size' | 'contentType' | 'customMetadata' | 'etag' | 'uploadedBy'> {
  readonly createdAt: string
}

/** An object as `fileSchema` describes it. */
export const toFile = (object: ShownObject): File => {
  const { key, size, contentType, customMetadata, createdAt, etag, uploadedBy } = object
  const httpMetadata = { contentType }
  return { key, size, httpMetadata, customMetadata, uploaded: createdAt, contentType, etag, uploadedBy }
}
