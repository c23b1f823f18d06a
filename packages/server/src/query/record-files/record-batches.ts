/**
 * Batches of records for an import. They depend on the file alone, so that a repeated run makes the same ones; their
 * identity is what their idempotency key is the hash of.
 */
import { importBatchChars, importBatchRecords } from '../../limits/writes.ts'
import type { SourceRecord, SourceRow } from './record-source.ts'

/** A line without a record, or with one that was refused. */
export interface SourceFault {
  readonly line: number
  readonly problem: string
}

export interface RecordBatch {
  readonly index: number
  readonly rows: readonly SourceRecord[]
  /** Lines without a record. */
  readonly faults: readonly SourceFault[]
}

export interface BatchOptions {
  /** The field by which existing records are found; null to insert only. */
  readonly conflictTarget: string | null
  readonly isDryRun: boolean
  readonly hooks: boolean
  /** Distinguishes runs that are to store the same records again; empty otherwise. */
  readonly run: string
}

export async function* createBatches(source: AsyncIterable<SourceRow>): AsyncGenerator<RecordBatch> {
  let rows: SourceRecord[] = []
  let faults: SourceFault[] = []
  let chars = 0
  let index = 0
  const take = (): RecordBatch => {
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

/** The body of the request for a batch. */
export const batchBody = ({ rows }: RecordBatch, { conflictTarget, isDryRun, hooks }: BatchOptions): object => ({
  inserts: rows.map(({ record }) => record),
  ...(conflictTarget !== null && { conflictTarget }),
  ...(isDryRun && { dryRun: true }),
  ...(!hooks && { hooks: false }),
})

/** What makes a batch the same one in a repeated run; `path` is that of the table. */
export const batchIdentity = (path: string, { index }: RecordBatch, body: object, { run }: BatchOptions): string =>
  JSON.stringify([path, run, index, body])

/** What the data of an error says about the lines of a batch; null if it is about no record. */
export function faultsOf(
  data: Readonly<Record<string, { readonly message: string }>> = {},
  rows: readonly SourceRecord[],
): SourceFault[] | null {
  const faults = Object.entries(data).map(([path, { message }]): SourceFault | null => {
    const [, index, name] = /^inserts\[(\d+)\](?:\.(.+))?$/s.exec(path) ?? []
    const row = index === undefined ? undefined : rows[Number(index)]
    return row ? { line: row.line, problem: name === undefined ? message : `${name}: ${message}` } : null
  })
  return faults.length > 0 && faults.every((fault) => fault !== null) ? faults : null
}
