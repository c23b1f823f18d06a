/**
 * What of a table's rows an answer needs, and how rows become its records: the select list of the shown fields and of
 * those that only the order needs, and both ways to JSON, by objects or straight from what is stored.
 */
import type { Dialect } from '../../../engines/sql/dialect.ts'
import { type PageQuery, type SelectColumn, type SelectList, selectList } from '../../../engines/sql/page-query.ts'
import { ident, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { cursorCharsMax, projectedMembersMax } from '../../../limits/api.ts'
import type { Field, FieldType } from '../../../query/table.ts'
import { extraColumn } from '../../../query/to-sql.ts'
import type { TableCall } from '../resolve-table.ts'
import type { RecordRow, TableRows } from '../rows.ts'

export interface RowReader {
  readonly list: SelectList
  readonly key: PageQuery['key']
  /** Characters of a row, at most, that are read for its cursor alone. */
  readonly keyChars: number
  /** The row of an id; a condition may follow. */
  byId(id: string): SqlText
  /**
   * Turns a row just read into a record with the fields that were read; changes and gives the same object if it can.
   */
  record(row: RecordRow): RecordRow
  /** Whether a field of this name may be among the shown ones. */
  shows(name: string): boolean
  /** The shown fields of a record. */
  show(record: RecordRow): RecordRow
  /** The shown fields of a row just read, as JSON: nothing is parsed on the way. */
  json(row: RecordRow): string
}

/** What `fields` names; null for every field. */
export type Fields = ReadonlySet<string> | null

/** So many characters make a cursor, which is base 64, longer than a cursor may be: it then names the record. */
const keyCharsMax = Math.ceil((cursorCharsMax * 3) / 4)

/** Fields that are read but not shown. */
export interface HiddenFields {
  /** Read whole: what highlights are made of. */
  readonly whole?: readonly string[]
  /** For cursors: of a text longer than a cursor may be, only as much as shows that it is. */
  readonly keys?: readonly string[]
}

const kinds: Readonly<Record<FieldType, SelectColumn['kind']>> = {
  string: 'text',
  text: 'text',
  datetime: 'short',
  number: 'short',
  boolean: 'short',
  json: 'json',
}

/** Names that are spelled alike as a JSON path and as a JSON text on every engine. */
const plainMember = /^[A-Za-z0-9_]+$/

const memberName = (at: number): string => `_m${at}`

/** Those fields of a record that were asked for. */
export function project(record: RecordRow, fields: Fields): RecordRow {
  if (!fields) return record
  const shown: RecordRow = {}
  for (const name of Object.keys(record)) if (fields.has(name)) shown[name] = record[name]
  return shown
}

/** Undeclared fields that are read one by one; null where the stored object is read whole. */
function findMembers({ table }: TableRows, fields: Fields, also: readonly string[]): readonly string[] | null {
  if (!table.schemaless) return []
  if (!fields) return null
  const members = [...new Set([...fields, ...also])].filter((name) => !table.fields.has(name))
  return members.length <= projectedMembersMax && members.every((name) => plainMember.test(name)) ? members : null
}

/** JSON of a stored value of a declared field. */
function createValueWriter({ type }: Field, dialect: Dialect): (stored: unknown) => string {
  if (type === 'json') return (stored) => (typeof stored === 'string' ? stored : 'null')
  if (type === 'boolean')
    return (stored) => (stored === null || stored === undefined ? 'null' : String(dialect.toBoolean(stored)))
  return (stored) => JSON.stringify(stored ?? null)
}

/** The members of a JSON object's text that are shown, as text between commas. */
function membersOf(extra: string, fields: Fields): string {
  if (!fields) return extra.slice(1, -1)
  return JSON.stringify(project(JSON.parse(extra) as RecordRow, fields)).slice(1, -1)
}

const wholeRows = new WeakMap<TableRows, Map<boolean, RowReader>>()

/** The reader of one caller's rows. That of all fields is made once per table. */
export function readerOf(
  { rows, view, database }: Pick<TableCall, 'rows' | 'view' | 'database'>,
  fields: Fields,
  also: HiddenFields = {},
): RowReader {
  const { showsHidden } = view
  if (fields) return createRowReader(rows, database.dialect, showsHidden, fields, also)
  const made = wholeRows.get(rows) ?? new Map<boolean, RowReader>()
  wholeRows.set(rows, made)
  const reader = made.get(showsHidden) ?? createRowReader(rows, database.dialect, showsHidden, null)
  made.set(showsHidden, reader)
  return reader
}

function createRowReader(
  rows: TableRows,
  dialect: Dialect,
  showsHidden: boolean,
  fields: Fields,
  { whole = [], keys = [] }: HiddenFields = {},
): RowReader {
  const also = [...whole, ...keys]
  const { table, name: alias } = rows
  const isRead = (field: Field): boolean =>
    (showsHidden || !table.hidden.has(field.name)) && (!fields || fields.has(field.name) || also.includes(field.name))
  const read = [...table.fields.values()].filter((field) => isRead(field) || field.name === 'id')
  /** Whether of a text only the beginning is read. */
  const isKeyText = (name: string, type: FieldType): boolean =>
    fields !== null && kinds[type] === 'text' && name !== 'id' && !fields.has(name) && !whole.includes(name)
  const members = findMembers(rows, fields, also)
  const extra = sql`${alias}.${extraColumn}`
  const columns = read.map(({ name, type }): SelectColumn => {
    const stored: SqlText = sql`${alias}.${ident(name)}`
    if (!isKeyText(name, type)) return { column: stored, name, kind: name === 'id' ? 'short' : kinds[type] }
    return { column: sql`substr(${stored}, 1, ${keyCharsMax})`, name, kind: 'short' }
  })
  if (members === null) columns.push({ column: extra, name: extraColumnName, kind: 'json' })
  else
    for (const [at, name] of members.entries())
      columns.push({ column: dialect.memberJson(extra, name), name: memberName(at), kind: 'json' })

  const shown = read.filter(({ name }) => !fields || fields.has(name))
  const writers = shown.map((field) => ({
    name: field.name,
    key: `${JSON.stringify(field.name)}:`,
    write: createValueWriter(field, dialect),
  }))
  // The undeclared fields stand before the two times, as in `TableRows.fromSql`.
  const timesAt = writers.findIndex(({ name }) => name === 'createdAt' || name === 'updatedAt')
  const extraAt = timesAt < 0 ? writers.length : timesAt

  function extraJson(row: RecordRow): string {
    if (members === null) return membersOf(row[extraColumnName] as string, fields)
    const parts: string[] = []
    for (const [at, name] of members.entries()) {
      const text = row[memberName(at)]
      if (typeof text === 'string' && (!fields || fields.has(name))) parts.push(`${JSON.stringify(name)}:${text}`)
    }
    return parts.join(',')
  }

  /** The undeclared fields that were read one by one, as if the whole object had been. */
  function gather(row: RecordRow): RecordRow {
    if (members === null || !table.schemaless) return row
    const parts: string[] = []
    for (const [at, name] of members.entries()) {
      const text = row[memberName(at)]
      if (typeof text === 'string') parts.push(`${JSON.stringify(name)}:${text}`)
      delete row[memberName(at)]
    }
    row[extraColumnName] = `{${parts.join(',')}}`
    return row
  }

  const list = selectList(columns)
  const keyChars = read.filter(({ name, type }) => isKeyText(name, type)).length * keyCharsMax
  const idText = `SELECT ${list.text.text} FROM ${rows.from.text} WHERE ${alias.text}."id" = ?`
  const idValues = [...list.text.values, ...rows.from.values]

  const { rowKey } = dialect
  return {
    list,
    key: rowKey && { column: sql`${alias}.${rowKey}`, from: rows.from },
    keyChars,
    byId: (id) => ({ text: idText, values: [...idValues, id] }),
    record: (row) => rows.fromSql(gather(row)),
    shows: (name) => (fields ? fields.has(name) : table.schemaless || shown.some((field) => field.name === name)),
    show: (record) => project(record, fields),
    json(row) {
      const parts: string[] = []
      for (const [at, { name, key, write }] of writers.entries()) {
        if (at === extraAt && table.schemaless) parts.push(extraJson(row))
        parts.push(key + write(row[name]))
      }
      if (extraAt === writers.length && table.schemaless) parts.push(extraJson(row))
      return `{${parts.filter((part) => part !== '').join(',')}}`
    },
  }
}

const extraColumnName = '_extra'
