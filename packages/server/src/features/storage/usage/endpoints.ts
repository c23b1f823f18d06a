/** Endpoints of the dashboard: what buckets and their users store, and the quotas on it. */

import type { Caller } from '../../../access/caller.ts'
import { permitsScope } from '../../../access/service-keys.ts'
import { z } from '../../../base/schemas/z.ts'
import { notFound } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { cursorParam, limitParam } from '../../../http/input/query-schema.ts'
import { createListCursors } from '../../../http/replies/list-cursor.ts'
import { json } from '../../../http/replies/reply.ts'
import { dashboardPath } from '../../../http/security/dashboard-access.ts'
import { usersOfUsageDefault, usersOfUsageMax } from '../../../limits/storage.ts'
import { type BucketDefinitions, readScope, scopeOf } from '../buckets.ts'
import type { UsageReport } from './report.ts'

export interface UsageEndpointsDeps {
  readonly usage: UsageReport
  readonly buckets: () => BucketDefinitions
  /** Seals cursors. */
  readonly secret: string
}

const path = `${dashboardPath}/api/storage-usage`
const common = { tag: 'Dashboard', credentials: 'admin', rateLimit: 'global', isSecret: true, method: 'GET' } as const

const count = z.number()
const quota = z.number().nullable()
const usageSchema = z.object({ files: count, bytes: count })
const bucketSchema = usageSchema.extend({
  bucket: z.string(),
  releasedBytes: count,
  variantBytes: count,
  quotaBytes: quota,
  userQuotaBytes: quota,
})
const userSchema = usageSchema.extend({
  userId: z.string(),
  email: z.string().nullable(),
  displayName: z.string().nullable(),
})
const ofUserSchema = usageSchema.extend({ bucket: z.string(), userQuotaBytes: quota })

/** Names of users are for those who may read users. */
const usersScope = 'auth:admin:*:read'

const permits = (caller: Caller, scope: string): boolean =>
  caller.kind === 'service' && permitsScope(caller.scopes, scope)

/** The declared buckets that a caller may read, in the order of the configuration. */
const readableBuckets = (buckets: BucketDefinitions, caller: Caller) =>
  [...buckets.values()].filter(({ name }) => permits(caller, scopeOf(name, 'read')))

export function createUsageEndpoints({ usage, buckets, secret }: UsageEndpointsDeps): readonly Endpoint[] {
  const cursors = createListCursors<[bytes: number, userId: string]>(secret, 'storage usage')
  return [
    endpoint({
      ...common,
      name: 'dashboard.bucketUsage',
      paths: [path],
      summary: 'Get the files and bytes of the buckets that the caller may read',
      replies: { 200: { description: 'By bucket', schema: z.object({ buckets: z.array(bucketSchema) }) } },
      async handle({ caller }) {
        const readable = readableBuckets(buckets(), caller)
        const counted = await usage.ofBuckets(readable.map(({ name }) => name))
        return json({
          buckets: readable.map(({ name, quotaBytes, userQuotaBytes }) => ({
            bucket: name,
            ...counted.get(name),
            quotaBytes,
            userQuotaBytes,
          })),
        })
      },
    }),
    endpoint({
      ...common,
      name: 'dashboard.bucketUsers',
      paths: [`${path}/buckets/:bucket`],
      summary: 'List the users with the most bytes in a bucket',
      scope: readScope,
      query: z.object({
        limit: limitParam({ max: usersOfUsageMax, default: usersOfUsageDefault, description: 'Users' }),
        cursor: cursorParam(),
      }),
      replies: {
        200: {
          description: 'The users',
          schema: z.object({ users: z.array(userSchema), cursor: z.string().nullable() }),
        },
      },
      errors: [404],
      async handle({ caller, params: { bucket = '' }, query: { limit, cursor } }) {
        if (!buckets().has(bucket)) throw notFound('Bucket')
        const after = cursor === undefined ? null : cursors.parse([bucket], cursor)
        const found = await usage.ofUsers(bucket, { after, limit: limit + 1, withNames: permits(caller, usersScope) })
        const users = found.slice(0, limit)
        const last = found.length > limit ? users.at(-1) : undefined
        return json({ users, cursor: last ? cursors.format([bucket], [last.bytes, last.userId]) : null })
      },
    }),
    endpoint({
      ...common,
      name: 'dashboard.userUsage',
      paths: [`${path}/users/:userId`],
      summary: 'Get the files and bytes of a user in the buckets that the caller may read',
      scope: () => usersScope,
      replies: { 200: { description: 'By bucket', schema: z.object({ buckets: z.array(ofUserSchema) }) } },
      async handle({ caller, params: { userId = '' } }) {
        const readable = readableBuckets(buckets(), caller)
        const found = await usage.ofUser(
          userId,
          readable.map(({ name }) => name),
        )
        const quotas = new Map(readable.map(({ name, userQuotaBytes }) => [name, userQuotaBytes]))
        return json({ buckets: found.map((one) => ({ ...one, userQuotaBytes: quotas.get(one.bucket) ?? null })) })
      },
    }),
  ]
}
