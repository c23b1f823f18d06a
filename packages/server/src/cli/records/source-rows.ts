/** Records from a file of CSV, NDJSON or JSON, one after the other; keeps no more than one in memory. */
import { createReadStream } from 'node:fs'
import { CsvError, CsvReader, type CsvRow } from '../../base/text/csv.ts'
import { JsonArrayReader, JsonItemsError, type JsonItemsReader, NdjsonReader } from '../../base/text/json-items.ts'
import { suggest } from '../../config/issues.ts'
import { recordBytesMax } from '../../limits/writes.ts'
import { CellError, parseCell } from '../../query/cells.ts'
import type { RecordFormat } from '../../query/record-text.ts'
import type { Field, Table } from '../../query/table.ts'
import { UsageError } from '../command.ts'

/** A record, or why there is none. */
export type SourceRow =
  | { readonly line: number; readonly record: Readonly<Record<string, unknown>> }
  | { readonly line: number; readonly problem: string }

/** The file cannot be read any further. */
export class SourceError extends Error {
  constructor(line: number, problem: string) {
    super(`line ${line}: ${problem}`)
    this.name = 'SourceError'
  }
}

export interface SourceOptions {
  readonly format: RecordFormat
  readonly table: Table
  /** Fields by the name of their column or member; null to leave it out. */
  readonly mapping: ReadonlyMap<string, string | null>
  readonly delimiter: string
  /** Called once per column that is left out although it has values: its field is computed. */
  readonly onLeftOut: (column: string) => void
}

/** Text of a file, or of the standard input for `-`. */
export async function* readText(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (bytes?: Uint8Array): string => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode()
    } catch {
      throw new UsageError(`${path === '-' ? 'The standard input' : path} is not UTF-8 text.`)
    }
  }
  for await (const bytes of path === '-' ? process.stdin : createReadStream(path)) yield decode(bytes as Uint8Array)
  yield decode()
}

/** The field of a column; null to leave it out. Throws `UsageError` for one that the table does not have. */
function fieldOf(column: string, { table, mapping, onLeftOut }: SourceOptions): string | null {
  const mapped = mapping.get(column)
  if (mapped === null) return null
  const name = mapped ?? column
  const field = table.fields.get(name)
  if (!field && !table.schemaless) {
    const hint = suggest(name, [...table.fields.keys()])
    const map = `Use --map "${column}=<field>", or --map "${column}=" to leave it out.`
    throw new UsageError(`"${name}" is not a field of ${table.namespace}.${table.name}.${hint} ${map}`)
  }
  if (!field?.readOnly) return name
  onLeftOut(column)
  return null
}

interface Column {
  readonly name: string
  readonly field: Field | null
}

function columnsOf({ cells }: CsvRow, options: SourceOptions): (Column | null)[] {
  const columns = cells.map(({ text }): Column | null => {
    const name = fieldOf(text.trim(), options)
    return name === null ? null : { name, field: options.table.fields.get(name) ?? null }
  })
  const names = columns.flatMap((column) => (column ? [column.name] : []))
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) throw new UsageError(`Two columns are the field "${twice}".`)
  return columns
}

/** What the server generates is left to it where a cell is empty. */
const generated: ReadonlySet<string> = new Set(['id', 'createdAt', 'updatedAt'])

function rowOf({ line, cells }: CsvRow, columns: readonly (Column | null)[]): SourceRow {
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
  let columns: (Column | null)[] | null = null
  const take = (row: CsvRow): SourceRow | null => {
    if (columns) return rowOf(row, columns)
    columns = columnsOf(row, options)
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

function recordOf(value: unknown, options: SourceOptions): Record<string, unknown> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  // Without a prototype, a field called `__proto__` is a name like any other.
  const record: Record<string, unknown> = Object.create(null)
  for (const [member, of] of Object.entries(value)) {
    const name = fieldOf(member, options)
    if (name !== null) record[name] = of
  }
  return record
}

async function* readJson(
  text: AsyncIterable<string>,
  reader: JsonItemsReader,
  options: SourceOptions,
): AsyncGenerator<SourceRow> {
  const take = ({ line, text: json }: { readonly line: number; readonly text: string }): SourceRow => {
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

/** Throws `SourceError` where the file is not of its format, and `UsageError` for a column without a field. */
export async function* readSourceRows(text: AsyncIterable<string>, options: SourceOptions): AsyncGenerator<SourceRow> {
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
