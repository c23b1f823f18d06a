/**
 * Maps a table's rows between SQL and the API: select lists, conversions in both directions, and the statements that
 * write one row. Compiled once per table, so that a request only supplies values.
 */
import { createLru } from '../../base/concurrency/lru.ts'
import { mapInSlices } from '../../base/concurrency/slices.ts'
import type { Dialect, ManyColumn } from '../../engines/sql/dialect.ts'
import type { Append } from '../../engines/sql/sql.ts'
import { ident, join, type SqlScalar, type SqlText, type SqlValue, sql } from '../../engines/sql/sql-text.ts'
import { updateTextsMax } from '../../limits/sqlite.ts'
import type { CompleteRow } from '../../query/computed/computed-fields.ts'
import type { Row } from '../../query/matches.ts'
import type { Field, Table } from '../../query/table.ts'
import { extraColumn, storedColumns, storedTypes, storedValues } from '../../query/to-sql.ts'
import { type AppendChanges, type Change, createAppendChange, createAppendChanges } from './changes/changes.ts'
import { type AppendInserts, createReferringAppends } from './changes/insert-entries.ts'
import { type SearchColumn, searchColumnOf } from './search/search-column.ts'
import { takeVersion, type VersionedRow, versionColumn } from './version.ts'

/** A record in its API form, hidden fields included. */
export type RecordRow = Record<string, unknown>

/** The record with an additional member after its fields, unless the record has a field of that name. */
export const withExtra = (record: RecordRow, name: string, value: unknown): RecordRow =>
  Object.hasOwn(record, name) ? record : { ...record, [name]: value }

/** A complete record to insert, and its version. */
interface NewRow {
  readonly row: CompleteRow
  readonly version: number
}

export interface TableRows {
  readonly table: Table
  /** The alias that conditions use for the table. */
  readonly name: SqlText
  /** The table for `FROM`. */
  readonly from: SqlText
  /** Columns of a record in the order of its JSON, with or without hidden fields. */
  columns(showsHidden: boolean): SqlText
  /** The column by which the engine finds a row fastest. */
  readonly key: SqlText
  /** The column of the row's version. */
  readonly version: SqlText
  /** Converts a row to a record, in place if possible. */
  fromSql(row: RecordRow): RecordRow
  /** The same for a row that was selected with its version. */
  versionedFromSql(row: RecordRow): VersionedRow
  insert(record: CompleteRow, version: number): SqlText
  /**
   * Inserts any number of records in one statement, which is made in slices of the event loop; null if one statement
   * per record is as fast.
   */
  readonly insertMany: ((records: readonly NewRow[]) => Promise<SqlText>) | null
  /** Text fields with an index. */
  readonly indexedTexts: readonly string[]
  /** Writes the named fields of the record. */
  update(record: CompleteRow, changed: readonly string[], version: number): SqlText
  /** What `update` writes, for a statement of one's own. */
  assignments(record: CompleteRow, changed: readonly string[], version: number): SqlText
  setVersion(id: string, version: number): SqlText
  /** Selects the row with an id, with hidden fields and its version. */
  selectById(id: string): SqlText
  deleteById(id: string): SqlText
  readonly appendChange: (change: Change, requestId: string, nowMs: number) => Append
  /** Appends inserts of one version in succession as one entry; null if the log does not refer to rows. */
  readonly appendInserts: AppendInserts | null
  readonly appendChanges: AppendChanges | null
  /** The record without its hidden fields, unless `showsHidden`. */
  visible(record: RecordRow, showsHidden: boolean): RecordRow
}

type Convert = (row: RecordRow) => void

function createConversions(fields: readonly Field[], dialect: Dialect): readonly Convert[] {
  const conversions: Convert[] = []
  for (const { name, type } of fields) {
    if (type === 'boolean')
      conversions.push((row) => {
        const stored = row[name]
        if (stored !== null && stored !== undefined) row[name] = dialect.toBoolean(stored)
      })
    if (type === 'json' || type === 'geo')
      conversions.push((row) => {
        const stored = row[name]
        if (typeof stored === 'string') row[name] = JSON.parse(stored)
      })
  }
  return conversions
}

