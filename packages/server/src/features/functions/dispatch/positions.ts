/**
 * How far each change log is dispatched. The position is written in the transaction that adds the jobs, and only by the
 * dispatcher that has read it: of two dispatchers of one log the second adds nothing.
 */
import type { Clock } from '../../../base/clock.ts'
import type { DatabaseAddress, Reader, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { dispatcherLeaseMs } from '../../../limits/function-jobs.ts'
import type { JobTables } from '../jobs/migrations.ts'
import { keyOfLog, type Position } from './change-logs.ts'

export interface StoredPosition {
  readonly position: Position
  readonly version: number
}

export interface Positions {
  /** Stores the position of a log that has none. */
  ensure(address: DatabaseAddress, position: () => Promise<Position>): Promise<void>
  find(address: DatabaseAddress): Promise<StoredPosition | null>
  /** Takes or renews the lease of a log; null while another node has it, or where the log has no position. */
  acquire(address: DatabaseAddress): Promise<StoredPosition | null>
  /** Moves a log's position; false if it has moved since the version was read. */
  advance(tx: Transaction, address: DatabaseAddress, from: StoredPosition, to: Position): Promise<boolean>
  /** Forgets a log whose position has this version. */
  remove(address: DatabaseAddress, version: number): Promise<boolean>
  /** At most `count` logs with a position, in the order of their keys, after the one with the key `after`. */
  page(after: string, count: number): Promise<readonly (DatabaseAddress & StoredPosition)[]>
  /** Lets other nodes take this node's logs at once. */
  release(): Promise<void>
}

interface Row {
  readonly namespace: string
  readonly instance: string | null
  readonly position: string
  readonly version: number | string
}

const storedOf = ({ position, version }: Row): StoredPosition => ({
  position: JSON.parse(position) as Position,
  version: Number(version),
})

/** `isSole`: no other process dispatches these logs, so that leases are not needed. */
export function createPositions(
  { database, positions }: JobTables,
  { holder, isSole, clock }: { readonly holder: string; readonly isSole: boolean; readonly clock: Clock },
): Positions {
  const find = async (reader: Reader, address: DatabaseAddress): Promise<StoredPosition | null> => {
    const [row] = await reader.all<Row>(
      sql`SELECT namespace, instance, position, version FROM ${positions} WHERE log = ${keyOfLog(address)}`,
    )
    return row ? storedOf(row) : null
  }

  return {
    find: (address) => find(database, address),
    async ensure(address, position) {
      const key = keyOfLog(address)
      const [known] = await database.all(sql`SELECT 1 FROM ${positions} WHERE log = ${key}`)
      if (known) return
      const text = JSON.stringify(await position())
      await database.write((tx) =>
        tx.run(sql`INSERT INTO ${positions} (log, namespace, instance, position, version, lease_until)
          VALUES (${key}, ${address.namespace}, ${address.instanceId}, ${text}, 1, 0) ON CONFLICT DO NOTHING`),
      )
    },
    async acquire(address) {
      if (isSole) return find(database, address)
      return database.write(async (tx) => {
        const nowMs = clock.now()
        const taken =
          await tx.run(sql`UPDATE ${positions} SET holder = ${holder}, lease_until = ${nowMs + dispatcherLeaseMs}
          WHERE log = ${keyOfLog(address)} AND (holder = ${holder} OR holder IS NULL OR lease_until <= ${nowMs})`)
        return taken === 0 ? null : find(tx, address)
      })
    },
    async advance(tx, address, from, to) {
      const moved = await tx.run(sql`UPDATE ${positions} SET position = ${JSON.stringify(to)}, version = version + 1,
        holder = ${holder}, lease_until = ${clock.now() + dispatcherLeaseMs}
        WHERE log = ${keyOfLog(address)} AND version = ${from.version}`)
      return moved > 0
    },
    async remove(address, version) {
      const removed = await database.write((tx) =>
        tx.run(sql`DELETE FROM ${positions} WHERE log = ${keyOfLog(address)} AND version = ${version}`),
      )
      return removed > 0
    },
    async page(after, count) {
      const rows = await database.all<Row>(
        sql`SELECT namespace, instance, position, version FROM ${positions} WHERE log > ${after} ORDER BY log LIMIT ${count}`,
      )
      return rows.map((row) => ({ namespace: row.namespace, instanceId: row.instance, ...storedOf(row) }))
    },
    async release() {
      if (isSole) return
      await database.write((tx) =>
        tx.run(sql`UPDATE ${positions} SET holder = NULL, lease_until = 0 WHERE holder = ${holder}`),
      )
    },
  }
}
