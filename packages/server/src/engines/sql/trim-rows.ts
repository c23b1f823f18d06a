/**
 * Retention by age of tables with the columns `seq` and `at`, in steps of a bounded number of rows. A row with a future
 * timestamp was written under a clock that was ahead; its timestamp is set to the current time, since it would
 * otherwise be kept until then.
 */
import { changesTrimRowsMax, clockSkewMs } from '../../limits/sqlite.ts'
import type { Database } from './sql.ts'
import { type SqlText, sql } from './sql-text.ts'

/** Sets future timestamps to the current time, of `changesTrimRowsMax` rows at most. Returns their number. */
async function clampFuture(database: Database, table: SqlText, nowMs: number): Promise<number> {
  const ahead = sql`at > ${nowMs + clockSkewMs}`
  const [found] = await database.all(sql`SELECT seq FROM ${table} WHERE ${ahead} LIMIT 1`)
  if (!found) return 0
  return database.write((tx) =>
    tx.run(sql`UPDATE ${table} SET at = ${nowMs} WHERE seq IN (
      SELECT seq FROM ${table} WHERE ${ahead} ORDER BY at LIMIT ${changesTrimRowsMax})`),
  )
}

/** Deletes rows before a time; of these the ones of `only`. Starts no step after the signal. */
export async function trimByTime(
  database: Database,
  table: SqlText,
  {
    beforeMs,
    nowMs,
    only = sql`TRUE`,
    signal,
  }: { beforeMs: number; nowMs: number; only?: SqlText; signal: AbortSignal | undefined },
): Promise<void> {
  while (!signal?.aborted && (await clampFuture(database, table, nowMs)) === changesTrimRowsMax);
  const old = sql`at < ${beforeMs} AND ${only}`
  for (let removed = changesTrimRowsMax; removed === changesTrimRowsMax && !signal?.aborted; ) {
    const [found] = await database.all(sql`SELECT seq FROM ${table} WHERE ${old} LIMIT 1`)
    if (!found) return
    removed = await database.write((tx) =>
      tx.run(sql`DELETE FROM ${table} WHERE seq IN (
        SELECT seq FROM ${table} WHERE ${old} ORDER BY at LIMIT ${changesTrimRowsMax})`),
    )
  }
}
