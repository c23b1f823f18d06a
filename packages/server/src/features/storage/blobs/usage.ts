/**
 * Bytes and files of each bucket and each of its users, updated in the transactions that change them, and the quotas
 * on bytes.
 */
import type { BucketDefinition } from '../../../access/definition.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { quotaExceeded } from '../../../errors.ts'
import type { Store } from '../migrations.ts'

/** What is added (or removed, if negative) for an owner; null for uploads by a service key. */
export interface UsageChange {
  readonly owner: string | null
  readonly bytes: number
  /** Stored files; 0 for parts of open uploads. */
  readonly files: number
}

/** The quota-related part of a bucket. Buckets that are no longer declared have no quotas. */
export type QuotaBucket = Pick<BucketDefinition, 'name' | 'quotaBytes' | 'userQuotaBytes'>

/** Stands for a bucket that is no longer declared. */
export const withoutQuota = (name: string): QuotaBucket => ({ name, quotaBytes: null, userQuotaBytes: null })

/** Owner of a bucket's total; no user id is empty. */
export const total = ''

/** Applies changes to one bucket's counts. Throws 413 if added bytes exceed a quota; removals never fail. */
export async function changeUsage(
  tx: Transaction,
  { tables }: Store,
  bucket: QuotaBucket,
  changes: readonly UsageChange[],
): Promise<void> {
  const sums = new Map<string, Pick<UsageChange, 'bytes' | 'files'>>()
  for (const { owner, bytes, files } of changes)
    for (const name of owner === null ? [total] : [total, owner]) {
      const sum = sums.get(name) ?? { bytes: 0, files: 0 }
      sums.set(name, { bytes: sum.bytes + bytes, files: sum.files + files })
    }
  // Sorted, so that concurrent transactions cannot deadlock.
  for (const [owner, { bytes, files }] of [...sums].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (bytes === 0 && files === 0) continue
    await tx.run(sql`INSERT INTO ${tables.usage} AS counted (bucket, owner, bytes, files)
      VALUES (${bucket.name}, ${owner}, ${bytes}, ${files}) ON CONFLICT (bucket, owner)
      DO UPDATE SET bytes = counted.bytes + excluded.bytes, files = counted.files + excluded.files`)
    const quota = owner === total ? bucket.quotaBytes : bucket.userQuotaBytes
    if (quota === null || bytes <= 0) continue
    const [row] = await tx.all<{ bytes: number }>(
      sql`SELECT bytes FROM ${tables.usage} WHERE bucket = ${bucket.name} AND owner = ${owner}`,
    )
    if ((row?.bytes ?? 0) > quota) throw quotaExceeded(owner === total ? 'The bucket' : 'Your space in this bucket')
  }
}