/** Places the undeclared fields after the declared ones, before the two timestamps. */
function spreadExtra(row: RecordRow): RecordRow {
  const { _extra, createdAt, updatedAt, ...rest } = row
  return { ...rest, ...(JSON.parse(_extra as string) as RecordRow), createdAt, updatedAt }
}

/** The undeclared fields of a record as stored JSON text. */
function extraOf(table: Table, record: Row): string {
  const extra: RecordRow = {}
  for (const name of Object.keys(record)) if (!table.fields.has(name)) extra[name] = record[name]
  return JSON.stringify(extra)
}

/** `storedOf` returns the values of the named columns. */
function createInsertMany(
  table: Table,
  dialect: Dialect,
  names: readonly SqlText[],
  storedOf: (record: Row) => SqlScalar[],
): TableRows['insertMany'] {
  if (!dialect.insertMany) return null
  const types = [...table.fields.values()].flatMap(storedColumns).map(({ type }) => type)
  const columns = names.map((column, at): ManyColumn => ({ column, type: types[at] ?? 'json' }))
  columns.push({ column: versionColumn, type: 'integer' })
  const search = searchColumnOf(table, dialect)
  const statement = dialect.insertMany(
    table,
    search ? [...columns, { column: search.column, type: search.type }] : columns,
  )
  return async (records) => {
    const rows = records.map(({ row, version }) => [...storedOf(row), version])
    const values = columns.map((_, at) => rows.map((row) => row[at] ?? null))
    return statement(search ? [...values, await mapInSlices(records, ({ row }) => search.textOf(row))] : values)
  }
}

/** The assignments of an update: of the same fields, their text is the same for every record. */
interface Assignments {
  readonly text: string
  /** The statement that makes them in the row with an id, its last value. */
  readonly update: string
  valuesOf(record: CompleteRow, version: number): SqlValue[]
}

/** `updateOf` completes the statement of an update. */
function createAssignments(
  table: Table,
  dialect: Dialect,
  updateOf: (sets: string) => string,
): (changed: readonly string[]) => Assignments {
  const known = createLru<string, Assignments>(updateTextsMax)
  const search = searchColumnOf(table, dialect)

  function compile(fields: readonly Field[], setsExtra: boolean, searched: SearchColumn | null): Assignments {
    const columns = [versionColumn, ...fields.flatMap(storedColumns).map(({ name }) => ident(name))]
    if (setsExtra) columns.push(extraColumn)
    const sets = columns.map((column) => `${column.text} = ?`)
    if (searched) sets.push(sql`${searched.column} = ${searched.bind('')}`.text)
    const text = sets.join(', ')
    return {
      text,
      update: updateOf(text),
      valuesOf(record, version) {
        const values: SqlValue[] = [version, ...storedValues(fields, record, dialect)]
        if (setsExtra) values.push(extraOf(table, record))
        if (searched) values.push(...searched.bind(searched.textOf(record)).values)
        return values
      },
    }
  }

  return (changed) => {
    const declared = changed.filter((name) => table.fields.has(name))
    const setsExtra = declared.length < changed.length
    const isSearched = search !== null && changed.some((name) => table.search.includes(name))
    const key = `${declared.join()} ${setsExtra} ${isSearched}`
    const found = known.get(key)
    if (found) return found
    const fields = declared.map((name) => table.fields.get(name) as Field)
    const compiled = compile(fields, setsExtra, isSearched ? search : null)
    known.set(key, compiled)
    return compiled
  }
}

