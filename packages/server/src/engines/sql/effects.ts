/**
 * The effects of jobs. The n-th write of a job has the same key in every attempt, and its result is stored in the
 * transaction of the write (`stored-responses`): a repeated attempt gets the result and changes nothing. Errors are not
 * stored, since they had no effect, and the content of the write is not compared. Results are kept for as long as their
 * job may run again.
 */
import { changesTrimRowsMax } from '../../limits/sqlite.ts'
import { effectKeptMinMs, effectPagesMax, effectResultCharsMax } from '../../limits/writes.ts'
import type { Database, Transaction } from './sql.ts'
import { type SqlText, sql } from './sql-text.ts'
import { findResponse, responsesTable, storeResponse } from './stored-responses.ts'

/** The other keys of stored responses are hexadecimal. */
const prefix = 'job:'

/** The stored key of an effect, which is `{job}:{n}`. */
export const storedKeyOf = (effectKey: string): string => `${prefix}${effectKey}`

/** The condition for the keys of effects. */
export const isEffectKey: SqlText = sql`(key >= ${prefix} AND key < ${'job;'})`

/** The job of a stored key: the part of the effect key before the last colon. */
const jobOf = (key: string): string => key.slice(prefix.length, key.lastIndexOf(':'))

/** Whose write it is, and what it is to a job. */
export interface Effect {
  /** Undefined for a write that is no effect of a job. */
  readonly effectKey: string | undefined
  /** See `WriteOptions`. */
  readonly caller: string
  readonly nowMs: number
}

export interface EffectTarget {
  readonly database: Database
  /** Has a table of stored responses. */
  readonly namespace: string
}

/**
 * Runs `work` in a transaction, at most once per effect key; without a key it is `database.write`. Resolves with the
 * result of the first call with the key: a text of at most `effectResultCharsMax` characters.
 */
export function writeEffect(
  { database, namespace }: EffectTarget,
  { effectKey, caller, nowMs }: Effect,
  work: (tx: Transaction) => Promise<string>,
): Promise<string> {
  if (effectKey === undefined) return database.write(work, { caller })
  const table = responsesTable(namespace, database.dialect)
  const key = storedKeyOf(effectKey)
  return database.write(
    async (tx) => {
      const stored = await findResponse(tx, table, { key, sinceMs: 0 })
      if (stored) return stored.body ?? ''
      const body = await work(tx)
      if (body.length > effectResultCharsMax) throw new RangeError(`The result of ${key} has ${body.length} characters`)
      storeResponse(tx, table, { key, nowMs }, { fingerprint: '', status: 200, body })
      return body
    },
    { caller },
  )
}

export interface TrimEffects {
  readonly nowMs: number
  readonly signal: AbortSignal
  /** Those of these jobs that may run again. */
  readonly findRepeatable: (ids: readonly string[]) => Promise<ReadonlySet<string>>
  /** Where the last run ended; 0 at first. */
  readonly after: number
}

/**
 * Deletes the results of jobs that cannot run again, `effectPagesMax` pages at most, from the table of stored
 * responses. Starts no step after the signal. Resolves with the place at which the next run continues: kept results do
 * not hide those behind them. `trimByTime` has set future timestamps before.
 */
export async function trimEffects(
  database: Database,
  table: SqlText,
  { nowMs, signal, findRepeatable, after }: TrimEffects,
): Promise<number> {
  const old = sql`at < ${nowMs - effectKeptMinMs} AND ${isEffectKey}`
  let last = after
  for (let page = 0; page < effectPagesMax && !signal.aborted; page++) {
    const rows = await database.all<{ seq: number | string; key: string }>(
      sql`SELECT seq, key FROM ${table} WHERE ${old} AND seq > ${last} ORDER BY seq LIMIT ${changesTrimRowsMax}`,
    )
    const repeatable = await findRepeatable([...new Set(rows.map(({ key }) => jobOf(key)))])
    const removable = rows.map(({ key }) => key).filter((key) => !repeatable.has(jobOf(key)))
    const isRemovable = database.dialect.inList(sql`key`, removable, 'text')
    if (removable.length > 0) await database.write((tx) => tx.run(sql`DELETE FROM ${table} WHERE ${isRemovable}`))
    if (rows.length < changesTrimRowsMax) return 0
    last = Number(rows.at(-1)?.seq)
  }
  return last
}
