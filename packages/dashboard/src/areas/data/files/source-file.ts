/** A file that is imported: its text in slices, its format, and what its columns are. */
import { CsvReader } from '../../../../../server/src/base/text/csv.ts'
import { JsonArrayReader, NdjsonReader } from '../../../../../server/src/base/text/json-items.ts'
import type { SourceColumn } from '../../../../../server/src/query/record-files/record-source.ts'
import { type RecordFormat, recordFormats } from '../../../../../server/src/query/record-files/record-text.ts'
import type { TableDescription } from '../../../app/queries.ts'

/** Small enough that parsing one takes a few milliseconds; the page can draw and react between two of them. */
const sliceBytes = 128 * 1024

export interface Reading {
  /** Bytes read so far. */
  position: number
}

/** The text of a file, slice by slice. Throws for a file that is not UTF-8. */
export async function* readText(file: Blob, reading: Reading, signal: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (bytes?: ArrayBuffer): string => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode()
    } catch {
      throw new Error('The file is not UTF-8 text.')
    }
  }
  for (let at = 0; at < file.size; at += sliceBytes) {
    signal.throwIfAborted()
    const text = decode(await file.slice(at, at + sliceBytes).arrayBuffer())
    reading.position = Math.min(file.size, at + sliceBytes)
    yield text
  }
  yield decode()
}

/** The format that the name of a file ends with; CSV where it says nothing. */
export function formatOf(name: string): RecordFormat {
  const end = name.toLowerCase().split('.').at(-1)
  return recordFormats.find((one) => one === (end === 'jsonl' ? 'ndjson' : end)) ?? 'csv'
}

export const delimiters = [
  { value: ',', label: 'Comma' },
  { value: ';', label: 'Semicolon' },
  { value: '\t', label: 'Tab' },
] as const
export type Delimiter = (typeof delimiters)[number]['value']

/** The most frequent delimiter of the first line. */
export function guessDelimiter(text: string): Delimiter {
  const [line = ''] = text.split(/\r?\n/, 1)
  const countOf = (delimiter: string): number => line.split(delimiter).length
  return delimiters.map(({ value }) => value).reduce((best, one) => (countOf(one) > countOf(best) ? one : best))
}

/** The beginning of a file: the names of its columns, and values of its first records. */
export interface Head {
  readonly columns: readonly string[]
  readonly samples: Readonly<Record<string, readonly string[]>>
}

const headBytes = 256 * 1024
const headRecords = 20
const samplesPerColumn = 2
const charsMax = 4 * 1024 * 1024

export const readHeadText = async (file: Blob): Promise<string> =>
  new TextDecoder().decode(await file.slice(0, headBytes).arrayBuffer())

function addSample(samples: Record<string, string[]>, name: string, text: string): void {
  const known = samples[name] ?? []
  samples[name] = known
  if (text !== '' && known.length < samplesPerColumn) known.push(text)
}

/** Throws `CsvError` and `JsonItemsError` for another format. */
export function parseHead(text: string, format: RecordFormat, delimiter: string): Head {
  return format === 'csv' ? csvHead(text, delimiter) : jsonHead(text, format)
}

function csvHead(text: string, delimiter: string): Head {
  const samples: Record<string, string[]> = Object.create(null)
  let columns: string[] | null = null
  let rows = 0
  const reader = new CsvReader({ delimiter, rowCharsMax: charsMax })
  // The last line may be cut.
  for (const { cells } of reader.read(text.endsWith('\n') ? text : `${text}\n`)) {
    if (columns === null) {
      columns = cells.map((cell) => cell.text.trim())
      for (const name of columns) samples[name] = []
      continue
    }
    for (const [at, name] of columns.entries()) addSample(samples, name, cells[at]?.text ?? '')
    if (++rows === headRecords) break
  }
  return { columns: columns ?? [], samples }
}

function jsonHead(text: string, format: RecordFormat): Head {
  const samples: Record<string, string[]> = Object.create(null)
  const reader = format === 'ndjson' ? new NdjsonReader(charsMax) : new JsonArrayReader(charsMax)
  let rows = 0
  for (const item of reader.read(format === 'ndjson' && !text.endsWith('\n') ? `${text}\n` : text)) {
    let value: unknown
    try {
      value = JSON.parse(item.text)
    } catch {
      // The import names the line.
      continue
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) continue
    for (const [name, member] of Object.entries(value))
      addSample(samples, name, typeof member === 'string' ? member : member === null ? '' : JSON.stringify(member))
    if (++rows === headRecords) break
  }
  return { columns: Object.keys(samples), samples }
}

/** The field of each column; null for columns that are left out. */
export type Mapping = Readonly<Record<string, string | null>>

const plain = (name: string): string => name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')

/** Fields that a file can set. */
export const importable = ({ fields }: TableDescription): readonly string[] => [
  'id',
  ...Object.keys(fields).filter((name) => name !== 'id' && !fields[name]?.readOnly),
]

/** Columns whose names are those of fields, but for case and punctuation. Each field once. */
export function guessMapping(columns: readonly string[], table: TableDescription): Mapping {
  const free = new Set(importable(table))
  const mapping: Record<string, string | null> = Object.create(null)
  const take = (column: string, name: string | undefined): void => {
    if (name === undefined) return
    mapping[column] = name
    free.delete(name)
  }
  for (const column of columns) if (free.has(column)) take(column, column)
  for (const column of columns)
    if (mapping[column] === undefined)
      take(
        column,
        [...free].find((name) => plain(name) === plain(column)),
      )
  for (const column of columns) mapping[column] ??= table.schemaless && !table.fields[column] ? column : null
  return mapping
}

/** The columns as an import needs them. */
export const columnsOf =
  (mapping: Mapping, { fields }: TableDescription) =>
  (names: readonly string[]): readonly (SourceColumn | null)[] =>
    names.map((column) => {
      const name = mapping[column] ?? null
      return name === null ? null : { name, field: fields[name] ?? null }
    })
