/**
 * Retention of the change log, which is bounded by age and size. It is trimmed from its beginning, in order, since
 * later entries may have the records of inserts. Each step deletes a bounded number of entries and bytes.
 */
import type { TableRef } from '../../../engines/sql/dialect.ts'
import type { Database, Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import {
  changeOverheadBytes,
  changesCountRowsMax,
  changesKeptMinMs,
  changesTrimBytesMax,
  changesTrimRowsMax,
  clockSkewMs,
} from '../../../limits/sqlite.ts'
import { changeLog } from './changes.ts'

/** Bounds of a log. */
export interface LogBounds {
  readonly retentionMs: number
  readonly bytesMax: number
}

/** A reader that has to see every change, as a snapshot up to which it has; null where there is none. */
export type ReadUpTo = string | null

/** The tables of a namespace, for all of its instances together if they share tables. */
const scopeOf = (namespace: string): Omit<TableRef, 'name'> => ({ namespace, perInstance: false })

const stateOf = (database: Database, namespace: string): SqlText =>
  database.dialect.target({ ...scopeOf(namespace), name: '_changes_trim' })

/**
 * One row: `bytes` is the size of all changes up to number `counted`; `trimmed` is the position of the last deleted
 * change, in the order of the dialect's `logView`.
 */
export const createTrimState = (namespace: string, target: (table: TableRef) => SqlText): SqlText[] => {
  const state = target({ ...scopeOf(namespace), name: '_changes_trim' })
  return [
    sql`CREATE TABLE IF NOT EXISTS ${state} (id INTEGER PRIMARY KEY, counted BIGINT NOT NULL, bytes BIGINT NOT NULL,
      trimmed BIGINT NOT NULL)`,
    sql`INSERT INTO ${state} (id, counted, bytes, trimmed) VALUES (1, 0, 0, 0) ON CONFLICT (id) DO NOTHING`,
  ]
}

/** The position of the last change deleted from a log; 0 if none was. */
export async function findTrimmed(database: Database, namespace: string): Promise<number> {
  const [row] = await database.all<{ trimmed: number | string }>(
    sql`SELECT trimmed FROM ${stateOf(database, namespace)} WHERE id = 1`,
  )
  return Number(row?.trimmed ?? 0)
}

/**
 * Whether changes after a snapshot may have been deleted, given when the snapshot was taken; recent ones never are.
 */
export async function mayBeTrimmed(
  database: Database,
  namespace: string,
  { snapshot, atMs }: { readonly snapshot: string; readonly atMs: number },
  nowMs: number,
): Promise<boolean> {
  if (nowMs - atMs < changesKeptMinMs / 2) return false
  return database.dialect.logView.isBeyond(await findTrimmed(database, namespace), snapshot)
}

/** Entries to delete: the first ones for which a condition holds, `rows` at most. */
interface Selection {
  readonly condition: SqlText
  readonly rows: number
}

/** What a step deleted. */
interface Removed {
  readonly rows: number
  readonly bytes: number
}

function createLogTrim(database: Database, namespace: string) {
  const { dialect } = database
  const log = dialect.target(changeLog(scopeOf(namespace)))
  const state = stateOf(database, namespace)
  const size = sql`coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0) + ${changeOverheadBytes}`
  const none: Removed = { rows: 0, bytes: 0 }

  const first = sql`SELECT * FROM ${log} ORDER BY seq LIMIT ${changesTrimRowsMax}`
  const selected = ({ condition, rows }: Selection, columns: SqlText): SqlText =>
    sql`SELECT ${columns} FROM ${log} WHERE seq < coalesce(
      (SELECT min(seq) FROM (${first}) AS part WHERE NOT (${condition})), ${Number.MAX_SAFE_INTEGER})
      ORDER BY seq LIMIT ${rows}`

  async function measure(tx: Transaction, selection: Selection) {
    const columns = sql`${size} AS size, ${dialect.logView.position} AS position`
    const [row] = await tx.all<{ rows: unknown; bytes: unknown; last: unknown }>(
      sql`SELECT count(*) AS rows, coalesce(sum(size), 0) AS bytes, max(position) AS last
        FROM (${selected(selection, columns)}) AS picked`,
    )
    return { rows: Number(row?.rows ?? 0), bytes: Number(row?.bytes ?? 0), last: Number(row?.last ?? 0) }
  }

  /** Deletes the first entries for which a condition holds, about `bytesMax` bytes. */
  async function remove(condition: SqlText, bytesMax: number): Promise<Removed> {
    const [found] = await database.all(selected({ condition, rows: 1 }, sql`seq`))
    if (!found) return none
    return database.write(async (tx) => {
      await tx.lock(`trim ${namespace}`)
      const most = await measure(tx, { condition, rows: changesTrimRowsMax })
      if (most.rows === 0) return none
      const rows = Math.max(1, Math.min(most.rows, Math.ceil((most.rows * bytesMax) / most.bytes)))
      const fit = { condition, rows }
      const { bytes, last } = rows === most.rows ? most : await measure(tx, fit)
      await tx.run(sql`DELETE FROM ${log} WHERE seq IN (${selected(fit, sql`seq`)})`)
      await tx.run(sql`UPDATE ${state} SET trimmed = CASE WHEN trimmed < ${last} THEN ${last} ELSE trimmed END,
        bytes = CASE WHEN bytes > ${bytes} THEN bytes - ${bytes} ELSE 0 END WHERE id = 1`)
      return { rows, bytes }
    })
  }

  return {
    /** Deletes a portion of the changes before a time that have been read. */
    removeOlder: (beforeMs: number, readUpTo: ReadUpTo): Promise<Removed> => {
      const isRead = readUpTo === null ? sql`` : sql` AND ${dialect.logView.within(readUpTo)}`
      return remove(sql`at < ${beforeMs}${isRead}`, changesTrimBytesMax)
    },
    /** Deletes about `bytes` of the oldest changes, except recent ones, which readers may be about to read. */
    removeOldest: (bytes: number, nowMs: number): Promise<Removed> =>
      remove(sql`at < ${nowMs - changesKeptMinMs}`, Math.min(bytes, changesTrimBytesMax)),
    /**
     * Sets the times of entries in the future to the current time, among those after number `after`: they were written
     * under a clock that was ahead, and would be kept until then. Returns the number after which more may follow, null
     * if the first is not one.
     */
    async clampFuture(after: number, nowMs: number): Promise<number | null> {
      const isAhead = sql`at > ${nowMs + clockSkewMs}`
      const some = sql`SELECT seq, at FROM ${log} WHERE seq > ${after} ORDER BY seq`
      const [next] = await database.all(sql`SELECT 1 FROM (${some} LIMIT 1) AS part WHERE ${isAhead}`)
      if (!next) return null
      return database.write(async (tx) => {
        const [found] = await tx.all<{ last: unknown }>(
          sql`SELECT max(seq) AS last FROM (${some} LIMIT ${changesTrimRowsMax}) AS part`,
        )
        const last = Number(found?.last ?? after)
        await tx.run(sql`UPDATE ${log} SET at = ${nowMs} WHERE seq > ${after} AND seq <= ${last} AND ${isAhead}`)
        return last
      })
    },
    /** Adds changes written since the last call to the size of the log. `isAll`: whether all are counted. */
    count(): Promise<{ bytes: number; isAll: boolean }> {
      return database.write(async (tx) => {
        const [known] = await tx.all<{ counted: unknown; bytes: unknown }>(
          sql`SELECT counted, bytes FROM ${state} WHERE id = 1${dialect.forUpdate}`,
        )
        const counted = Number(known?.counted ?? 0)
        const columns = sql`seq, ${size} AS size`
        const [added] = await tx.all<{ rows: unknown; bytes: unknown; last: unknown }>(
          sql`SELECT count(*) AS rows, coalesce(sum(size), 0) AS bytes, max(seq) AS last
            FROM (SELECT ${columns} FROM ${log} WHERE seq > ${counted} ORDER BY seq LIMIT ${changesCountRowsMax})
            AS picked`,
        )
        const rows = Number(added?.rows ?? 0)
        const bytes = Number(known?.bytes ?? 0) + Number(added?.bytes ?? 0)
        if (rows > 0)
          await tx.run(sql`UPDATE ${state} SET counted = ${Number(added?.last)}, bytes = ${bytes} WHERE id = 1`)
        return { bytes, isAll: rows < changesCountRowsMax }
      })
    },
  }
}

/**
 * Deletes what exceeds the bounds of a log; starts no step after the signal. Old changes wait for the reader, but the
 * size of the log is bounded whether it has read them or not.
 */
export async function trimLog(
  database: Database,
  namespace: string,
  { retentionMs, bytesMax }: LogBounds,
  {
    nowMs,
    signal,
    readUpTo = null,
  }: { readonly nowMs: number; readonly signal: AbortSignal | undefined; readonly readUpTo?: ReadUpTo },
): Promise<void> {
  const trim = createLogTrim(database, namespace)
  // Count first: the size of deleted changes is subtracted from the counted size.
  let size = await trim.count()
  while (!signal?.aborted && !size.isAll) size = await trim.count()
  let { bytes } = size
  for (let removed = { rows: 1, bytes: 0 }; removed.rows > 0 && !signal?.aborted; bytes -= removed.bytes)
    removed = await trim.removeOlder(nowMs - retentionMs, readUpTo)
  for (let after: number | null = 0; after !== null && !signal?.aborted; ) after = await trim.clampFuture(after, nowMs)
  for (let removed = { rows: 1, bytes: 0 }; removed.rows > 0 && bytes > bytesMax && !signal?.aborted; ) {
    removed = await trim.removeOldest(bytes - bytesMax, nowMs)
    bytes -= removed.bytes
  }
}
