/**
 * Computes the computed fields of existing rows again, in transactions of a few rows. Each stores how far it came, so
 * that the next process continues there. No process serves the tables meanwhile: the migration ends afterwards.
 */
import { createSlices } from '../../../base/concurrency/slices.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Database, SqlRow, Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { recomputedChars, recomputedRowsMax, rowsReadAtOnceMin } from '../../../limits/writes.ts'
import { complete, findRecomputed } from '../../../query/computed/computed-fields.ts'
import type { Table } from '../../../query/table.ts'
import { createTableRows } from '../rows.ts'
import { migratedVersions } from '../version.ts'
import type { TableDescription } from './migration-plan.ts'
import type { StaleFields } from './stale-fields.ts'

/** Access to the description of a table, in a transaction that no other migration runs beside. */
export interface Descriptions {
  read(tx: Transaction): Promise<TableDescription | null>
  write(tx: Transaction, description: TableDescription): Promise<unknown>
}

interface Step {
  readonly isDone: boolean
  /** Rows to read next. */
  readonly limit: number
}

/** The rows after `after` in the order of their keys, of all instances that share the table. */
function pageOf(table: Table, dialect: Dialect, { after }: StaleFields, limit: number) {
  const rows = createTableRows(table, dialect)
  const own = dialect.own(table)
  const key = own ? sql`${own.column}, "id"` : sql`"id"`
  const owner = own ? sql`${own.column} AS "_owner", ` : sql``
  const valuesOf = ([first, second]: readonly string[]): SqlText =>
    second === undefined ? sql`(${first as string})` : sql`(${first as string}, ${second})`
  const rest = after ? sql` WHERE (${key}) > ${valuesOf(after)}` : sql``
  const from = sql`${dialect.target(table)} AS ${rows.name}`
  const columns = sql`${owner}${rows.columns(true)}, ${rows.version}`
  return {
    rows,
    query: sql`SELECT ${columns} FROM ${from}${rest} ORDER BY ${key} LIMIT ${limit}`,
    keyOf: (row: SqlRow): string[] => (own ? [row._owner as string, row.id as string] : [row.id as string]),
    where: (key: readonly string[]): SqlText =>
      own ? sql`(${own.column}, "id") = ${valuesOf(key)}` : sql`"id" = ${key[0] as string}`,
  }
}

const charsOf = (row: SqlRow): number =>
  Object.values(row).reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0)

async function recomputePage(
  tx: Transaction,
  dialect: Dialect,
  table: Table,
  descriptions: Descriptions,
  limit: number,
): Promise<Step> {
  const description = await descriptions.read(tx)
  if (!description?.stale) return { isDone: true, limit }
  const { rows, query, keyOf, where } = pageOf(table, dialect, description.stale, limit)
  const next = createSlices()
  const found = await tx.all<SqlRow>(query)
  let chars = 0
  let after = description.stale.after
  for (const one of found) {
    chars += charsOf(one)
    after = keyOf(one)
    const { row, version } = rows.versionedFromSql(one)
    const completed = complete(table, row)
    const changed = findRecomputed(table, row, completed)
    if (changed.length > 0)
      tx.send(
        sql`UPDATE ${dialect.target(table)} SET ${rows.assignments(completed, changed, version + migratedVersions)} WHERE ${where(after)}`,
      )
    const pause = next()
    if (pause) await pause
  }
  const { stale, ...settled } = description
  const isDone = found.length < limit
  await descriptions.write(tx, isDone ? settled : { ...settled, stale: { ...stale, after } })
  const average = chars / Math.max(1, found.length)
  const fitting = Math.floor(recomputedChars / Math.max(1, average))
  return { isDone, limit: Math.min(recomputedRowsMax, Math.max(1, fitting)) }
}

/** Brings the computed fields of a table up to date that its description notes as stale. */
export async function recompute(database: Database, table: Table, descriptions: Descriptions): Promise<void> {
  let limit = rowsReadAtOnceMin
  for (let isDone = false; !isDone; ) {
    const step = await database.write((tx) => recomputePage(tx, database.dialect, table, descriptions, limit), {
      isMigration: true,
    })
    isDone = step.isDone
    limit = step.limit
  }
}
