/** `plinth import`: stores the records of a file in a table of a running server. */
import { importFaultsMax } from '../../limits/writes.ts'
import { type BatchOptions, createBatches, type RecordBatch } from '../../query/record-files/record-batches.ts'
import { type RecordFormat, recordFormats } from '../../query/record-files/record-text.ts'
import { createAdminRequest } from '../admin-call.ts'
import { type Call, type Command, type Terminal, UsageError } from '../command.ts'
import { type Outcome, sendBatch } from '../records/import-batches.ts'
import { readSourceRows, readText } from '../records/source-rows.ts'
import { getDeclaredTable, parseTableAddress } from '../records/table-address.ts'
import { findRunningServer } from '../running-server.ts'
import { configOptions } from '../serve.ts'

export const importCommand: Command = {
  name: 'import',
  summary: 'Store the records of a CSV, NDJSON or JSON file',
  operands: ['<table>', '<file>'],
  options: {
    format: { value: '<name>', help: 'csv, ndjson or json (default: by the name of the file)' },
    map: { value: '<pairs>', help: 'Fields of columns: "Title=title,Notes=" (empty: leave out)' },
    delimiter: { value: '<char>', help: 'Between the cells of CSV (default ,)' },
    upsert: { value: '<field>', help: 'Update the record with the same id or unique field' },
    'dry-run': { help: 'Check every record and store nothing' },
    'no-hooks': { help: 'Run no `before` functions (the server logs it)' },
    again: { help: 'Store also what an earlier run of the same file has stored' },
    url: { value: '<address>', help: 'Any node of the server (default: the one serving the data folder)' },
    ...configOptions,
  },
  details: `A table is named by its namespace and name, such as shared.posts; one of an instance by
namespace/instance.table, such as team/acme.posts. The file - is the standard input.

CSV has a header with the names of fields. An empty cell is null, "" is empty text. Of
NDJSON each line is a record, of JSON each item of one array.

Records are stored in batches, each completely or not at all. A faulty record ends the
import; run the command again once the file is corrected, and it continues: for a day,
no batch is stored twice.`,
  run,
}

/** Throws `UsageError`. */
export function parseFormat(given: string | undefined, path: string): RecordFormat {
  const name = given ?? path.split('.').at(-1)
  const format = recordFormats.find((one) => one === (name === 'jsonl' ? 'ndjson' : name))
  if (format) return format
  throw new UsageError(
    given === undefined
      ? `The format of ${path} is not known: give --format ${recordFormats.join(', ')}.`
      : `"${given}" is not a format. Available: ${recordFormats.join(', ')}.`,
  )
}

function parseMapping(text: string | undefined): Map<string, string | null> {
  const mapping = new Map<string, string | null>()
  for (const pair of text?.split(',') ?? []) {
    const at = pair.lastIndexOf('=')
    if (at < 1) throw new UsageError(`--map has pairs such as "Title=title", and not "${pair}".`)
    mapping.set(pair.slice(0, at).trim(), pair.slice(at + 1).trim() || null)
  }
  return mapping
}

