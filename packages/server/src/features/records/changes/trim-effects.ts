/** Deletes the stored responses of jobs' writes once their jobs cannot run again. */
import type { Database } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { changesTrimRowsMax } from '../../../limits/sqlite.ts'
import { effectKeptMinMs, effectPagesMax } from '../../../limits/writes.ts'
import { isEffectKey, jobOfEffect } from '../writes/idempotency.ts'

export interface TrimEffects {
  readonly nowMs: number
  readonly signal: AbortSignal
  readonly findRepeatable: (ids: readonly string[]) => Promise<ReadonlySet<string>>
}

/** Starts no step after the signal. The responses of jobs that may run again are kept. */
export async function trimEffects(
  database: Database,
  responses: SqlText,
  { nowMs, signal, findRepeatable }: TrimEffects,
): Promise<void> {
  const old = sql`at < ${nowMs - effectKeptMinMs} AND ${isEffectKey}`
  let after = 0
  for (let page = 0; page < effectPagesMax && !signal.aborted; page++) {
    const rows = await database.all<{ seq: number | string; key: string }>(
      sql`SELECT seq, key FROM ${responses} WHERE ${old} AND seq > ${after} ORDER BY seq LIMIT ${changesTrimRowsMax}`,
    )
    const last = rows.at(-1)
    if (!last) return
    after = Number(last.seq)
    const repeatable = await findRepeatable([...new Set(rows.map(({ key }) => jobOfEffect(key)))])
    const removable = rows.map(({ key }) => key).filter((key) => !repeatable.has(jobOfEffect(key)))
    const isRemovable = database.dialect.inList(sql`key`, removable, 'text')
    if (removable.length > 0) await database.write((tx) => tx.run(sql`DELETE FROM ${responses} WHERE ${isRemovable}`))
    if (rows.length < changesTrimRowsMax) return
  }
}
