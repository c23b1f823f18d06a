/**
 * Which blobs anything refers to. A blob has a row before it has a byte, and the row says after which time it may be
 * removed; for one in use it says nothing. Bytes are the engine's, removal is `garbage`'s.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import type { Blobs, WriteOptions, WrittenBlob } from '../../../engines/blobs/blobs.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { unavailable } from '../../../errors.ts'
import { adoptMarginMs, garbageGraceMs } from '../../../limits/storage.ts'
import type { Store } from '../schema.ts'
import type { Garbage, QuotaScope } from './garbage.ts'
import type { Staging } from './staging.ts'

/** A blob of an object and its size in bytes. */
export type BlobPart = readonly [id: string, size: number]

export interface StagedBlob extends WrittenBlob {
  readonly id: string
}

export interface StageOptions extends WriteOptions {
  /** About how many bytes will come, where `size` is not known. */
  readonly aboutBytes?: number
  /** Reserves nothing: bytes of the server's own, which other bounds keep few. */
  readonly isUncounted?: true
}

export interface BlobRegistry {
  /**
   * Writes a blob that nothing refers to yet, once released blobs of the same scope are back within their bounds. Its
   * bytes are reserved before they are written, until it is adopted, released or abandoned. Throws 413, 429 or 503
   * where there is no reservation for them, and what the engine and the body throw; the sweeper removes what was
   * written.
   */
  stage(body: AsyncIterable<Uint8Array>, options: StageOptions, scope: QuotaScope): Promise<StagedBlob>
  /** Makes a staged blob the transaction's own. Throws 503 for one that is gone or has been staged for too long. */
  adopt(tx: Transaction, blob: StagedBlob): Promise<void>
  /** Releases live blobs and counts them against the bounds of their scope; downloads under way may finish. */
  release(tx: Transaction, scope: QuotaScope, blobs: readonly BlobPart[]): Promise<void>
  /** As `release`, for a staged blob that is still to be sent. Never rejects. */
  releaseStaged(blob: StagedBlob, scope: QuotaScope, graceMs: number): Promise<void>
  /** Removes a staged blob; nothing happens to one that was adopted after all. Never rejects. */
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

  /** Never before the beginning of a living lease, whatever the clock does: the lease must protect the blob. */
  const releasedNow = (): SqlText => {
    const nowMs = clock.now()
    return sql`(SELECT CASE WHEN max(since) > ${nowMs} THEN max(since) ELSE ${nowMs} END FROM ${tables.leases})`
  }

  /** False for a blob that is not staged any more. */
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
    // Rows from before sizes were kept get their share of what the caller knows.
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
        // From here on it cannot be adopted any more.
        if (await expire(id)) await garbage.remove([id])
      } catch {
        // The sweeper finds it by its row.
      }
    },
  }
}
