/**
 * The records of inserts that a log only refers to (`Dialect.logRefersToRows`): what the first change of the row after
 * the insert had before it, or that of the row, where it has not changed. The key of a removed row may be used again,
 * so the changes are looked up first. They are trimmed in their order, none before the insert.
 */
import type { Dialect } from '../../../engines/sql/dialect.ts'
import { type SelectColumn, type SelectList, selectList } from '../../../engines/sql/page-query.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import type { Table } from '../../../query/table.ts'
import type { Namespaces } from '../resolve-table.ts'
import { createTableRows, type RecordRow, type TableRows } from '../rows.ts'
import { takeVersion, versionName } from '../version.ts'
import { isFirstChange, isReference, isReferenceSql, type LoggedTexts, parseRecord, readBefore } from './changes.ts'
import { readRequests } from './insert-entries.ts'

/** A change of a log with its row and the first change of that, as `from` joins them. Fields never begin with `_`. */
type JoinedRow = RecordRow & {
  readonly _change: number
  readonly _before: string | null
  readonly _after: string | null
  readonly _nextBefore: string | null
  readonly _nextAfter: string | null
}

/** A change with its records. */
export interface JoinedChange {
  readonly seq: number
  readonly before: RecordRow | null
  /** Undefined where the record is lost with its table. */
  readonly after: RecordRow | null | undefined
}

/** Whether a change is complete. */
export const hasRecord = (change: JoinedChange): change is JoinedChange & { readonly after: RecordRow | null } =>
  change.after !== undefined

/** Reads the changes of one table together with the records that they refer to. */
export interface JoinedLog {
  readonly list: SelectList
  /** ` FROM …`, with the entries of the log as `_log`. */
  readonly from: SqlText
  /** The number of a change. Those of one entry are up to that of the entry. */
  readonly number: SqlText
  /** The change in a row of `from`. */
  changeOf(row: RecordRow): JoinedChange
}

const log = (column: string): SqlText => sql`"_log".${ident(column)}`
const later = (column: string): SqlText => sql`"_later".${ident(column)}`

const isInsert = isReferenceSql(log('row'), log('before'))
/** The key of an inserted row. */
const key = sql`${log('row')} + "_each".key`
const number = sql`${log('seq')} - CASE WHEN ${isInsert} THEN json_array_length(${log('after')}) - 1 - "_each".key ELSE 0 END`

/** The number of the first change of an inserted row. The condition is that of the index. */
const firstChange = ({ table }: TableRows, dialect: Dialect): SqlText =>
  sql`(SELECT min(seq) FROM ${dialect.from({ ...table, name: '_changes' }, sql`"_later"`)}
    WHERE ${later('table')} = ${table.name} AND ${later('row')} = ${key} AND ${later('seq')} > ${log('seq')}
    AND ${isFirstChange(later('row'), later('before'))})`

export function createJoinedLog(rows: TableRows, dialect: Dialect): JoinedLog {
  const changes = { ...rows.table, name: '_changes' }
  const short = (column: SqlText, name: string): SelectColumn => ({ column, name, kind: 'short' })
  const text = (column: SqlText, name: string): SelectColumn => ({ column, name, kind: 'text' })
  const list = selectList([
    short(number, '_change'),
    text(log('before'), '_before'),
    text(log('after'), '_after'),
    text(sql`"_next"."before"`, '_nextBefore'),
    text(sql`"_next"."after"`, '_nextAfter'),
    short(rows.version, versionName),
  ])
  const from = sql` FROM ${dialect.from(changes, sql`"_log"`)}
    JOIN json_each(CASE WHEN ${isInsert} THEN ${log('after')} ELSE '[0]' END) AS "_each"
    LEFT JOIN ${rows.from} ON ${isInsert} AND ${rows.key} = ${key}
    LEFT JOIN ${dialect.from(changes, sql`"_next"`)} ON ${isInsert}
      AND "_next".seq = ${firstChange(rows, dialect)}`

  function insertedOf({ _nextBefore, _nextAfter, ...row }: JoinedRow): RecordRow | undefined {
    if (_nextBefore !== null) return readBefore(_nextBefore, parseRecord(_nextAfter)) ?? undefined
    if (row[versionName] === null) return undefined
    takeVersion(row)
    return rows.fromSql(row)
  }

  return {
    list: { ...list, text: join([list.text, rows.columns(true)], ', ') },
    from,
    number,
    changeOf(joined) {
      const { _change, _before, _after, ...rest } = joined as JoinedRow
      if (isReference(_after)) return { seq: _change, before: null, after: insertedOf(rest as JoinedRow) }
      const after = parseRecord(_after)
      return { seq: _change, before: readBefore(_before, after), after }
    },
  }
}

