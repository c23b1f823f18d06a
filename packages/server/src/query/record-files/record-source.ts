/** Records from the text of a file of CSV, NDJSON or JSON, one after the other; keeps no more than one in memory. */
import { CsvError, CsvReader, type CsvRow } from '../../base/text/csv.ts'
import {
  JsonArrayReader,
  type JsonItem,
  JsonItemsError,
  type JsonItemsReader,
  NdjsonReader,
} from '../../base/text/json-items.ts'
import { recordBytesMax } from '../../limits/writes.ts'
import { CellError, parseCell } from '../cells.ts'
import type { Field } from '../table.ts'
import type { RecordFormat } from './record-text.ts'

export interface SourceRecord {
  readonly line: number
  readonly record: Readonly<Record<string, unknown>>
}

/** A record, or why there is none. */
export type SourceRow = SourceRecord | { readonly line: number; readonly problem: string }

/** The file cannot be read any further. */
export class SourceError extends Error {
  constructor(line: number, problem: string) {
    super(`line ${line}: ${problem}`)
    this.name = 'SourceError'
  }
}

/** The field that a column or member is. */
export interface SourceColumn {
  readonly name: string
  /** Null for an undeclared field. */
  readonly field: Pick<Field, 'type'> | null
}

export interface SourceOptions {
  readonly format: RecordFormat
  readonly delimiter: string
  /** The fields of columns, in their order; null to leave one out. May throw. */
  columnsOf(names: readonly string[]): readonly (SourceColumn | null)[]
}

/** What the server generates is left to it where a cell is empty. */
const generated: ReadonlySet<string> = new Set(['id', 'createdAt', 'updatedAt'])

function rowOf({ line, cells }: CsvRow, columns: readonly (SourceColumn | null)[]): SourceRow {
  if (cells.length !== columns.length)
    return { line, problem: `has ${cells.length} cells, and the header has ${columns.length}` }
  const record: Record<string, unknown> = Object.create(null)
  for (const [at, column] of columns.entries()) {
    if (!column) continue
    const { name, field } = column
    try {
      const value = parseCell(field, cells[at] as CsvRow['cells'][number])
      if (value !== null || !generated.has(name)) record[name] = value
    } catch (error) {
      if (error instanceof CellError) return { line, problem: `${name}: ${error.message}` }
      throw error
    }
  }
  return { line, record }
}

async function* readCsv(text: AsyncIterable<string>, options: SourceOptions): AsyncGenerator<SourceRow> {
  const reader = new CsvReader({ delimiter: options.delimiter, rowCharsMax: recordBytesMax })
  let columns: readonly (SourceColumn | null)[] | null = null
  const take = (row: CsvRow): SourceRow | null => {
    if (columns) return rowOf(row, columns)
    columns = options.columnsOf(row.cells.map((cell) => cell.text.trim()))
    return null
  }
  for await (const chunk of text)
    for (const row of reader.read(chunk)) {
      const taken = take(row)
      if (taken) yield taken
    }
  const last = reader.end()
  const taken = last && take(last)
  if (taken) yield taken
}

function recordOf(value: unknown, { columnsOf }: SourceOptions): Record<string, unknown> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  // Without a prototype, a field called `__proto__` is a name like any other.
  const record: Record<string, unknown> = Object.create(null)
  const members = Object.entries(value)
  const columns = columnsOf(members.map(([name]) => name))
  for (const [at, [, member]] of members.entries()) {
    const column = columns[at]
    if (column) record[column.name] = member
  }
  return record
}

async function* readJson(
  text: AsyncIterable<string>,
  reader: JsonItemsReader,
  options: SourceOptions,
): AsyncGenerator<SourceRow> {
  const take = ({ line, text: json }: JsonItem): SourceRow => {
    let value: unknown
    try {
      value = JSON.parse(json)
    } catch {
      return { line, problem: 'is not JSON' }
    }
    const record = recordOf(value, options)
    return record ? { line, record } : { line, problem: 'must be an object' }
  }
  for await (const chunk of text) for (const item of reader.read(chunk)) yield take(item)
  const last = reader.end()
  if (last) yield take(last)
}

/** Throws `SourceError` where the file is not of its format, and what `columnsOf` throws. */
export async function* readSource(text: AsyncIterable<string>, options: SourceOptions): AsyncGenerator<SourceRow> {
  const { format } = options
  try {
    if (format === 'csv') yield* readCsv(text, options)
    else
      yield* readJson(
        text,
        format === 'ndjson' ? new NdjsonReader(recordBytesMax) : new JsonArrayReader(recordBytesMax),
        options,
      )
  } catch (error) {
    if (error instanceof CsvError || error instanceof JsonItemsError) throw new SourceError(error.line, error.message)
    throw error
  }
}
