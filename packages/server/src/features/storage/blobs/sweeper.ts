/**
 * What goes away by itself: sessions nobody continues, blobs nobody refers to, grants past their time. Small steps, any
 * of which may fail or run on several nodes at once: a row goes last, so what a step leaves undone the next one finds.
 */
import type { Clock } from '../../../base/clock.ts'
import type { Blobs } from '../../../engines/blobs/blobs.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { backupLeaseMs } from '../../../limits/jobs.ts'
import { clockSkewMs } from '../../../limits/sqlite.ts'
import {
  adoptMarginMs,
  signedUrlLifetimeMaxMs,
  stagedBlobMs,
  strayScanIntervalMs,
  sweepRowsMax,
  uploadIdleMs,
} from '../../../limits/storage.ts'
import type { BucketDefinitions } from '../buckets.ts'
import type { Store } from '../schema.ts'
import type { Uploads } from '../uploads/uploads.ts'
import type { Garbage } from './garbage.ts'
import { withoutQuota } from './usage.ts'

export interface SweeperDeps {
  readonly store: Store
  readonly blobs: Blobs
  readonly garbage: Garbage
  readonly uploads: Uploads
  readonly buckets: () => BucketDefinitions
  readonly clock: Clock
}

/** Does what is due, in steps of a bounded size, none after the signal; to be called now and then. */
export type Sweep = (signal?: AbortSignal) => Promise<void>

export function createSweeper({ store, blobs, garbage, uploads, buckets, clock }: SweeperDeps): Sweep {
  const { database, tables, deployment } = store
  let nextScanMs = clock.now() + strayScanIntervalMs

  async function closeIdle(signal?: AbortSignal): Promise<void> {
    const before = clock.now() - uploadIdleMs
    while (!signal?.aborted) {
      const idle = await database.all<{ id: string; bucket: string }>(sql`SELECT id, bucket FROM ${tables.uploads}
        WHERE touched <= ${before} ORDER BY touched LIMIT ${sweepRowsMax}`)
      for (const { id, bucket } of idle) {
        const quotas = buckets().get(bucket) ?? withoutQuota(bucket)
        await database.write(async (tx) => {
          // Somebody may have gone on with it since the list was made.
          const stillIdle = sql`SELECT id FROM ${tables.uploads} WHERE id = ${id} AND touched <= ${before}`
          const [found] = await tx.all(sql`${stillIdle}${database.dialect.forUpdate}`)
          if (found) await uploads.close(tx, id, quotas)
        })
      }
      if (idle.length < sweepRowsMax) return
    }
  }

  async function removeExpiredTickets(): Promise<void> {
    // A clock that is set back must not make a used ticket good again.
    const before = clock.now() - adoptMarginMs
    await database.write((tx) => tx.run(sql`DELETE FROM ${tables.grants} WHERE expires <= ${before}`))
  }

  async function removeExpiredLeases(): Promise<void> {
    const before = clock.now() - clockSkewMs
    await database.write((tx) => tx.run(sql`DELETE FROM ${tables.leases} WHERE expires <= ${before}`))
  }

  /** Blobs of ours without a row: only a database that lost its last commits leaves such. */
  async function removeStrays(): Promise<void> {
    const before = clock.now() - stagedBlobMs
    let page: string[] = []
    const removeUnknown = async (): Promise<void> => {
      const list = database.dialect.inList(sql`id`, page, 'text')
      const known = await database.all<{ id: string }>(sql`SELECT id FROM ${tables.blobs} WHERE ${list}`)
      const ids = new Set(known.map(({ id }) => id))
      await blobs.remove(page.filter((id) => !ids.has(id)))
      page = []
    }
    for await (const { id } of blobs.listOlderThan(before)) {
      if (id.startsWith(`${deployment}-`)) page.push(id)
      if (page.length >= sweepRowsMax) await removeUnknown()
    }
    if (page.length > 0) await removeUnknown()
    await blobs.removeUnfinished(before)
  }

  /**
   * What was dated under a clock that was ahead is dated as if that had been now: nobody could give a later time, and
   * it would stay until then. A used ticket stays as long as a token of it may be good.
   */
  async function clampFuture(): Promise<void> {
    const nowMs = clock.now()
    const latest = [
      [tables.uploads, sql`touched`, nowMs + clockSkewMs, nowMs],
      [tables.blobs, sql`sweepafter`, nowMs + stagedBlobMs + clockSkewMs, nowMs + stagedBlobMs],
      [tables.leases, sql`expires`, nowMs + backupLeaseMs + clockSkewMs, nowMs + backupLeaseMs],
      [tables.grants, sql`expires`, nowMs + signedUrlLifetimeMaxMs + clockSkewMs, nowMs + signedUrlLifetimeMaxMs],
    ] as const
    for (const [table, column, mostMs, clampedMs] of latest) {
      const isAhead = sql`${column} > ${mostMs}`
      for (let changed = sweepRowsMax; changed === sweepRowsMax; ) {
        const [found] = await database.all(sql`SELECT id FROM ${table} WHERE ${isAhead} LIMIT 1`)
        if (!found) break
        changed = await database.write((tx) =>
          tx.run(sql`UPDATE ${table} SET ${column} = ${clampedMs} WHERE id IN (
            SELECT id FROM ${table} WHERE ${isAhead} ORDER BY ${column} LIMIT ${sweepRowsMax})`),
        )
      }
    }
  }

  return async (signal) => {
    await clampFuture()
    await closeIdle(signal)
    await garbage.removeDue(signal)
    await garbage.removeExcess(signal)
    await removeExpiredTickets()
    await removeExpiredLeases()
    // A clock that was ahead put off the next scan.
    nextScanMs = Math.min(nextScanMs, clock.now() + strayScanIntervalMs)
    if (signal?.aborted || clock.now() < nextScanMs) return
    nextScanMs = clock.now() + strayScanIntervalMs
    await removeStrays()
  }
}
