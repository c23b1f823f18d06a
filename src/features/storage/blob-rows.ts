/**
 * Which blobs anything refers to. A blob has a row before it has a byte, and the row says after which time it may be
 * removed; for one in use it says nothing. Bytes are the engine's, removal the sweeper's.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { Blobs, WriteOptions, WrittenBlob } from '../../engines/blobs.ts'
import type { Transaction } from '../../engines/sql.ts'
import { sql } from '../../engines/sql-text.ts'
import { unavailable } from '../../errors.ts'
import { adoptMarginMs, garbageGraceMs, stagedBlobMs } from '../../limits-storage.ts'
import type { Store } from './schema.ts'

export interface StagedBlob extends WrittenBlob {
  readonly id: string
}

export interface BlobRows {
  /** Writes a blob that nothing refers to yet. Throws what the engine and the body throw; the sweeper tidies up. */
  stage(body: AsyncIterable<Uint8Array>, options: WriteOptions): Promise<StagedBlob>
  /** Makes staged blobs the transaction's own. Throws 503 for one that is gone or has been staged for too long. */
  adopt(tx: Transaction, ids: readonly string[]): Promise<void>
  /** Gives up blobs; who reads them may finish. */
  release(tx: Transaction, ids: readonly string[]): Promise<void>
  /** Gives up a staged blob, at once unless told otherwise; nothing happens to one that was adopted after all. */
  abandon(id: string, graceMs?: number): Promise<void>
}

export function createBlobRows(deps: { store: Store; blobs: Blobs; clock: Clock }): BlobRows {
  const { store, blobs, clock } = deps
  const { database, tables, deployment } = store
  const table = tables.blobs

  const abandon = async (id: string, graceMs = 0): Promise<void> => {
    const sweepAfter = graceMs === 0 ? 0 : clock.now() + graceMs
    await database.write((tx) =>
      tx.run(sql`UPDATE ${table} SET sweepafter = ${sweepAfter} WHERE id = ${id} AND sweepafter IS NOT NULL`),
    )
  }

  return {
    async stage(body, options) {
      const id = `${deployment}-${randomBytes(16).toString('hex')}`
      const sweepAfter = clock.now() + stagedBlobMs
      await database.write((tx) => tx.run(sql`INSERT INTO ${table} (id, sweepafter) VALUES (${id}, ${sweepAfter})`))
      try {
        return { id, ...(await blobs.write(id, body, options)) }
      } catch (error) {
        await abandon(id).catch(() => {})
        throw error
      }
    },
    async adopt(tx, ids) {
      if (ids.length === 0) return
      const list = database.dialect.inList(sql`id`, ids, 'text')
      const deadline = clock.now() + adoptMarginMs
      const adopted = await tx.run(
        sql`UPDATE ${table} SET sweepafter = NULL WHERE ${list} AND sweepafter > ${deadline}`,
      )
      if (adopted !== ids.length) throw unavailable()
    },
    async release(tx, ids) {
      if (ids.length === 0) return
      const list = database.dialect.inList(sql`id`, ids, 'text')
      await tx.run(sql`UPDATE ${table} SET sweepafter = ${clock.now() + garbageGraceMs} WHERE ${list}`)
    },
    abandon: (id, graceMs) => abandon(id, graceMs).catch(() => {}),
  }
}
