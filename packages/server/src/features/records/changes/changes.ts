/**
 * The change log: every write appends what it did to `_changes` in the same transaction, hidden fields included, so
 * that readers can follow the database without losing a change. Trimmed by `trim`.
 */
import type { Dialect, TableRef } from '../../../engines/sql/dialect.ts'
import type { Append } from '../../../engines/sql/sql.ts'
import { ident, join, type SqlScalar, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import type { CompleteRow } from '../../../query/computed/computed-fields.ts'
import type { Expr } from '../../../query/expr.ts'
import { matches, type Row } from '../../../query/matches.ts'
import type { Table } from '../../../query/table.ts'
import { isInsertVersion } from '../version.ts'

/** The change of one row by one write; `before` is null for `added`, `after` for `removed`. */
export interface Change {
  readonly table: Table
  readonly id: string
  readonly before: Row | null
  readonly after: CompleteRow | null
  /** `after` as JSON. */
  readonly afterText: string | null
  /** The version of the row after the change; for `removed` greater than the version of the row. */
  readonly version: number
  /** The version of the row before the change; 0 for `added`. */
  readonly versionBefore: number
}

/** `afterText` is `after` as JSON where it is known. */
export const changeOf = (
  table: Table,
  id: string,
  before: Row | null,
  after: CompleteRow | null,
  version: number,
  versionBefore = 0,
  afterText?: string | null,
): Change => ({
  table,
  id,
  before,
  after,
  afterText: afterText ?? textOf(after),
  version,
  versionBefore,
})

/** The log of a namespace; each instance of a dynamic namespace has its own. */
export const changeLog = ({ namespace, perInstance }: Omit<TableRef, 'name'>): TableRef => ({
  namespace,
  name: '_changes',
  perInstance,
})

/**
 * `request` groups the changes of one request; `at` is in milliseconds since 1970. `version` is null in changes from
 * before versions. `after` is the record as JSON. `before` is the record of a removal; of a modification it is what
 * `differenceOf` gives, so that an update of one field of a large record stores that record once. Where the log refers
 * to rows, one entry is of all the rows that a request inserts in succession (`addLogRow`).
 */
export function createChangeLog(ref: Omit<TableRef, 'name'>, dialect: Dialect): SqlText[] {
  const log = changeLog(ref)
  const own = dialect.own(log)
  const owned = own ? sql`${own.column} TEXT NOT NULL, ` : sql``
  // Identifies the history of the log, so that a cursor of a lost history is recognized.
  const history = dialect.target({ ...log, name: '_history', perInstance: false })
  const histories = [
    sql`CREATE TABLE IF NOT EXISTS ${history} (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL)`,
    sql`INSERT INTO ${history} (one, id) VALUES (1, ${crypto.randomUUID()}) ON CONFLICT (one) DO NOTHING`,
  ]
  const create = sql`CREATE TABLE IF NOT EXISTS ${dialect.target(log)} (${join(dialect.logHead, ', ')}, ${owned}at BIGINT NOT NULL,
    request TEXT NOT NULL, "table" TEXT NOT NULL, id TEXT NOT NULL, before TEXT, after TEXT, ${logVersion})`
  const removals = sql`CREATE INDEX IF NOT EXISTS "_changes_removed" ON ${dialect.target(log)}
    (${own ? sql`${own.column}, ` : sql``}"table", id, seq) WHERE after IS NULL`
  return [create, removals, ...dialect.indexLog(log), ...histories]
}

const logVersion = sql`version BIGINT`

/** Extends a log from before versions. */
export const addLogVersion = (log: TableRef, dialect: Dialect): SqlText =>
  sql`ALTER TABLE ${dialect.target(log)} ADD COLUMN ${logVersion}`

/**
 * The greatest version with which rows with these ids were removed, by id, as far as the log reaches back: a row that
 * is inserted with the id of a removed one continues its versions.
 */
export const removedVersions = (table: TableRef, dialect: Dialect, ids: readonly string[]): SqlText => {
  const log = changeLog(table)
  const own = dialect.own(log)
  const mine = own ? sql`${own.column} = ${own.value} AND ` : sql``
  const removals = sql`FROM ${dialect.target(log)} WHERE ${mine}"table" = ${table.name} AND after IS NULL`
  const [id] = ids
  // The removals of one id are in the order of their versions. Without aggregation it takes a tenth of the time.
  if (ids.length === 1 && id !== undefined)
    return sql`SELECT id, version ${removals} AND id = ${id} ORDER BY seq DESC LIMIT 1`
  return sql`SELECT id, max(version) AS version ${removals} AND ${dialect.inList(ident('id'), ids, 'text')} GROUP BY id`
}

/** Indexes the versions of removals, for `greatestRemoval`. */
export const indexRemovedVersions = (log: TableRef, dialect: Dialect): SqlText =>
  sql`CREATE INDEX IF NOT EXISTS "_changes_version" ON ${dialect.target(log)} (version) WHERE after IS NULL`

/** The indexes of earlier releases. */
export const dropEarlierIndexes = (log: TableRef, dialect: Dialect): SqlText[] =>
  ['_changes_at', '_changes_ahead', '_changes_first'].map(
    (name) => sql`DROP INDEX IF EXISTS ${dialect.indexName(log, name)}`,
  )

/**
 * The column of a log that refers to rows. An entry with it and without `before` is of inserts: of as many rows as the
 * list `after` has elements, the numbers of characters of their records; `row` is the key of the first of them, and
 * those of the others follow. Of these changes the last one has the number of the entry, and the others those before
 * it. An entry with `before` is of the first change of an inserted row after the insert: it leads to what was inserted.
 */
const row = ident('row')

/** Extends a log so that it can refer to rows. */
export const addLogRow = (log: TableRef, dialect: Dialect): SqlText[] => [
  sql`ALTER TABLE ${dialect.target(log)} ADD COLUMN ${row} BIGINT`,
  sql`CREATE INDEX "_changes_row" ON ${dialect.target(log)} ("table", ${row}) WHERE ${isFirstChange(row, ident('before'))}`,
]

/**
 * Gives the references of earlier releases, which are to ids, the keys of their rows. The rows that have been removed
 * since get keys of their own, the negative numbers of their removals.
 */
export function referByRow(table: TableRef, dialect: Dialect): SqlText {
  const log = dialect.target(changeLog(table))
  const of = (column: string): SqlText => sql`${log}.${ident(column)}`
  const removal = sql`SELECT min(seq) FROM ${log} AS "_later" WHERE "_later"."table" = ${of('table')}
    AND "_later".id = ${of('id')} AND "_later".after IS NULL AND "_later".seq >= ${of('seq')}`
  const stored = sql`SELECT ${dialect.rowKey ?? ident('id')} FROM ${dialect.target(table)} WHERE id = ${of('id')}`
  const isNumber = sql`before IS NULL AND octet_length(after) <= 15 AND after < ':'`
  return sql`UPDATE ${log} SET ${row} = coalesce(-(${removal}), (${stored})),
    after = CASE WHEN ${isNumber} THEN '[' || after || ']' ELSE after END
    WHERE "table" = ${table.name} AND (after IS NULL OR before < '!' OR (${isNumber}))`
}

/** Whether an entry is the first change of an inserted row after the insert, as the index has it. */
export const isFirstChange = (row: SqlText, before: SqlText): SqlText =>
  sql`${row} IS NOT NULL AND ${before} IS NOT NULL`

/** Whether an entry is of inserts, as SQL that does not read a long record. */
export const isReferenceSql = (row: SqlText, before: SqlText): SqlText => sql`${row} IS NOT NULL AND ${before} IS NULL`

/** Whether the text `after` of an entry is a reference to inserted rows: a list, in earlier releases a number. */
export const isReference = (after: string | null): boolean => after !== null && after < '{'

/** The greatest version of the removals in a log, by one lookup. */
export const greatestRemoval = (table: TableRef, dialect: Dialect): SqlText =>
  sql`SELECT version FROM ${dialect.target(changeLog(table))} WHERE after IS NULL ORDER BY version DESC LIMIT 1`

/** The records of a change as stored in the log. */
export interface LoggedTexts {
  readonly before: string | null
  readonly after: string | null
}

/** Bytes of the records of an entry; computed without reading them if the engine can. */
export const entryBytes = (dialect: Dialect): SqlText => {
  const stored = sql`coalesce(octet_length(after), 0)`
  const after = dialect.logRefersToRows
    ? sql`CASE WHEN ${isReferenceSql(row, ident('before'))} THEN (SELECT sum(value) FROM json_each(after)) ELSE ${stored} END`
    : stored
  return sql`(coalesce(octet_length(before), 0) + ${after})`
}

/** Number of changes of an entry. */
export const entryChanges = (dialect: Dialect): SqlText =>
  dialect.logRefersToRows
    ? sql`CASE WHEN ${isReferenceSql(row, ident('before'))} THEN json_array_length(after) ELSE 1 END`
    : sql`1`

const textOf = (record: Row | null): string | null => (record ? JSON.stringify(record) : null)

/**
 * The reverse delta of a modification: `[old values by field, fields that did not exist]`. An array, so that it cannot
 * be confused with a record.
 */
function differenceOf(before: Row, after: Row): string {
  const old: Record<string, unknown> = {}
  for (const name of Object.keys(before)) if (before[name] !== after[name]) old[name] = before[name]
  const lacked = Object.keys(after).filter((name) => !Object.hasOwn(before, name))
  return JSON.stringify([old, lacked])
}

const beforeTextOf = ({ before, after }: Pick<Appended, 'before' | 'after'>): string | null =>
  before && after ? differenceOf(before, after) : textOf(before)

/** The record before a change, restored from the log. Logs of earlier versions store it in full. */
export function readBefore(text: string | null, after: Record<string, unknown> | null): Record<string, unknown> | null {
  if (text === null) return null
  if (text.startsWith('{')) return JSON.parse(text) as Record<string, unknown>
  const [old, lacked] = JSON.parse(text) as [Record<string, unknown>, string[]]
  const before = { ...after, ...old }
  for (const name of lacked) delete before[name]
  return before
}

export const parseRecord = (text: string | null): Record<string, unknown> | null =>
  text === null ? null : (JSON.parse(text) as Record<string, unknown>)

/** By how much the changes move the number of rows for which the tree, without `exists`, is true. */
export function movedBy(
  expr: Expr,
  changes: readonly { readonly before: Row | null; readonly after: Row | null }[],
): number {
  const isIn = (row: Row | null): number => (row !== null && matches(expr, row) ? 1 : 0)
  return changes.reduce((sum, { before, after }) => sum - isIn(before) + isIn(after), 0)
}

/** A change of a row, or of what is no row and has no computed fields, such as a file. */
type Appended = Omit<Change, 'table' | 'after' | 'versionBefore'> & { readonly after: Row | null }

export type AppendChange = (change: Appended, requestId: string, nowMs: number) => Append

/** Whether the log refers to the row of a change: an insert whose row has not continued the versions of another. */
export const isReferable = ({ before, version }: Pick<Change, 'before' | 'version'>): boolean =>
  before === null && isInsertVersion(version)

/** Changes in successive runs of one version. */
export function runsOf(changes: readonly Change[]): Change[][] {
  const runs: Change[][] = []
  for (const change of changes) {
    const last = runs.at(-1)
    if (last?.[0]?.version === change.version) last.push(change)
    else runs.push([change])
  }
  return runs
}

/** The values of an entry, in the order of `createAppendChange`. */
export const valuesOf = (change: Appended, table: TableRef, requestId: string, nowMs: number): SqlScalar[] => [
  nowMs,
  requestId,
  table.name,
  change.id,
  change.version,
  beforeTextOf(change),
  change.afterText,
]

/** Builds the statement that appends a change of this table to the log, in the transaction of the write. */
export function createAppendChange(table: TableRef, dialect: Dialect): AppendChange {
  const log = changeLog(table)
  const own = dialect.own(log)
  const columns = sql`${own ? sql`${own.column}, ` : sql``}at, request, "table", id, version, before, after`
  const { text } = sql`INSERT INTO ${dialect.target(log)} (${columns}) VALUES (${own ? sql`${own.value}, ` : sql``}`
  const statement = `${text}?, ?, ?, ?, ?, ?, ?)`
  return (change, requestId, nowMs) => ({ text: statement, values: valuesOf(change, table, requestId, nowMs) })
}

export type AppendChanges = (changes: readonly Change[], requestId: string, nowMs: number) => Append

/** The same for any number of changes in one statement; null if one statement per change is as fast. */
export function createAppendChanges(table: TableRef, dialect: Dialect): AppendChanges | null {
  const statement = dialect.insertMany?.(changeLog(table), [
    { column: ident('at'), type: 'integer', isShared: true },
    { column: ident('request'), type: 'text', isShared: true },
    { column: ident('table'), type: 'text', isShared: true },
    { column: ident('id'), type: 'text' },
    { column: ident('version'), type: 'integer' },
    { column: ident('before'), type: 'text' },
    { column: ident('after'), type: 'text' },
  ])
  if (!statement) return null
  return (changes, requestId, nowMs) =>
    statement([
      nowMs,
      requestId,
      table.name,
      changes.map(({ id }) => id),
      changes.map(({ version }) => version),
      changes.map(beforeTextOf),
      changes.map(({ afterText }) => afterText),
    ])
}
