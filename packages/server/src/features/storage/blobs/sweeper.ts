/**
 * Background cleanup: idle upload sessions, unreferenced blobs, expired tickets. Works in small steps, each of which
 * may fail or run on several nodes at once: the row is removed last, so the next run finds unfinished work.
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
import type { Store } from '../migrations.ts'
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

/** Runs all due cleanup in bounded steps and starts none after the signal. Called periodically. */
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
          // The upload may have been continued since the list was read.
          const stillIdle = sql`SELECT id FROM ${tables.uploads} WHERE id = ${id} AND touched <= ${before}`
          const [found] = await tx.all(sql`${stillIdle}${database.dialect.forUpdate}`)
          if (found) await uploads.close(tx, id, quotas)
        })
      }
      if (idle.length < sweepRowsMax) return
    }
  }

  async function removeExpiredTickets(): Promise<void> {
    // A clock that is set back must not make a used ticket valid again.
    const before = clock.now() - adoptMarginMs
    await database.write((tx) => tx.run(sql`DELETE FROM ${tables.grants} WHERE expires <= ${before}`))
  }

  async function removeExpiredLeases(): Promise<void> {
    const before = clock.now() - clockSkewMs
    await database.write((tx) => tx.run(sql`DELETE FROM ${tables.leases} WHERE expires <= ${before}`))
  }

  /** Removes blobs of this deployment without a row; these exist only after a database has lost its last commits. */
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
   * Resets timestamps that a clock running ahead has written to their latest valid value; otherwise they would take
   * effect only when that time is reached. A used ticket is kept for as long as a token for it may be valid.
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
    // A clock that was ahead may have postponed the next scan.
    nextScanMs = Math.min(nextScanMs, clock.now() + strayScanIntervalMs)
    if (signal?.aborted || clock.now() < nextScanMs) return
    nextScanMs = clock.now() + strayScanIntervalMs
    await removeStrays()
  }
}
