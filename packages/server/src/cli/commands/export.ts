/** `plinth export`: writes the records of a table of a running server to a file, page by page. */
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { finished } from 'node:stream/promises'
import { exportPageRecords } from '../../limits/writes.ts'
import { createRecordWriter, type RecordWriter } from '../../query/record-files/record-text.ts'
import type { Table } from '../../query/table.ts'
import { type AdminCall, createAdminCall } from '../admin-call.ts'
import { type Call, type Command, UsageError } from '../command.ts'
import { getDeclaredTable, parseTableAddress } from '../records/table-address.ts'
import { findRunningServer } from '../running-server.ts'
import { configOptions } from '../serve.ts'
import { parseFormat } from './import.ts'

export const exportCommand: Command = {
  name: 'export',
  summary: 'Write the records of a table as CSV, NDJSON or JSON',
  operands: ['<table>', '[file]'],
  options: {
    format: { value: '<name>', help: 'csv, ndjson or json (default: by the name of the file, else ndjson)' },
    fields: { value: '<names>', help: 'Such as id,title (default: all that are declared)' },
    filter: { value: '<json>', help: `Conditions that must all match: '[["status","==","live"]]'` },
    url: { value: '<address>', help: 'Any node of the server (default: the one serving the data folder)' },
    ...configOptions,
  },
  details: `A table is named by its namespace and name, such as shared.posts; one of an instance by
namespace/instance.table, such as team/acme.posts. Without a file, writes to the
standard output. Hidden fields are included.

In CSV, text that a spreadsheet would run as a formula begins with an apostrophe, which
\`plinth import\` removes again. Records are read in pages by id: one that is written
meanwhile is there or not.`,
  run,
}

type Item = Readonly<Record<string, unknown>>

interface Page {
  readonly items: readonly Item[]
  readonly hasMore: boolean
  readonly cursor: string | null
}

async function* readPages(call: AdminCall, path: string, parameters: Record<string, string>): AsyncGenerator<Page> {
  let after: string | null = ''
  while (after !== null) {
    const limit = String(exportPageRecords)
    const query = new URLSearchParams({ ...parameters, sort: 'id:asc', limit, after })
    const page: Page = await call<Page>('GET', `${path}?${query}`)
    yield page
    after = page.hasMore ? page.cursor : null
  }
}

async function* readTexts(pages: AsyncIterable<Page>, writer: RecordWriter): AsyncGenerator<string> {
  yield writer.head
  let isFirst = true
  for await (const { items } of pages) {
    yield writer.page(items, isFirst && items.length > 0)
    if (items.length > 0) isFirst = false
  }
  yield writer.foot
}

/** Writes to a file beside it first, so that a file of that name is complete. */
async function writeFile(path: string, texts: AsyncIterable<string>): Promise<void> {
  const partial = `${path}.partial`
  const file = createWriteStream(partial)
  const done = finished(file)
  done.catch(() => undefined)
  try {
    for await (const text of texts)
      if (!file.write(text)) await Promise.race([new Promise((resolve) => file.once('drain', resolve)), done])
    file.end()
    await done
    await rename(partial, path)
  } catch (error) {
    file.destroy()
    await rm(partial, { force: true })
    throw error
  }
}

/** The names of the fields to write. Throws `UsageError`. */
function namesOf({ schemaless, fields, namespace, name }: Table, given: string | undefined): string[] {
  const names = given?.split(',').map((one) => one.trim()) ?? [...fields.keys()]
  const unknown = names.find((one) => !fields.has(one) && !schemaless)
  if (unknown !== undefined) throw new UsageError(`"${unknown}" is not a field of ${namespace}.${name}.`)
  return names
}

async function run({ operands: [name = '', path], options, terminal }: Call): Promise<number> {
  const address = parseTableAddress(name)
  const format = options.format === undefined && path === undefined ? 'ndjson' : parseFormat(options.format, path ?? '')
  const { url, serviceKey, config } = await findRunningServer(options)
  const table = getDeclaredTable(config, address)
  const names = namesOf(table, options.fields)
  const silent = `The server at ${url} did not respond like a Plinth server.`
  const call = createAdminCall({ url, base: '/api/db', serviceKey, silent })
  const { filter } = options
  // All fields of a schemaless table, except in CSV, whose columns must be known before its records.
  const hasNames = format === 'csv' || options.fields !== undefined
  const parameters = { ...(hasNames && { fields: names.join(',') }), ...(filter !== undefined && { filter }) }
  const texts = readTexts(readPages(call, address.path, parameters), createRecordWriter(format, table, names))
  if (path !== undefined) await writeFile(path, texts)
  // The terminal ends each output with a line break of its own.
  else for await (const text of texts) if (text !== '') terminal.out(text.replace(/\n$/, ''))
  return 0
}
