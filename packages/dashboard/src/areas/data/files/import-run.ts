/** Runs an import or a dry run of it: reads the file in slices, and sends one batch after the other. */
import {
  type BatchOptions,
  createBatches,
  type RecordBatch,
  type SourceFault,
} from '../../../../../server/src/query/record-files/record-batches.ts'
import { readSource } from '../../../../../server/src/query/record-files/record-source.ts'
import type { RecordFormat } from '../../../../../server/src/query/record-files/record-text.ts'
import type { TableDescription } from '../../../app/queries.ts'
import type { TableAddress } from '../location.ts'
import { sendBatch } from './requests.ts'
import { columnsOf, type Mapping, type Reading, readText } from './source-file.ts'

export interface ImportInput {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly file: File
  readonly format: RecordFormat
  readonly delimiter: string
  readonly mapping: Mapping
  /** The field by which existing records are updated; null to insert only. */
  readonly conflictTarget: string | null
  readonly isDryRun: boolean
}

export interface ImportProgress {
  /** Bytes of the file that are read. */
  readonly position: number
  readonly inserted: number
  readonly updated: number
  /** Lines that cannot be stored; the first `faultsMax` of them. */
  readonly faults: readonly SourceFault[]
  readonly isOver: boolean
}

/** Faulty lines after which a run ends. */
export const faultsMax = 100

const start: ImportProgress = { position: 0, inserted: 0, updated: 0, faults: [], isOver: false }

/**
 * Reports the progress after each batch; resolves when the file or the number of faults is at its end. An import ends
 * at the first batch that is refused, of which nothing is stored; a dry run finds all faulty lines.
 */
export async function runImport(
  input: ImportInput,
  signal: AbortSignal,
  onProgress: (progress: ImportProgress) => void,
): Promise<void> {
  const { address, table, file, format, delimiter, mapping, conflictTarget, isDryRun } = input
  const options: BatchOptions = { conflictTarget, isDryRun, hooks: true, run: '' }
  const reading: Reading = { position: 0 }
  const source = readSource(readText(file, reading, signal), {
    format,
    delimiter,
    columnsOf: columnsOf(mapping, table),
  })
  let progress = start
  const report = (change: Partial<ImportProgress>): void => {
    progress = { ...progress, position: reading.position, ...change }
    onProgress(progress)
  }
  const addFaults = (faults: readonly SourceFault[]): void =>
    report({ faults: [...progress.faults, ...faults].sort((one, other) => one.line - other.line).slice(0, faultsMax) })

  /** Whether the run continues after the batch. */
  async function runBatch(batch: RecordBatch): Promise<boolean> {
    if (batch.faults.length > 0) addFaults(batch.faults)
    if (!isDryRun && batch.faults.length > 0) return false
    for (let { rows } = batch; rows.length > 0 && progress.faults.length < faultsMax; ) {
      const outcome = await sendBatch(address, { ...batch, rows }, options, signal)
      if (outcome.kind === 'stored') {
        report({ inserted: progress.inserted + outcome.inserted, updated: progress.updated + outcome.updated })
        break
      }
      addFaults(outcome.faults)
      if (!isDryRun) return false
      // Once more without the faulty lines, to find those that the server has not come to.
      const faulty = new Set(outcome.faults.map(({ line }) => line))
      rows = rows.filter(({ line }) => !faulty.has(line))
    }
    return progress.faults.length < faultsMax
  }
  for await (const batch of createBatches(source)) {
    signal.throwIfAborted()
    if (!(await runBatch(batch))) break
  }
  report({ isOver: true })
}