function parseDelimiter(text = ','): string {
  const delimiter = text === '\\t' ? '\t' : text
  if (!/^[^"\r\n]$/u.test(delimiter)) throw new UsageError('--delimiter is one character, such as ; or \\t.')
  return delimiter
}

type Send = (batch: RecordBatch) => Promise<Outcome>

interface Totals {
  inserted: number
  updated: number
  /** Of them, those that an earlier run has stored. */
  replayed: number
  faults: number
}

/** Reports the faults; false once there are too many. */
function report(faults: readonly { line: number; problem: string }[], totals: Totals, terminal: Terminal): boolean {
  for (const { line, problem } of faults) {
    if (totals.faults++ >= importFaultsMax) continue
    terminal.error(`line ${line}: ${problem}`)
  }
  return totals.faults < importFaultsMax
}

/** A dry run repeats a batch without its faulty records, to find all of them. Returns false after too many. */
async function check(batch: RecordBatch, send: Send, totals: Totals, terminal: Terminal): Promise<boolean> {
  let continues = report(batch.faults, totals, terminal)
  let { rows } = batch
  while (continues && rows.length > 0) {
    const outcome = await send({ ...batch, rows })
    if (outcome.kind === 'stored') {
      totals.inserted += outcome.inserted
      totals.updated += outcome.updated
      return true
    }
    continues = report(outcome.faults, totals, terminal)
    const faulty = new Set(outcome.faults.map(({ line }) => line))
    rows = rows.filter(({ line }) => !faulty.has(line))
  }
  return continues
}

async function store(batch: RecordBatch, send: Send, totals: Totals, terminal: Terminal): Promise<boolean> {
  report(batch.faults, totals, terminal)
  if (batch.faults.length > 0) return false
  const outcome = await send(batch)
  if (outcome.kind === 'refused') {
    report(outcome.faults, totals, terminal)
    return false
  }
  totals.inserted += outcome.inserted
  totals.updated += outcome.updated
  if (outcome.isReplayed) totals.replayed += batch.rows.length
  return true
}

const recordsOf = (count: number): string => `${count} ${count === 1 ? 'record' : 'records'}`

function summaryOf({ inserted, updated, replayed, faults }: Totals, isDryRun: boolean, table: string): string {
  const counts = `${inserted} inserted, ${updated} updated`
  if (isDryRun) {
    const found = faults > importFaultsMax ? `More than ${importFaultsMax}` : String(faults)
    return faults === 0
      ? `Nothing was stored in ${table}. An import would have ${counts}.`
      : `Nothing was stored in ${table}. ${found} of the problems are above; without these records, ${counts}.`
  }
  const earlier = replayed === 0 ? '' : `, ${replayed} of them by an earlier run (--again stores them once more)`
  const stored = `Stored ${recordsOf(inserted + updated)} in ${table}: ${counts}${earlier}.`
  return faults === 0
    ? stored
    : `${stored}\nThe batch of the lines above was not stored, and nothing after it. Correct the file and run the command again.`
}

async function run({ operands: [name = '', path = ''], options, terminal }: Call): Promise<number> {
  const address = parseTableAddress(name)
  const format = parseFormat(options.format, path)
  const mapping = parseMapping(options.map)
  const delimiter = parseDelimiter(options.delimiter)
  const { url, serviceKey, config } = await findRunningServer(options)
  const table = getDeclaredTable(config, address)
  const silent = `The server at ${url} did not respond. Run the command again to continue.`
  const request = createAdminRequest({ url, base: '/api/db', serviceKey, silent })
  const isDryRun = options['dry-run'] !== undefined
  const importing: BatchOptions = {
    conflictTarget: options.upsert ?? null,
    isDryRun,
    hooks: options['no-hooks'] === undefined,
    run: options.again === undefined ? '' : crypto.randomUUID(),
  }
  const leftOut = new Set<string>()
  const onLeftOut = (column: string): void => {
    if (!leftOut.has(column)) terminal.error(`"${column}" is left out: the field is computed.`)
    leftOut.add(column)
  }
  const totals: Totals = { inserted: 0, updated: 0, replayed: 0, faults: 0 }
  const send: Send = (batch) => sendBatch(request, address.path, batch, importing)
  const perform = isDryRun ? check : store
  const rows = readSourceRows(readText(path), { format, table, mapping, delimiter, onLeftOut })
  try {
    for await (const batch of createBatches(rows)) if (!(await perform(batch, send, totals, terminal))) break
  } catch (error) {
    if (!isDryRun && totals.inserted + totals.updated > 0) terminal.error(summaryOf(totals, isDryRun, name))
    throw error
  }
  terminal.out(summaryOf(totals, isDryRun, name))
  return totals.faults === 0 ? 0 : 1
}
