/**
 * The records of inserts that a log only refers to (`Dialect.logRefersToRows`): that of the row, where it has not
 * changed since, or else what the next change of the row had before it.
 */
import type { Dialect } from '../../../engines/sql/dialect.ts'
import { type SelectColumn, type SelectList, selectList } from '../../../engines/sql/page-query.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import type { Table } from '../../../query/table.ts'
import type { Namespaces } from '../resolve-table.ts'
import { createTableRows, type RecordRow, type TableRows } from '../rows.ts'
import { takeVersion, versionName } from '../version.ts'
import {
  isFirstModification,
  isReference,
  isReferenceSql,
  type LoggedTexts,
  parseRecord,
  readBefore,
} from './changes.ts'

/** A change of a log with its row and its next change, as `from` joins them. Fields never begin with `_`. */
type JoinedRow = RecordRow & {
  readonly _change: number
  readonly _before: string | null
  readonly _after: string | null
  readonly _inserted: number | null
  readonly _nextBefore: string | null
  readonly _nextAfter: string | null
}

/** A change with its records. */
export interface JoinedChange {
  readonly seq: number
  readonly before: RecordRow | null
  /** Undefined where the record is lost: the next change of its row is trimmed. */
  readonly after: RecordRow | null | undefined
}

/** Whether a change is complete. */
export const hasRecord = (change: JoinedChange): change is JoinedChange & { readonly after: RecordRow | null } =>
  change.after !== undefined

/** Reads the changes of one table together with the records that they refer to. */
export interface JoinedLog {
  readonly list: SelectList
  /** ` FROM …`, with the log as `_log`. */
  readonly from: SqlText
  /** The change in a row of `from`. */
  changeOf(row: RecordRow): JoinedChange
}

const log = (column: string): SqlText => sql`"_log".${ident(column)}`
const later = (column: string): SqlText => sql`"_later".${ident(column)}`

/** The number of the next change of an inserted row. The two conditions are those of the indexes of the log. */
function nextChange({ table }: TableRows, dialect: Dialect): SqlText {
  const of = (condition: SqlText): SqlText =>
    sql`coalesce((SELECT min(seq) FROM ${dialect.from({ ...table, name: '_changes' }, sql`"_later"`)}
      WHERE ${later('table')} = ${table.name} AND ${later('id')} = ${log('id')} AND ${later('seq')} > ${log('seq')}
      AND ${condition}), ${Number.MAX_SAFE_INTEGER})`
  const removal = of(sql`${later('after')} IS NULL`)
  const modification = of(isFirstModification(later('before')))
  return sql`min(${removal}, ${modification})`
}

export function createJoinedLog(rows: TableRows, dialect: Dialect): JoinedLog {
  const changes = { ...rows.table, name: '_changes' }
  const isUnchanged = sql`${rows.version} = ${log('version')}`
  const short = (column: SqlText, name: string): SelectColumn => ({ column, name, kind: 'short' })
  const text = (column: SqlText, name: string): SelectColumn => ({ column, name, kind: 'text' })
  const list = selectList([
    short(log('seq'), '_change'),
    text(log('before'), '_before'),
    text(log('after'), '_after'),
    short(log('version'), '_inserted'),
    text(sql`"_next"."before"`, '_nextBefore'),
    text(sql`"_next"."after"`, '_nextAfter'),
    short(rows.version, versionName),
  ])
  const from = sql` FROM ${dialect.from(changes, sql`"_log"`)}
    LEFT JOIN ${rows.from} ON ${isReferenceSql(log('after'))} AND ${rows.name}."id" = ${log('id')}
    LEFT JOIN ${dialect.from(changes, sql`"_next"`)} ON ${isReferenceSql(log('after'))}
      AND "_next".seq = CASE WHEN ${isUnchanged} THEN NULL ELSE ${nextChange(rows, dialect)} END`

  function insertedOf({ _inserted, _nextBefore, _nextAfter, ...row }: JoinedRow): RecordRow | undefined {
    const isStored = row[versionName] !== null
    const version = takeVersion(row)
    if (_nextBefore !== null && !(isStored && version === _inserted))
      return readBefore(_nextBefore, parseRecord(_nextAfter)) ?? undefined
    // A migration may have raised the version of the row without a change.
    return isStored ? rows.fromSql(row) : undefined
  }

  return {
    list: { ...list, text: join([list.text, rows.columns(true)], ', ') },
    from,
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

/** Replaces references to rows by their records. Changes whose records are lost, as if trimmed, are left out. */
export type ResolveReferences = <Row extends LoggedTexts & { readonly seq: number | string; readonly table: string }>(
  rows: readonly Row[],
) => Promise<readonly Row[]>

export function createResolveReferences(database: Database, findRows: FindRows): ResolveReferences {
  async function recordsOf(tableName: string, seqs: readonly number[]): Promise<Map<number, string>> {
    const rows = findRows(tableName)
    if (!rows) return new Map()
    const { list, from, changeOf } = joinedLogOf(rows, database.dialect)
    const found = await database.all<RecordRow>(
      sql`SELECT ${list.text}${from} WHERE ${database.dialect.inList(log('seq'), seqs, 'number')}`,
    )
    const records = found.map(changeOf).filter(hasRecord)
    return new Map(records.map(({ seq, after }) => [seq, JSON.stringify(after)]))
  }

  return async (rows) => {
    const byTable = Map.groupBy(
      rows.filter(({ after }) => isReference(after)),
      ({ table }) => table,
    )
    if (byTable.size === 0) return rows
    const records = new Map<number, string>()
    for (const [table, some] of byTable) {
      const seqs = some.map(({ seq }) => Number(seq))
      for (const [seq, text] of await recordsOf(table, seqs)) records.set(seq, text)
    }
    return rows.flatMap((row) => {
      if (!isReference(row.after)) return [row]
      const after = records.get(Number(row.seq))
      return after === undefined ? [] : [{ ...row, after }]
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
