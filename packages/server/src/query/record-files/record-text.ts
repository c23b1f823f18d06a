/** Records as the text of a file: CSV, NDJSON or JSON, written page by page. */
import { formatCsvRow, guardFormula } from '../../base/text/csv.ts'
import { formatCell } from '../cells.ts'
import type { Table } from '../table.ts'

export const recordFormats = ['csv', 'ndjson', 'json'] as const
export type RecordFormat = (typeof recordFormats)[number]

type Item = Readonly<Record<string, unknown>>

/** Text of pages, with what comes before and after them. */
export interface RecordWriter {
  readonly head: string
  page(items: readonly Item[], isFirst: boolean): string
  readonly foot: string
}

const writers: Readonly<Record<RecordFormat, (table: Table, names: readonly string[]) => RecordWriter>> = {
  csv: ({ fields }, names) => ({
    head: `${formatCsvRow(names.map(guardFormula))}\r\n`,
    page: (items) =>
      items
        .map((item) => formatCsvRow(names.map((name) => formatCell(fields.get(name) ?? null, item[name]))))
        .map((row) => `${row}\r\n`)
        .join(''),
    foot: '',
  }),
  ndjson: () => ({ head: '', page: (items) => items.map((item) => `${JSON.stringify(item)}\n`).join(''), foot: '' }),
  json: () => ({
    head: '[',
    page: (items, isFirst) =>
      items.map((item, at) => `${isFirst && at === 0 ? '' : ','}\n${JSON.stringify(item)}`).join(''),
    foot: '\n]\n',
  }),
}

/** A writer of a table's records; `names` are the columns of CSV. */
export const createRecordWriter = (format: RecordFormat, table: Table, names: readonly string[]): RecordWriter =>
  writers[format](table, names)