/** A table of a log's namespace by its name; null for one that is not declared any more. */
export type FindRows = (tableName: string) => TableRows | null

/** Finds the stored tables of all namespaces. Each is compiled once per configuration. */
export function createFindRows(storedNamespaces: () => Namespaces) {
  const compiled = new WeakMap<Table, TableRows>()
  return (namespace: string, tableName: string, dialect: Dialect): TableRows | null => {
    const table = storedNamespaces().get(namespace)?.tables.get(tableName)?.table
    if (!table) return null
    let rows = compiled.get(table)
    if (!rows) {
      rows = createTableRows(table, dialect)
      compiled.set(table, rows)
    }
    return rows
  }
}

/** An entry of a log. */
export interface LogEntry extends LoggedTexts {
  readonly seq: number | string
  readonly table: string
  /** Empty where the entry is of inserts. */
  readonly id: string
  /** That of a change, or those of an entry (`readRequests`). */
  readonly request: string
}

/** A change of an entry: `seq` is its own number, `entry` that of the entry. */
export type EntryChange<Entry> = Entry & { readonly seq: number; readonly entry: number }

/** The changes of entries, without their records. */
export function changesOfEntries<Entry extends LogEntry>(entries: readonly Entry[]): EntryChange<Entry>[] {
  return entries.flatMap((one) => {
    const entry = Number(one.seq)
    if (!isReference(one.after)) return [{ ...one, seq: entry, entry }]
    const count = [JSON.parse(one.after as string)].flat().length
    const requests = readRequests(one.request, count)
    return requests.map((request, at) => ({ ...one, request, seq: entry - count + 1 + at, entry }))
  })
}

/** Replaces references to rows by their records and ids. Changes whose records are lost are left out. */
export type ResolveReferences = <Change extends EntryChange<LogEntry>>(
  changes: readonly Change[],
) => Promise<readonly Change[]>

export function createResolveReferences(database: Database, findRows: FindRows): ResolveReferences {
  async function recordsOf(tableName: string, entries: readonly number[]): Promise<Map<number, RecordRow>> {
    const rows = findRows(tableName)
    if (!rows) return new Map()
    const { list, from, changeOf } = joinedLogOf(rows, database.dialect)
    const found = await database.all<RecordRow>(
      sql`SELECT ${list.text}${from} WHERE ${database.dialect.inList(log('seq'), entries, 'number')}`,
    )
    return new Map(found.map(changeOf).flatMap(({ seq, after }) => (after ? [[seq, after]] : [])))
  }

  return async (changes) => {
    const byTable = Map.groupBy(
      changes.filter(({ after }) => isReference(after)),
      ({ table }) => table,
    )
    if (byTable.size === 0) return changes
    const records = new Map<number, RecordRow>()
    for (const [table, some] of byTable) {
      const entries = [...new Set(some.map(({ entry }) => entry))]
      for (const [seq, record] of await recordsOf(table, entries)) records.set(seq, record)
    }
    return changes.flatMap((change) => {
      if (!isReference(change.after)) return [change]
      const record = records.get(change.seq)
      return record ? [{ ...change, id: record.id as string, after: JSON.stringify(record) }] : []
    })
  }
}

const joinedLogs = new WeakMap<TableRows, JoinedLog>()

/** Compiled once per table. */
export function joinedLogOf(rows: TableRows, dialect: Dialect): JoinedLog {
  let joined = joinedLogs.get(rows)
  if (!joined) {
    joined = createJoinedLog(rows, dialect)
    joinedLogs.set(rows, joined)
  }
  return joined
}
