/**
 * Projection: the select list for the fields that a response shows and those that only the sort needs, and the
 * conversion of rows to JSON, either through objects or directly from stored text.
 */
import { createLru } from '../../../base/concurrency/lru.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import { type PageQuery, type SelectColumn, type SelectList, selectList } from '../../../engines/sql/page-query.ts'
import { ident, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { cursorCharsMax, projectedMembersMax } from '../../../limits/api.ts'
import { conditionShapesMax } from '../../../limits/sqlite.ts'
import type { Field, FieldType } from '../../../query/table.ts'
import { extraColumn } from '../../../query/to-sql.ts'
import type { TableCall } from '../resolve-table.ts'
import type { RecordRow, TableRows } from '../rows.ts'
import { takeVersion, versionName } from '../version.ts'
import { createPreview } from './preview.ts'

export interface RowReader {
  readonly list: SelectList
  readonly key: PageQuery['key']
  /** Whether an item has the columns of its row and nothing else. */
  readonly isEncodable: boolean
  /** Maximum characters of a row that are read only for its cursor. */
  readonly keyChars: number
  /** Selects the row with an id, and its version, if it satisfies the condition. */
  byId(id: string, condition?: SqlText): SqlText
  /**
   * Converts a row to a record with the fields that were read, in place if possible.
   */
  record(row: RecordRow): RecordRow
  /** Removes the version from a row; null if it was not read. */
  readonly takeVersion: ((row: RecordRow) => number) | null
  /** Whether a field of this name can be among the shown ones. */
  shows(name: string): boolean
  /** The shown fields of a record. */
  show(record: RecordRow): RecordRow
  /** The shown fields of a row as JSON, without parsing stored JSON. */
  json(row: RecordRow): string
}

/** The names in the `fields` parameter; null for all fields. */
export type Fields = ReadonlySet<string> | null

/** With more characters the base64 cursor would exceed its maximum length, and the record's id is used instead. */
const keyCharsMax = Math.ceil((cursorCharsMax * 3) / 4)

/** What is read but not shown as a field. */
export interface HiddenFields {
  /** Read completely, for highlights. */
  readonly complete?: readonly string[]
  /** Read for cursors: long texts only up to `keyCharsMax`. */
  readonly keys?: readonly string[]
  /** The version of the row. */
  readonly versions?: boolean | undefined
  /** Cuts the shown values to this many characters; see `preview`. */
  readonly previewChars?: number | undefined
}

const kinds: Readonly<Record<FieldType, SelectColumn['kind']>> = {
  string: 'text',
  text: 'text',
  datetime: 'short',
  number: 'short',
  boolean: 'short',
  json: 'json',
  geo: 'json',
}

/** Names that need no escaping in JSON paths and JSON texts on any engine. */
const plainMember = /^[A-Za-z0-9_]+$/

const memberName = (at: number): string => `_m${at}`

/** The requested fields of a record. */
export function project(record: RecordRow, fields: Fields): RecordRow {
  if (!fields) return record
  const shown: RecordRow = {}
  for (const name of Object.keys(record)) if (fields.has(name)) shown[name] = record[name]
  return shown
}

/** Undeclared fields to read individually; null to read the entire stored object. */
function findMembers({ table }: TableRows, fields: Fields, also: readonly string[]): readonly string[] | null {
  if (!table.schemaless) return []
  if (!fields) return null
  const members = [...new Set([...fields, ...also])].filter((name) => !table.fields.has(name))
  return members.length <= projectedMembersMax && members.every((name) => plainMember.test(name)) ? members : null
}

/** Serializes a stored value of a declared field. */
function createValueWriter({ type }: Field, dialect: Dialect): (stored: unknown) => string {
  if (type === 'json' || type === 'geo') return (stored) => (typeof stored === 'string' ? stored : 'null')
  if (type === 'boolean')
    return (stored) => (stored === null || stored === undefined ? 'null' : String(dialect.toBoolean(stored)))
  return (stored) => JSON.stringify(stored ?? null)
}

/** The shown members of a JSON object as text without the braces. */
function membersOf(extra: string, fields: Fields): string {
  if (!fields) return extra.slice(1, -1)
  return JSON.stringify(project(JSON.parse(extra) as RecordRow, fields)).slice(1, -1)
}

const fullReaders = new WeakMap<TableRows, Map<string, RowReader>>()

/** The row reader for a call. Readers of all fields are cached per table. */
export function readerOf(
  { rows, view, database }: Pick<TableCall, 'rows' | 'view' | 'database'>,
  fields: Fields,
  also: HiddenFields = {},
): RowReader {
  const { showsHidden } = view
  if (fields || also.previewChars !== undefined)
    return createRowReader(rows, database.dialect, showsHidden, fields, also)
  const { versions = false } = also
  const cached = fullReaders.get(rows) ?? new Map<string, RowReader>()
  fullReaders.set(rows, cached)
  const key = `${showsHidden} ${versions}`
  const reader = cached.get(key) ?? createRowReader(rows, database.dialect, showsHidden, null, { versions })
  cached.set(key, reader)
  return reader
}

function createRowReader(
  rows: TableRows,
  dialect: Dialect,
  showsHidden: boolean,
  fields: Fields,
  { complete = [], keys = [], versions = false, previewChars }: HiddenFields = {},
): RowReader {
  const also = [...complete, ...keys]
  const { table, name: alias } = rows
  const isRead = (field: Field): boolean =>
    (showsHidden || !table.hidden.has(field.name)) && (!fields || fields.has(field.name) || also.includes(field.name))
  const read = [...table.fields.values()].filter((field) => isRead(field) || field.name === 'id')
  /** Whether only the start of a text is read. */
  const isKeyText = (name: string, type: FieldType): boolean =>
    fields !== null && kinds[type] === 'text' && name !== 'id' && !fields.has(name) && !complete.includes(name)
  const members = findMembers(rows, fields, also)
  const extra = sql`${alias}.${extraColumn}`
  const memberColumns = (members ?? []).map((name, at) => ({ name, column: memberName(at) }))
  const preview =
    previewChars === undefined
      ? null
      : createPreview({ table, chars: previewChars, complete, keys, keyChars: keyCharsMax, members: memberColumns })
  const columns = read.map((field): SelectColumn => {
    const { name, type } = field
    const stored: SqlText = sql`${alias}.${ident(name)}`
    const start = preview?.columnOf(field, stored)
    if (start) return { column: start, name, kind: 'text' }
    if (!isKeyText(name, type)) return { column: stored, name, kind: name === 'id' ? 'short' : kinds[type] }
    return { column: sql`substr(${stored}, 1, ${keyCharsMax})`, name, kind: 'short' }
  })
  if (members === null) columns.push({ column: extra, name: extraColumnName, kind: 'json' })
  for (const { name, column } of memberColumns) {
    const member = dialect.memberJson(extra, name)
    const start = preview?.memberOf(name, member)
    columns.push({ column: start ?? member, name: column, kind: start ? 'text' : 'json' })
  }

  if (versions) columns.push({ column: rows.version, name: versionName, kind: 'short' })

  const shown = read.filter(({ name }) => !fields || fields.has(name))
  const writers = shown.map((field) => ({
    name: field.name,
    key: `${JSON.stringify(field.name)}:`,
    write: createValueWriter(field, dialect),
  }))
  // The undeclared fields precede the two timestamps, as in `TableRows.fromSql`.
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

  /** Reassembles individually read undeclared fields into the form of the stored object. */
  function gather(row: RecordRow, read: readonly string[]): RecordRow {
    const parts: string[] = []
    for (const [at, name] of read.entries()) {
      const text = row[memberName(at)]
      if (typeof text === 'string') parts.push(`${JSON.stringify(name)}:${text}`)
      delete row[memberName(at)]
    }
    row[extraColumnName] = `{${parts.join(',')}}`
    return row
  }

  const convert =
    members === null || !table.schemaless ? rows.fromSql : (row: RecordRow) => rows.fromSql(gather(row, members))
  const record = preview ? (row: RecordRow): RecordRow => preview.record(row, convert) : convert
  const show = (complete: RecordRow): RecordRow => {
    const item = project(complete, fields)
    return preview ? preview.show(item) : item
  }

  const list = selectList(columns)
  const keyChars = read.filter(({ name, type }) => isKeyText(name, type)).length * keyCharsMax
  const { rowKey } = dialect
  return {
    list,
    isEncodable: !(preview || versions || table.schemaless) && read.length === shown.length,
    key: rowKey && { column: sql`${alias}.${rowKey}`, from: rows.from },
    keyChars,
    byId: createByIdQuery(rows, list, versions),
    record,
    takeVersion: versions ? takeVersion : null,
    shows: (name) => (fields ? fields.has(name) : table.schemaless || shown.some((field) => field.name === name)),
    show,
    json(row) {
      // The row is needed once more for the cursor.
      if (preview) return JSON.stringify(show(record({ ...row })))
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

/** Keeps its texts: the engine finds a statement by its text. */
function createByIdQuery(
  { name: alias, from, version }: TableRows,
  { text: columns }: SelectList,
  hasVersion: boolean,
): RowReader['byId'] {
  const shown = hasVersion ? columns.text : `${columns.text}, ${version.text}`
  const all = `SELECT ${shown} FROM ${from.text} WHERE ${alias.text}."id" = ?`
  const values = [...columns.values, ...from.values]
  const conditioned = createLru<string, string>(conditionShapesMax)
  const conditionedText = (condition: string): string => {
    const known = conditioned.get(condition)
    if (known !== undefined) return known
    const text = `${all} AND ${condition}`
    conditioned.set(condition, text)
    return text
  }
  return (id, condition) =>
    condition
      ? { text: conditionedText(condition.text), values: [...values, id, ...condition.values], isLookup: true }
      : { text: all, values: [...values, id], isLookup: true }
}

const extraColumnName = '_extra'