export function createTableRows(table: Table, dialect: Dialect): TableRows {
  const fields = [...table.fields.values()]
  const conversions = createConversions(fields, dialect)
  const name = ident(table.name)
  const from = dialect.from(table, name)
  const target = dialect.target(table)
  const own = dialect.own(table)
  const listOf = (some: readonly Field[]): SqlText => {
    const columns = some.map((field) => sql`${name}.${ident(field.name)}`)
    return join(table.schemaless ? [...columns, sql`${name}.${extraColumn}`] : columns, ', ')
  }
  const allColumns = listOf(fields)
  const visibleColumns = listOf(fields.filter((field) => !table.hidden.has(field.name)))
  const searchColumn = searchColumnOf(table, dialect)
  const mine = own ? sql`${own.column} = ${own.value} AND ` : sql``
  const version = sql`${name}.${versionColumn}`
  const assignments = createAssignments(
    table,
    dialect,
    (sets) => `UPDATE ${target.text} SET ${sets} WHERE ${mine.text}"id" = ?`,
  )
  const referring = dialect.logRefersToRows ? createReferringAppends(table, dialect) : null
  const byId = `${sql`SELECT ${allColumns}, ${version} FROM ${from} WHERE ${name}."id" = `.text}?`

  const columnNames = fields.flatMap(storedColumns).map((column) => ident(column.name))
  if (table.schemaless) columnNames.push(extraColumn)
  const writtenColumns = [...columnNames, versionColumn]
  const insertText = insertTextOf(writtenColumns)
  const indexed = new Set([
    ...fields.filter((field) => field.unique).map((field) => field.name),
    ...table.indexes.flatMap((index) => index.fields),
  ])
  const indexedTexts = fields
    .filter(({ name, type }) => storedTypes[type] === 'text' && name !== 'id' && indexed.has(name))
    .map((field) => field.name)

  /** Text of the insert without search words, the same for every row. */
  function insertTextOf(names: readonly SqlText[]): string {
    const head = sql`INSERT INTO ${target} (${join(own ? [own.column, ...names] : names, ', ')})`.text
    return `${head} VALUES (${[...(own ? [own.value.text] : []), ...names.map(() => '?')].join(', ')})`
  }

  /** The stored values of a record, in the order of the columns. */
  function storedOf(record: Row): SqlScalar[] {
    const values = storedValues(fields, record, dialect)
    if (table.schemaless) values.push(extraOf(table, record))
    return values
  }

  function fromSql(row: RecordRow): RecordRow {
    for (const convert of conversions) convert(row)
    return table.schemaless ? spreadExtra(row) : row
  }

  return {
    table,
    name,
    from,
    columns: (showsHidden) => (showsHidden ? allColumns : visibleColumns),
    key: sql`${name}.${dialect.rowKey ?? ident('id')}`,
    version,
    fromSql,
    versionedFromSql: (row) => ({ version: takeVersion(row), row: fromSql(row) }),
    insert(record, version) {
      const values = [...storedOf(record), version]
      if (!searchColumn) return { text: insertText, values }
      const stored = join(
        values.map((value) => sql`${value}`),
        ', ',
      )
      const [columns, owned] = own ? [[own.column, ...writtenColumns], sql`${own.value}, `] : [writtenColumns, sql``]
      const words = searchColumn.bind(searchColumn.textOf(record))
      return sql`INSERT INTO ${target} (${join([...columns, searchColumn.column], ', ')}) VALUES (${owned}${stored}, ${words})`
    },
    insertMany: createInsertMany(table, dialect, columnNames, storedOf),
    indexedTexts,
    assignments(record, changed, next) {
      const { text, valuesOf } = assignments(changed)
      return { text, values: valuesOf(record, next) }
    },
    update(record, changed, next) {
      const { update, valuesOf } = assignments(changed)
      return { text: update, values: [...valuesOf(record, next), record.id as string] }
    },
    setVersion: (id, next) => ({ text: assignments([]).update, values: [next, id] }),
    selectById: (id) => ({ text: byId, values: [id] }),
    deleteById: (id) => sql`DELETE FROM ${target} WHERE ${mine}"id" = ${id}`,
    appendChange: referring?.change ?? createAppendChange(table, dialect),
    appendInserts: referring?.inserts ?? null,
    appendChanges: createAppendChanges(table, dialect),
    visible(record, showsHidden) {
      if (showsHidden || table.hidden.size === 0) return record
      const shown: RecordRow = {}
      for (const key of Object.keys(record)) if (!table.hidden.has(key)) shown[key] = record[key]
      return shown
    },
  }
}
