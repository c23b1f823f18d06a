/** HTTP endpoints that create signed URLs. */
import { z } from '../../base/schemas/z.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'
import { batchKeysMax } from '../../limits/storage.ts'
import { type Buckets, readScope, writeScope } from './buckets.ts'
import { at, common, keySchema, keysSchema, noQuery } from './schemas.ts'
import type { SignedUrls } from './signed-urls.ts'

export interface SignedUrlEndpointsDeps {
  readonly buckets: Buckets
  readonly signedUrls: SignedUrls
}

const expiresIn = z.string().optional().meta({ description: 'Lifetime, for example `30m` or `1h`; at most `7d`' })
const maxFileSize = z
  .union([z.string(), z.number()])
  .optional()
  .meta({ description: 'Number of bytes, or a size such as `5MB`' })
const urlSchema = z.object({ url: z.string(), expiresAt: z.string() })

const post = { ...common, isSecret: true, method: 'POST', query: noQuery, errors: [403, 404] } as const

export const createSignedUrlEndpoints = ({ buckets, signedUrls }: SignedUrlEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    ...post,
    name: 'storage.signedUrl',
    paths: at('/signed-url'),
    summary: 'Create a signed download URL',
    scope: readScope,
    changes: false,
    body: z.object({ key: keySchema, expiresIn }),
    replies: { 200: { description: 'The URL', schema: urlSchema } },
    handle: async (call) => json(await signedUrls.read(buckets.resolve(call), call, call.body)),
  }),
  endpoint({
    ...post,
    name: 'storage.signedUrls',
    paths: at('/signed-urls'),
    summary: 'Create several signed download URLs',
    description: `At most ${batchKeysMax} keys; keys of files that do not exist are omitted.`,
    scope: readScope,
    changes: false,
    body: z.object({ keys: keysSchema, expiresIn }),
    replies: {
      200: { description: 'The URLs', schema: z.object({ urls: z.array(urlSchema.extend({ key: z.string() })) }) },
    },
    handle: async (call) => json({ urls: await signedUrls.readMany(buckets.resolve(call), call, call.body) }),
  }),
  endpoint({
    ...post,
    name: 'storage.signedUploadUrl',
    paths: at('/signed-upload-url'),
    summary: 'Create a signed upload URL for one upload',
    scope: writeScope,
    body: z.object({ key: keySchema, expiresIn, maxFileSize }),
    replies: { 200: { description: 'The URL', schema: urlSchema.extend({ maxFileSize: z.number().optional() }) } },
    handle: async (call) => json(await signedUrls.write(buckets.resolve(call), call, call.body)),
  }),
]
