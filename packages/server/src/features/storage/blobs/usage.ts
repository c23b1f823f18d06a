/**
 * How many bytes each bucket and each of its users holds, kept in the transactions that change it, and the quotas on
 * them.
 */
import type { BucketDefinition } from '../../../access/definition.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { quotaExceeded } from '../../../errors.ts'
import type { Store } from '../schema.ts'

/** Bytes that come (or go) in somebody's name; null for the service's own. */
export interface UsageChange {
  readonly owner: string | null
  readonly bytes: number
}

/** What is asked of a bucket here; one that is no longer declared has no quotas. */
export type QuotaBucket = Pick<BucketDefinition, 'name' | 'quotaBytes' | 'userQuotaBytes'>

/** A bucket that is no longer declared. */
export const withoutQuota = (name: string): QuotaBucket => ({ name, quotaBytes: null, userQuotaBytes: null })

/** The owner of a bucket's total; no user's id is empty. */
export const total = ''

/**
 * Counts changes of one bucket. Throws 413 where a quota would be exceeded by bytes that come; what goes is never
 * refused.
 */
export async function changeUsage(
  tx: Transaction,
  { tables }: Store,
  bucket: QuotaBucket,
  changes: readonly UsageChange[],
): Promise<void> {
  const sums = new Map<string, number>([[total, 0]])
  for (const { owner, bytes } of changes) {
    sums.set(total, (sums.get(total) as number) + bytes)
    if (owner !== null) sums.set(owner, (sums.get(owner) ?? 0) + bytes)
  }
  // In one order, so that two transactions never wait for each other.
  for (const [owner, bytes] of [...sums].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (bytes === 0) continue
    await tx.run(sql`INSERT INTO ${tables.usage} AS counted (bucket, owner, bytes) VALUES (${bucket.name}, ${owner}, ${bytes})
      ON CONFLICT (bucket, owner) DO UPDATE SET bytes = counted.bytes + excluded.bytes`)
    const quota = owner === total ? bucket.quotaBytes : bucket.userQuotaBytes
    if (quota === null || bytes < 0) continue
    const [row] = await tx.all<{ bytes: number }>(
      sql`SELECT bytes FROM ${tables.usage} WHERE bucket = ${bucket.name} AND owner = ${owner}`,
    )
    if ((row?.bytes ?? 0) > quota) throw quotaExceeded(owner === total ? 'The bucket' : 'Your space in this bucket')
  }
}
