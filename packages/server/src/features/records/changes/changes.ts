/**
 * The change log: every write appends what it did to `_changes` in the same transaction, hidden fields included, so
 * that readers can follow the database without losing a change. Trimmed by `trim`.
 */
import type { Dialect, TableRef } from '../../../engines/sql/dialect.ts'
import { ident, join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import type { CompleteRow } from '../../../query/computed/computed-fields.ts'
import type { Expr } from '../../../query/expr.ts'
import { matches, type Row } from '../../../query/matches.ts'
import type { Table } from '../../../query/table.ts'

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
}

/** `afterText` is `after` as JSON where it is known. */
export const changeOf = (
  table: Table,
  id: string,
  before: Row | null,
  after: CompleteRow | null,
  version: number,
  afterText?: string | null,
): Change => ({
  table,
  id,
  before,
  after,
  afterText: afterText ?? textOf(after),
  version,
})

/** The log of a namespace; each instance of a dynamic namespace has its own. */
export const changeLog = ({ namespace, perInstance }: Omit<TableRef, 'name'>): TableRef => ({
  namespace,
  name: '_changes',
  perInstance,
})

/**
 * `request` groups the changes of one request; `at` is in milliseconds since 1970. `version` is null in changes from
 * before versions. `after` is the record as JSON.
 * `before` is the record of a removal; of a modification it is what `differenceOf` gives, so that an update of one
 * field of a large record stores that record once. Where the log refers to rows, `after` of an insert is the number of
 * characters of its record (`inserted-records`).
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
  const byTime = sql`CREATE INDEX IF NOT EXISTS "_changes_at" ON ${dialect.target(log)} (at)`
  const removals = sql`CREATE INDEX IF NOT EXISTS "_changes_removed" ON ${dialect.target(log)}
    (${own ? sql`${own.column}, ` : sql``}"table", id, seq) WHERE after IS NULL`
  return [create, byTime, removals, ...dialect.indexLog(log), ...histories]
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

/**
 * Removals whose rows had versions after the time of the removal: the clock was set back, or a row had a thousand
 * changes in one millisecond.
 */
const isAhead = sql`after IS NULL AND version > at * 1000 + 999`

/** Indexes the removals with versions after their times, of which there are normally none. */
export const indexRemovalsAhead = (log: TableRef, dialect: Dialect): SqlText =>
  sql`CREATE INDEX IF NOT EXISTS "_changes_ahead" ON ${dialect.target(log)} (version) WHERE ${isAhead}`

/** The delta of the first modification of a row begins with a space, so that an index finds it. */
const firstMark = ' '

export const isFirstModification = (before: SqlText): SqlText => sql`${before} < '!'`

/** Indexes the first modification of each row, which has what was inserted. */
export const indexFirstModifications = (log: TableRef, dialect: Dialect): SqlText =>
  sql`CREATE INDEX IF NOT EXISTS "_changes_first" ON ${dialect.target(log)} ("table", id)
    WHERE ${isFirstModification(sql`before`)}`

/** An upper bound of the versions of all removals in a log, by two lookups in indexes. */
export const greatestRemoval = (table: TableRef, dialect: Dialect): SqlText => {
  const log = dialect.target(changeLog(table))
  return sql`SELECT max(coalesce((SELECT max(at) FROM ${log}), 0) * 1000 + 999,
    coalesce((SELECT version FROM ${log} WHERE ${isAhead} ORDER BY version DESC LIMIT 1), 0)) AS version`
}

/** The records of a change as stored in the log. */
export interface LoggedTexts {
  readonly before: string | null
  readonly after: string | null
}

/** Digits of a number of characters, at most. */
const referenceCharsMax = 15

/** Whether `after` is a reference to the row of an insert (`Dialect.logRefersToRows`): a number, not an object. */
export const isReference = (after: string | null): boolean =>
  after !== null && after.length <= referenceCharsMax && after < ':'

/** The same in SQL, which does not read a long record. */
export const isReferenceSql = (after: SqlText): SqlText =>
  sql`octet_length(${after}) <= ${referenceCharsMax} AND ${after} < ':'`

/** Bytes of the records of a change; computed without reading them if the engine can. */
export const changeBytes = (dialect: Dialect): SqlText => {
  const stored = sql`coalesce(octet_length(after), 0)`
  const after = dialect.logRefersToRows
    ? sql`CASE WHEN ${isReferenceSql(sql`after`)} THEN CAST(after AS INTEGER) ELSE ${stored} END`
    : stored
  return sql`(coalesce(octet_length(before), 0) + ${after})`
}

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

/** A record that has two times, which are equal until it is modified unless a service key has set them. */
const isUnmodified = (record: Row): boolean =>
  typeof record.createdAt === 'string' && record.createdAt === record.updatedAt

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
type Appended = Omit<Change, 'table' | 'after'> & { readonly after: Row | null }

export type AppendChange = (change: Appended, requestId: string, nowMs: number) => SqlText

/** The texts of a change in a log that refers to rows: every reference has an indexed modification, if it has any. */
function referringTexts(change: Appended): LoggedTexts {
  const { before, after, afterText } = change
  if (!before && after && isUnmodified(after)) return { before: null, after: String(afterText?.length) }
  const text = beforeTextOf(change)
  return { before: before && after && isUnmodified(before) ? firstMark + text : text, after: afterText }
}

/**
 * Builds the statement that appends a change of this table to the log, in the transaction of the write. With
 * `refersToRows`, an insert is stored as a reference to its row: the number of characters of the record.
 */
export function createAppendChange(table: TableRef, dialect: Dialect, refersToRows = false): AppendChange {
  const textsOf = (change: Appended): LoggedTexts =>
    refersToRows ? referringTexts(change) : { before: beforeTextOf(change), after: change.afterText }
  const log = changeLog(table)
  const own = dialect.own(log)
  const columns = sql`${own ? sql`${own.column}, ` : sql``}at, request, "table", id, version, before, after`
  const { text } = sql`INSERT INTO ${dialect.target(log)} (${columns}) VALUES (${own ? sql`${own.value}, ` : sql``}`
  const statement = `${text}?, ?, ?, ?, ?, ?, ?)`
  return (change, requestId, nowMs) => {
    const { before, after } = textsOf(change)
    return { text: statement, values: [nowMs, requestId, table.name, change.id, change.version, before, after] }
  }
}

export type AppendChanges = (changes: readonly Change[], requestId: string, nowMs: number) => SqlText

/** The same for any number of changes in one statement; null if one statement per change is as fast. */
export function createAppendChanges(table: TableRef, dialect: Dialect): AppendChanges | null {
  const statement = dialect.insertMany?.(changeLog(table), [
    { column: ident('at'), type: 'integer' },
    { column: ident('request'), type: 'text' },
    { column: ident('table'), type: 'text' },
    { column: ident('id'), type: 'text' },
    { column: ident('version'), type: 'integer' },
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
      changes.map(({ version }) => version),
      changes.map(beforeTextOf),
      changes.map(({ afterText }) => afterText),
    ])
}
