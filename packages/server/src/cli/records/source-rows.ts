/** The rows of a file on the command line: its text, and the fields of its columns. */
import { createReadStream } from 'node:fs'
import { suggest } from '../../config/issues.ts'
import { readSource, type SourceColumn, type SourceRow } from '../../query/record-files/record-source.ts'
import type { RecordFormat } from '../../query/record-files/record-text.ts'
import type { Table } from '../../query/table.ts'
import { UsageError } from '../command.ts'

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
function columnOf(column: string, { table, mapping, onLeftOut }: SourceOptions): SourceColumn | null {
  const mapped = mapping.get(column)
  if (mapped === null) return null
  const name = mapped ?? column
  const field = table.fields.get(name)
  if (!field && !table.schemaless) {
    const hint = suggest(name, [...table.fields.keys()])
    const map = `Use --map "${column}=<field>", or --map "${column}=" to leave it out.`
    throw new UsageError(`"${name}" is not a field of ${table.namespace}.${table.name}.${hint} ${map}`)
  }
  if (!field?.readOnly) return { name, field: field ?? null }
  onLeftOut(column)
  return null
}

/** Throws `SourceError` where the file is not of its format, and `UsageError` for a column without a field. */
export function readSourceRows(text: AsyncIterable<string>, options: SourceOptions): AsyncGenerator<SourceRow> {
  const { format, delimiter } = options
  return readSource(text, {
    format,
    delimiter,
    columnsOf(columns) {
      const found = columns.map((column) => columnOf(column, options))
      const names = found.flatMap((column) => (column ? [column.name] : []))
      const twice = format === 'csv' && names.find((name, at) => names.indexOf(name) !== at)
      if (twice) throw new UsageError(`Two columns are the field "${twice}".`)
      return found
    },
  })
}
