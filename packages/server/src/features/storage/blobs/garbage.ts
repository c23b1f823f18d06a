/**
 * Garbage: released blobs, their bounds per bucket and per user, and their removal. Blobs released after the start of
 * an active backup lease are kept, regardless of age and bounds.
 */
import type { Clock } from '../../../base/clock.ts'
import { createSingleFlight } from '../../../base/concurrency/single-flight.ts'
import type { Log } from '../../../base/log.ts'
import type { Blobs } from '../../../engines/blobs/blobs.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { clockSkewMs } from '../../../limits/sqlite.ts'
import {
  garbageBucketBlobsMax,
  garbageBucketBytesMax,
  garbageBytesMin,
  garbageOwnersMax,
  garbageUserBlobsMax,
  garbageUserBytesMax,
  sweepRowsMax,
} from '../../../limits/storage.ts'
import type { Store } from '../migrations.ts'
import { type QuotaBucket, total } from './usage.ts'

/** What blobs count against: a bucket and, unless null, one of its users. */
export interface QuotaScope {
  readonly bucket: QuotaBucket
  readonly owner: string | null
}

export interface BlobCount {
  readonly bytes: number
  readonly blobs: number
}

export interface Garbage {
  /** Counts blobs released by the transaction. */
  count(tx: Transaction, scope: QuotaScope, released: BlobCount): Promise<void>
  /**
   * Removes the oldest released blobs of a scope that exceeds its bounds, before more bytes are written. Concurrent
   * equal calls share one run. A failing blob store is logged and left to the sweeper; rejects if the database fails.
   */
  makeRoom(scope: QuotaScope): Promise<void>
  /** Removes blobs whose grace period has ended. Rejects with errors of the engines. */
  removeDue(signal?: AbortSignal): Promise<void>
  /** Removes the oldest released blobs of every scope that exceeds its bounds. Rejects as `removeDue`. */
  removeExcess(signal?: AbortSignal): Promise<void>
  /** Removes unreferenced blobs and their rows immediately. */
  remove(ids: readonly string[]): Promise<void>
}

/** A bucket (owner `''`) or a user that exceeds its bounds. */
interface Excess extends BlobCount {
  readonly bucket: string
  readonly owner: string
  readonly bytesmax: number
  readonly blobsmax: number
}

interface GarbageRow {
  readonly id: string
  readonly bucket: string | null
  readonly owner: string | null
  readonly size: number | null
  readonly released: number | null
}

const bytesMaxOf = (quotaBytes: number | null, withoutQuota: number): number =>
  quotaBytes === null ? withoutQuota : Math.max(quotaBytes, garbageBytesMin)

/** The oldest rows whose removal brings a count within its bounds. */
function chooseOldest(rows: readonly { id: string; size: number | null }[], excess: Excess): string[] {
  let { bytes, blobs } = excess
  const chosen: string[] = []
  for (const { id, size } of rows) {
    if (bytes <= excess.bytesmax && blobs <= excess.blobsmax) break
    chosen.push(id)
    bytes -= size ?? 0
    blobs -= 1
  }
  return chosen
}

/** Sums of released rows by bucket and owner, sorted with the bucket's total first: the lock order of counts. */
function sumByScope(rows: readonly GarbageRow[]): readonly (BlobCount & { bucket: string; owner: string })[] {
  const sums = new Map<string, BlobCount & { bucket: string; owner: string }>()
  for (const { bucket, owner, size, released } of rows) {
    if (bucket === null || released === null) continue
    for (const name of owner === null ? [total] : [total, owner]) {
      const key = JSON.stringify([bucket, name])
      const sum = sums.get(key) ?? { bucket, owner: name, bytes: 0, blobs: 0 }
      sums.set(key, { ...sum, bytes: sum.bytes + (size ?? 0), blobs: sum.blobs + 1 })
    }
  }
  const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
  return [...sums.values()].sort((a, b) => compare(a.bucket, b.bucket) || compare(a.owner, b.owner))
}

