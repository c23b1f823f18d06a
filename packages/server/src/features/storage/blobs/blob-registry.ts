/**
 * Registry of blobs. A blob's row is written before its bytes. While the blob is unreferenced (staged or released) the
 * row has the time after which it may be removed; for a live blob that time is null. The blobs engine stores bytes,
 * `garbage` removes them.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import type { Blobs, WriteOptions, WrittenBlob } from '../../../engines/blobs/blobs.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { unavailable } from '../../../errors.ts'
import { adoptMarginMs, garbageGraceMs } from '../../../limits/storage.ts'
import type { Store } from '../migrations.ts'
import type { Garbage, QuotaScope } from './garbage.ts'
import type { Staging } from './staging.ts'

/** A blob of an object and its size in bytes. */
export type BlobPart = readonly [id: string, size: number]

export interface StagedBlob extends WrittenBlob {
  readonly id: string
}

export interface StageOptions extends WriteOptions {
  /** Estimated number of bytes, if `size` is unknown. */
  readonly aboutBytes?: number
  /** Skips the reservation: for bytes that the server itself produces, which other limits bound. */
  readonly isUncounted?: true
}

export interface BlobRegistry {
  /**
   * Writes an unreferenced blob, after released blobs in the same quota scope have been reduced to their bounds. Its
   * bytes are reserved before they are written, until it is adopted, released or abandoned. Throws 413, 429 or 503 if
   * the reservation fails, and errors of the engine and the body; the sweeper removes what was written.
   */
  stage(body: AsyncIterable<Uint8Array>, options: StageOptions, scope: QuotaScope): Promise<StagedBlob>
  /**
   * Makes a staged blob live, as part of the transaction. Throws 503 if it was removed or has been staged for too long.
   */
  adopt(tx: Transaction, blob: StagedBlob): Promise<void>
  /** Releases live blobs and counts them as garbage of their scope; downloads in progress can finish. */
  release(tx: Transaction, scope: QuotaScope, blobs: readonly BlobPart[]): Promise<void>
  /** As `release`, for a staged blob that is still being sent. Never rejects. */
  releaseStaged(blob: StagedBlob, scope: QuotaScope, graceMs: number): Promise<void>
  /** Removes a staged blob; has no effect on an adopted one. Never rejects. */
  abandon(id: string): Promise<void>
}

interface BlobRegistryDeps {
  readonly store: Store
  readonly blobs: Blobs
  readonly garbage: Garbage
  readonly staging: Staging
  readonly clock: Clock
}

export function createBlobRegistry({ store, blobs, garbage, staging, clock }: BlobRegistryDeps): BlobRegistry {
  const { database, tables, deployment } = store
  const table = tables.blobs

  /** Not earlier than the start of any active lease, even if the clock is behind: the lease must protect the blob. */
  const releasedNow = (): SqlText => {
    const nowMs = clock.now()
    return sql`(SELECT CASE WHEN max(since) > ${nowMs} THEN max(since) ELSE ${nowMs} END FROM ${tables.leases})`
  }

  /** Returns false if the blob is not staged. */
  const expire = async (id: string): Promise<boolean> => {
    staging.end(id)
    const changed = await database.write((tx) =>
      tx.run(sql`UPDATE ${table} SET sweepafter = ${0}, reserved = NULL WHERE id = ${id} AND sweepafter IS NOT NULL`),
    )
    return changed === 1
  }

  async function releaseRows(
    tx: Transaction,
    { rows, scope, graceMs }: { rows: SqlText; scope: QuotaScope; graceMs: number },
    { bytes, blobs }: { bytes: number; blobs: number },
  ): Promise<void> {
    // Rows from before sizes were stored get an equal share of the known total.
    const changed = await tx.run(sql`UPDATE ${table} SET sweepafter = ${clock.now() + graceMs},
      released = ${releasedNow()}, reserved = NULL, bucket = ${scope.bucket.name}, owner = ${scope.owner},
      size = COALESCE(size, ${bytes / blobs}) WHERE ${rows}`)
    if (changed > 0) await garbage.count(tx, scope, { bytes, blobs })
  }

  return {
    async stage(body, options, scope) {
      await garbage.makeRoom(scope)
      const id = `${deployment}-${randomBytes(16).toString('hex')}`
      const reservation = await staging.begin(id, options.isUncounted ? null : scope, options)
      try {
        return { id, ...(await blobs.write(id, reservation.within(body), options)) }
      } catch (error) {
        await expire(id).catch(() => {})
        throw error
      }
    },

    async adopt(tx, { id, size }) {
      const deadline = clock.now() + adoptMarginMs
      const adopted = await tx.run(
        sql`UPDATE ${table} SET sweepafter = NULL, size = ${size}, reserved = NULL
          WHERE id = ${id} AND sweepafter > ${deadline}`,
      )
      tx.afterCommit(() => staging.end(id))
      if (adopted !== 1) throw unavailable()
    },

    async release(tx, scope, parts) {
      if (parts.length === 0) return
      const ids = parts.map(([id]) => id)
      const bytes = parts.reduce((sum, [, size]) => sum + size, 0)
      const rows = database.dialect.inList(sql`id`, ids, 'text')
      await releaseRows(tx, { rows, scope, graceMs: garbageGraceMs }, { bytes, blobs: parts.length })
    },

    async releaseStaged({ id, size }, scope, graceMs) {
      const rows = sql`id = ${id} AND sweepafter IS NOT NULL AND released IS NULL`
      const counted = { bytes: size, blobs: 1 }
      staging.end(id)
      await database.write((tx) => releaseRows(tx, { rows, scope, graceMs }, counted)).catch(() => {})
    },

    async abandon(id) {
      try {
        // From here on the blob cannot be adopted.
        if (await expire(id)) await garbage.remove([id])
      } catch {
        // The sweeper removes the blob, which still has its row.
      }
    },
  }
}
