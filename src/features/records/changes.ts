/**
 * The change log: every write appends what it did to `_changes` in the same transaction, hidden fields included, so
 * that readers can follow the database without losing a change. Trimmed by age.
 */
import type { Dialect, TableRef } from '../../engines/dialect.ts'
import type { Database } from '../../engines/sql.ts'
import { ident, join, type SqlText, sql } from '../../engines/sql-text.ts'
import { changesTrimRowsMax } from '../../limits.ts'
import type { Row } from '../../query/matches.ts'
import type { Table } from '../../query/table.ts'

export type ChangeType = 'added' | 'modified' | 'removed'

/** One row's way through one write; `before` is null for `added`, `after` for `removed`. */
export interface Change {
  readonly table: Table
  readonly id: string
  readonly before: Row | null
  readonly after: Row | null
}

/** The log of a namespace; every instance of a dynamic one has its own. */
export const changeLog = ({ namespace, perInstance }: Omit<TableRef, 'name'>): TableRef => ({
  namespace,
  name: '_changes',
  perInstance,
})

/** `request` groups the changes of one request; `at` is in milliseconds since 1970; `before` and `after` are JSON. */
export function createChangeLog(ref: Omit<TableRef, 'name'>, dialect: Dialect): SqlText[] {
  const log = changeLog(ref)
  const own = dialect.own(log)
  const owned = own ? sql`${own.column} TEXT NOT NULL, ` : sql``
  const create = sql`CREATE TABLE IF NOT EXISTS ${dialect.target(log)} (${join(dialect.logHead, ', ')}, ${owned}at BIGINT NOT NULL,
    request TEXT NOT NULL, "table" TEXT NOT NULL, id TEXT NOT NULL, before TEXT, after TEXT)`
  return [create, ...dialect.indexLog(log)]
}

const textOf = (record: Row | null): string | null => (record ? JSON.stringify(record) : null)

export type AppendChange = (change: Change, requestId: string, nowMs: number) => SqlText

/** Makes the statement that appends a change of this table, within the write that makes it. */
export function createAppendChange(table: TableRef, dialect: Dialect): AppendChange {
  const log = changeLog(table)
  const own = dialect.own(log)
  const columns = sql`${own ? sql`${own.column}, ` : sql``}at, request, "table", id, before, after`
  const { text } = sql`INSERT INTO ${dialect.target(log)} (${columns}) VALUES (${own ? sql`${own.value}, ` : sql``}`
  const whole = `${text}?, ?, ?, ?, ?, ?)`
  return ({ id, before, after }, requestId, nowMs) => ({
    text: whole,
    values: [nowMs, requestId, table.name, id, textOf(before), textOf(after)],
  })
}

export type AppendChanges = (changes: readonly Change[], requestId: string, nowMs: number) => SqlText

/** The same for any number of changes; null where a statement each is as quick. */
export function createAppendChanges(table: TableRef, dialect: Dialect): AppendChanges | null {
  const statement = dialect.insertMany?.(changeLog(table), [
    { column: ident('at'), type: 'integer' },
    { column: ident('request'), type: 'text' },
    { column: ident('table'), type: 'text' },
    { column: ident('id'), type: 'text' },
    { column: ident('before'), type: 'text' },
    { column: ident('after'), type: 'text' },
  ])
  if (!statement) return null
  return (changes, requestId, nowMs) =>
    statement([
      changes.map(() => nowMs),
      changes.map(() => requestId),
      changes.map(() => table.name),
      changes.map(({ id }) => id),
      changes.map(({ before }) => textOf(before)),
      changes.map(({ after }) => textOf(after)),
    ])
}

/** Removes changes older than `beforeMs`, the oldest first and a bounded number at a time. Gives how many went. */
export function trimChanges(database: Database, ref: Omit<TableRef, 'name'>, beforeMs: number): Promise<number> {
  const log = database.dialect.target(changeLog(ref))
  return database.write((tx) =>
    tx.run(sql`DELETE FROM ${log} WHERE at < ${beforeMs} AND seq IN (
      SELECT seq FROM ${log} ORDER BY seq LIMIT ${changesTrimRowsMax})`),
  )
}