export function createGarbage(deps: { store: Store; blobs: Blobs; clock: Clock; log: Log }): Garbage {
  const { store, blobs, clock, log } = deps
  const { database, tables } = store
  const { dialect } = database
  const flights = createSingleFlight<void>()

  /**
   * A condition for rows of `blob` that no lease protects. It is part of the statement that selects the rows: a lease
   * that starts later protects only blobs released later. The margin covers open transactions and clock skew.
   */
  const isNotLeased = (): SqlText => sql`NOT EXISTS (SELECT 1 FROM ${tables.leases} AS lease
    WHERE lease.expires > ${clock.now() - clockSkewMs} AND lease.since <= blob.released + ${clockSkewMs})`
  const isOver = sql`(bytes > bytesmax OR blobs > blobsmax)`

  async function change(tx: Transaction, of: { bucket: string; owner: string }, less: BlobCount): Promise<void> {
    const at = sql`bucket = ${of.bucket} AND owner = ${of.owner}`
    await tx.run(sql`UPDATE ${tables.garbage} SET bytes = bytes - ${less.bytes}, blobs = blobs - ${less.blobs}
      WHERE ${at}`)
    await tx.run(sql`DELETE FROM ${tables.garbage} WHERE ${at} AND blobs <= ${0}`)
  }

  async function remove(ids: readonly string[]): Promise<void> {
    await blobs.remove(ids)
    const list = dialect.inList(sql`id`, ids, 'text')
    const rows = sql`${list} AND sweepafter IS NOT NULL`
    await database.write(async (tx) => {
      // Sorted, so that nodes that remove the same rows cannot deadlock.
      const gone = await tx.all<GarbageRow>(sql`SELECT id, bucket, owner, size, released FROM ${tables.blobs}
        WHERE ${rows} ORDER BY id${dialect.forUpdate}`)
      if (gone.length === 0) return
      await tx.run(sql`DELETE FROM ${tables.blobs} WHERE ${rows}`)
      for (const sum of sumByScope(gone)) await change(tx, sum, sum)
    })
  }

  /** Removes one batch of an excess; returns false if nothing else may be removed. */
  async function reduce(excess: Excess): Promise<boolean> {
    const { bucket, owner } = excess
    const isOfOwner = owner === total ? sql`` : sql` AND blob.owner = ${owner} AND blob.owner IS NOT NULL`
    const oldest = await database.all<{ id: string; size: number | null }>(sql`SELECT blob.id, blob.size
      FROM ${tables.blobs} AS blob WHERE blob.bucket = ${bucket}${isOfOwner} AND blob.released IS NOT NULL
      AND ${isNotLeased()} ORDER BY blob.released LIMIT ${sweepRowsMax}`)
    const ids = chooseOldest(oldest, excess)
    if (ids.length === 0) return false
    await remove(ids)
    return true
  }

  const excessOf = async (bucket: string, owner: string): Promise<Excess | null> => {
    const [row] = await database.all<Excess>(sql`SELECT * FROM ${tables.garbage}
      WHERE bucket = ${bucket} AND owner = ${owner} AND ${isOver}`)
    return row ?? null
  }

  async function reduceToBounds(bucket: string, owner: string, signal?: AbortSignal): Promise<void> {
    for (;;) {
      const excess = await excessOf(bucket, owner)
      if (!excess || signal?.aborted || !(await reduce(excess))) return
    }
  }

  return {
    remove,

    async count(tx, { bucket, owner }, { bytes, blobs: number }) {
      const bounds: (readonly [owner: string, bytesMax: number, blobsMax: number])[] = [
        [total, bytesMaxOf(bucket.quotaBytes, garbageBucketBytesMax), garbageBucketBlobsMax],
      ]
      if (owner !== null)
        bounds.push([owner, bytesMaxOf(bucket.userQuotaBytes, garbageUserBytesMax), garbageUserBlobsMax])
      for (const [name, bytesMax, blobsMax] of bounds)
        await tx.run(sql`INSERT INTO ${tables.garbage} AS counted (bucket, owner, bytes, blobs, bytesmax, blobsmax)
          VALUES (${bucket.name}, ${name}, ${bytes}, ${number}, ${bytesMax}, ${blobsMax})
          ON CONFLICT (bucket, owner) DO UPDATE SET bytes = counted.bytes + excluded.bytes,
            blobs = counted.blobs + excluded.blobs, bytesmax = excluded.bytesmax, blobsmax = excluded.blobsmax`)
    },

    async makeRoom({ bucket: { name }, owner }) {
      const owners = owner === null ? [total] : [total, owner]
      const over = await database.all<Excess>(sql`SELECT * FROM ${tables.garbage} WHERE bucket = ${name}
        AND ${dialect.inList(sql`owner`, owners, 'text')} AND ${isOver}`)
      for (const excess of over) {
        const key = JSON.stringify([name, excess.owner])
        await flights
          .run(key, () => reduceToBounds(name, excess.owner))
          .catch((error: unknown) => log.error('storage.release_failed', { error }))
      }
    },

    async removeDue(signal) {
      while (!signal?.aborted) {
        const due = await database.all<{ id: string }>(sql`SELECT blob.id FROM ${tables.blobs} AS blob
          WHERE blob.sweepafter <= ${clock.now()} AND ${isNotLeased()} ORDER BY blob.sweepafter LIMIT ${sweepRowsMax}`)
        if (due.length > 0) await remove(due.map(({ id }) => id))
        if (due.length < sweepRowsMax) return
      }
    },

    async removeExcess(signal) {
      let last = { bucket: '', owner: '' }
      while (!signal?.aborted) {
        const over = await database.all<Excess>(sql`SELECT * FROM ${tables.garbage} WHERE ${isOver}
          AND (bucket > ${last.bucket} OR (bucket = ${last.bucket} AND owner > ${last.owner}))
          ORDER BY bucket, owner LIMIT ${garbageOwnersMax}`)
        for (const { bucket, owner } of over) await reduceToBounds(bucket, owner, signal)
        const next = over.at(-1)
        if (!next || over.length < garbageOwnersMax) return
        last = next
      }
    },
  }
}
