/**
 * Reports of what buckets and users store, from the counts that `blobs/usage` keeps: each reads one row per bucket or
 * user that it names, whatever the number of files.
 */
import { isStorableText } from '../../../base/text/text.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { total } from '../blobs/usage.ts'
import type { Store } from '../migrations.ts'

/** The email and display name of each of these users that exists. */
export type UserNames = (
  ids: readonly string[],
) => Promise<readonly { readonly id: string; readonly email: string | null; readonly displayName: string | null }[]>

export interface Usage {
  readonly files: number
  /** Unfinished uploads included, as quotas count them. */
  readonly bytes: number
}

export interface BucketUsage extends Usage {
  /** Of files that were replaced or deleted, until the sweeper removes them. */
  readonly releasedBytes: number
  /** Of image variants that are kept. */
  readonly variantBytes: number
}

export interface UserUsage extends Usage {
  readonly userId: string
  /** Null for a user without a name or an account, and where names are not wanted. */
  readonly email: string | null
  readonly displayName: string | null
}

export interface UsagePage {
  /** The last user of the previous page; null for the first page. */
  readonly after: readonly [bytes: number, userId: string] | null
  readonly limit: number
  readonly withNames: boolean
}

export interface UsageReport {
  /** By bucket. */
  ofBuckets(buckets: readonly string[]): Promise<ReadonlyMap<string, BucketUsage>>
  /** The users with the most bytes in a bucket. Users without bytes are left out. */
  ofUsers(bucket: string, page: UsagePage): Promise<readonly UserUsage[]>
  /** What one user has in each of these buckets; buckets without bytes and files of the user are left out. */
  ofUser(userId: string, buckets: readonly string[]): Promise<readonly (Usage & { readonly bucket: string })[]>
}

interface UsageRow {
  readonly bucket: string
  readonly owner: string
  readonly bytes: number
  readonly files: number
}

const none: BucketUsage = { files: 0, bytes: 0, releasedBytes: 0, variantBytes: 0 }

export function createUsageReport({ database, tables }: Store, namesOf: UserNames): UsageReport {
  const within = (buckets: readonly string[]) => database.dialect.inList(sql`bucket`, buckets, 'text')

  return {
    async ofBuckets(buckets) {
      if (buckets.length === 0) return new Map()
      const [counted, released, kept] = await Promise.all([
        database.all<UsageRow>(
          sql`SELECT bucket, bytes, files FROM ${tables.usage} WHERE owner = ${total} AND ${within(buckets)}`,
        ),
        database.all<UsageRow>(
          sql`SELECT bucket, bytes FROM ${tables.garbage} WHERE owner = ${total} AND ${within(buckets)}`,
        ),
        database.all<UsageRow>(sql`SELECT bucket, bytes FROM ${tables.kept} WHERE ${within(buckets)}`),
      ])
      const usage = new Map(buckets.map((bucket) => [bucket, none]))
      const add = (bucket: string, some: Partial<BucketUsage>) =>
        usage.set(bucket, { ...(usage.get(bucket) ?? none), ...some })
      for (const { bucket, bytes, files } of counted) add(bucket, { bytes, files })
      for (const { bucket, bytes } of released) add(bucket, { releasedBytes: bytes })
      for (const { bucket, bytes } of kept) add(bucket, { variantBytes: bytes })
      return usage
    },

    async ofUsers(bucket, { after, limit, withNames }) {
      const rest = after === null ? sql`` : sql` AND (bytes, owner) < (${after[0]}, ${after[1]})`
      const rows = await database.all<UsageRow>(sql`SELECT owner, bytes, files FROM ${tables.usage}
        WHERE bucket = ${bucket} AND owner <> '' AND bytes > 0${rest} ORDER BY bytes DESC, owner DESC LIMIT ${limit}`)
      const known = rows.length === 0 || !withNames ? [] : await namesOf(rows.map(({ owner }) => owner))
      const names = new Map(known.map((name) => [name.id, name]))
      return rows.map(({ owner, bytes, files }) => {
        const { email = null, displayName = null } = names.get(owner) ?? {}
        return { userId: owner, email, displayName, bytes, files }
      })
    },

    async ofUser(userId, buckets) {
      if (buckets.length === 0 || !isStorableText(userId)) return []
      return database.all<UsageRow>(sql`SELECT bucket, bytes, files FROM ${tables.usage}
        WHERE owner = ${userId} AND ${within(buckets)} AND (bytes > 0 OR files > 0) ORDER BY bucket`)
    },
  }
}
