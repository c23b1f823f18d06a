/**
 * The parameter `preview`: long texts and JSON of the items of a list are cut to a number of characters, in the
 * database, so that rows with large values are read as quickly as others. Each item names its cut fields in `$cut`.
 */
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { accessDenied } from '../../../errors.ts'
import type { Field, FieldType, Table } from '../../../query/table.ts'
import type { TableCall } from '../resolve-table.ts'
import { type RecordRow, withExtra } from '../rows.ts'

const memberName = '$cut'

/** The beginning of a JSON text, in place of its value. */
class JsonStart {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Characters to read of a text, so that a longer one is known to be longer; of JSON, with the quotes of a text. */
const charsToRead = (chars: number, isJson: boolean): number => chars + (isJson ? 3 : 1)

/** The first characters of a text, without half a surrogate pair; null if it has no more than that. */
function startOf(text: string, chars: number): string | null {
  if (text.length <= chars) return null
  const points = [...text.slice(0, 2 * chars + 2)]
  return points.length > chars ? points.slice(0, chars).join('') : null
}

/** An incomplete escape at the end of a JSON text has at most so many characters. */
const escapeCharsMax = 6

/** The text whose JSON begins so; null for the beginning of another value. */
function textFrom(json: string): string | null {
  if (!json.startsWith('"')) return null
  for (let dropped = 0; dropped <= escapeCharsMax; dropped++) {
    try {
      return JSON.parse(`${json.slice(0, json.length - dropped)}"`) as string
    } catch {
      // It ends within an escape.
    }
  }
  return null
}

/**
 * Takes the JSON texts of the columns that were not read completely out of the row, which otherwise would be parsed,
 * and returns what stands for them in the record.
 */
function takeJsonStarts(row: RecordRow, columns: readonly string[], chars: number): Record<string, JsonStart> {
  const starts: Record<string, JsonStart> = {}
  for (const name of columns) {
    const text = row[name]
    if (typeof text !== 'string' || startOf(text, charsToRead(chars, true) - 1) === null) continue
    starts[name] = new JsonStart(text)
    row[name] = null
  }
  return starts
}

/** The start of a value; null for one that is short enough. */
function previewOf(value: unknown, chars: number): string | null {
  if (value instanceof JsonStart) {
    const text = textFrom(value.text) ?? value.text
    return startOf(text, chars) ?? text
  }
  if (typeof value === 'string') return startOf(value, chars)
  return typeof value === 'object' && value !== null ? startOf(JSON.stringify(value), chars) : null
}

/** The item with the long values of the fields that may be long cut. */
function cutItem(item: RecordRow, chars: number, mayBeLong: (name: string) => boolean): RecordRow {
  const cut: string[] = []
  const shown: RecordRow = {}
  for (const [name, value] of Object.entries(item)) {
    const start = mayBeLong(name) ? previewOf(value, chars) : null
    if (start !== null) cut.push(name)
    shown[name] = start ?? value
  }
  return cut.length === 0 ? shown : withExtra(shown, memberName, cut)
}

export interface Preview {
  /** The start of the column of a declared field; null where it is read completely. */
  columnOf(field: Field, column: SqlText): SqlText | null
  /** The start of an undeclared field, as JSON; null where it is read completely. */
  memberOf(name: string, json: SqlText): SqlText | null
  /** The record that `convert` makes of the row, with `JsonStart` for JSON that was not read completely. */
  record(row: RecordRow, convert: (row: RecordRow) => RecordRow): RecordRow
  show(item: RecordRow): RecordRow
}

export interface PreviewOptions {
  readonly table: Table
  readonly chars: number
  /** Fields that are read completely, for highlights. */
  readonly complete: readonly string[]
  /** Fields that are read for cursors, texts up to `keyChars`. */
  readonly keys: readonly string[]
  readonly keyChars: number
  /** Undeclared fields that are read individually, each as a column. */
  readonly members: readonly { readonly name: string; readonly column: string }[]
}

/** A preview of the values of a table's rows. */
export function createPreview({ table, chars, complete, keys, keyChars, members }: PreviewOptions): Preview {
  /** Undeclared fields hold any value. */
  const mayBeLong = (name: string): boolean => name !== 'id' && longTypes.has(table.fields.get(name)?.type ?? 'json')
  const isCut = (name: string): boolean => mayBeLong(name) && !complete.includes(name)
  // The position of a row in the order is that of its complete value.
  const isCutMember = (name: string): boolean => isCut(name) && !keys.includes(name)
  const startOfColumn = (column: SqlText, name: string, isJson: boolean): SqlText => {
    const wanted = charsToRead(chars, isJson)
    return sql`substr(CAST(${column} AS TEXT), 1, ${keys.includes(name) ? Math.max(wanted, keyChars) : wanted})`
  }
  const declared = [...table.fields.values()].filter(({ name, type }) => type === 'json' && isCut(name))
  const starts = [
    ...declared.map(({ name }) => ({ name, column: name })),
    ...members.filter(({ name }) => isCutMember(name)),
  ]
  const columns = starts.map(({ column }) => column)
  return {
    columnOf: ({ name, type }, column) => (isCut(name) ? startOfColumn(column, name, type === 'json') : null),
    memberOf: (name, json) => (isCutMember(name) ? startOfColumn(json, name, true) : null),
    record(row, convert) {
      const taken = takeJsonStarts(row, columns, chars)
      const record = convert(row)
      for (const { name, column } of starts) if (taken[column]) record[name] = taken[column]
      return record
    },
    show: (item) => cutItem(item, chars, mayBeLong),
  }
}

const longTypes: ReadonlySet<FieldType> = new Set(['string', 'text', 'json'])

/** Throws 403 for callers without a service key: what a rule hides from them is not decided for parts of values. */
export function requirePreviewScope({ caller }: Pick<TableCall, 'caller'>, preview: number | undefined): void {
  if (preview !== undefined && caller.kind !== 'service') throw accessDenied('preview needs a service key')
}
