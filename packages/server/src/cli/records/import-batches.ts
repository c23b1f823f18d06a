/**
 * Sends records to a server in batches. A batch is stored in one transaction and at most once: its idempotency key is
 * the hash of what it contains and of its place in the file, so a run that is repeated continues where it stopped.
 */
import { sha256 } from '../../base/crypto/hash.ts'
import { ApiError } from '../../errors.ts'
import { importAttemptsMax, importBatchChars, importBatchRecords, importPauseMs } from '../../limits/writes.ts'
import type { AdminRequest } from '../admin-call.ts'
import type { SourceRow } from './source-rows.ts'

export interface ImportOptions {
  /** The field by which existing records are found; null to insert only. */
  readonly conflictTarget: string | null
  readonly isDryRun: boolean
  readonly hooks: boolean
  /** Distinguishes runs that are to store the same records again; empty otherwise. */
  readonly run: string
}

interface Fault {
  readonly line: number
  readonly problem: string
}

type Row = Extract<SourceRow, { readonly record: unknown }>

export interface Batch {
  readonly index: number
  readonly rows: readonly Row[]
  /** Lines without a record. */
  readonly faults: readonly Fault[]
}

export type Outcome =
  | { readonly kind: 'stored'; readonly inserted: number; readonly updated: number; readonly isReplayed: boolean }
  /** Nothing was stored. */
  | { readonly kind: 'refused'; readonly faults: readonly Fault[] }

/** Groups rows; their number and size depend on the file alone, so that a repeated run makes the same batches. */
export async function* createBatches(source: AsyncIterable<SourceRow>): AsyncGenerator<Batch> {
  let rows: Row[] = []
  let faults: Fault[] = []
  let chars = 0
  let index = 0
  const take = (): Batch => {
    const batch = { index: index++, rows, faults }
    rows = []
    faults = []
    chars = 0
    return batch
  }
  for await (const row of source) {
    if ('problem' in row) faults.push(row)
    else {
      const size = JSON.stringify(row.record).length
      if (rows.length > 0 && chars + size > importBatchChars) yield take()
      rows.push(row)
      chars += size
    }
    if (rows.length + faults.length === importBatchRecords) yield take()
  }
  if (rows.length + faults.length > 0) yield take()
}

/** What an error of the server says about the lines of a batch; null if it is about no record. */
function faultsOf({ data = {} }: ApiError, rows: readonly Row[]): Fault[] | null {
  const faults = Object.entries(data).map(([path, { message }]): Fault | null => {
    const [, index, name] = /^inserts\[(\d+)\](?:\.(.+))?$/s.exec(path) ?? []
    const row = index === undefined ? undefined : rows[Number(index)]
    return row ? { line: row.line, problem: name === undefined ? message : `${name}: ${message}` } : null
  })
  return faults.length > 0 && faults.every((fault) => fault !== null) ? faults : null
}

/** Whether a later attempt may succeed: the server was too busy. */
const isBusy = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.status === 429 || error.status === 503)

async function sendWhenIdle(send: () => ReturnType<AdminRequest>): ReturnType<AdminRequest> {
  for (let attempt = 1; ; attempt++)
    try {
      return await send()
    } catch (error) {
      if (!isBusy(error) || attempt === importAttemptsMax) throw error
      const seconds = Number(error.headers['retry-after'] ?? 1)
      await new Promise((resolve) => setTimeout(resolve, Math.min(seconds * 1000, importPauseMs)))
    }
}

/** Sends one batch. Throws what concerns no single record, such as a wrong service key. */
export async function sendBatch(
  request: AdminRequest,
  path: string,
  { index, rows }: Batch,
  { conflictTarget, isDryRun, hooks, run }: ImportOptions,
): Promise<Outcome> {
  const body = {
    inserts: rows.map(({ record }) => record),
    ...(conflictTarget !== null && { conflictTarget }),
    ...(isDryRun && { dryRun: true }),
    ...(!hooks && { hooks: false }),
  }
  const key = `import-${sha256(JSON.stringify([path, run, index, body]))}`
  try {
    const { answer, headers } = await sendWhenIdle(() =>
      request('POST', `${path}/batch/import`, body, isDryRun ? {} : { 'Idempotency-Key': key }),
    )
    const { inserted, updated } = answer as { inserted: number; updated: number }
    return { kind: 'stored', inserted, updated, isReplayed: headers.has('Idempotency-Replayed') }
  } catch (error) {
    const faults = error instanceof ApiError ? faultsOf(error, rows) : null
    if (!faults) throw error
    return { kind: 'refused', faults }
  }
}
