/** What the parts of a write share: its transaction, and what its records are afterwards. */
import type { Transaction } from '../../../engines/sql/sql.ts'
import type { Change } from '../changes/changes.ts'
import type { TableCall } from '../resolve-table.ts'
import type { RecordRow } from '../rows.ts'

/** A write in progress: its transaction and what its changes are logged under. */
export interface Write {
  readonly call: TableCall
  readonly tx: Transaction
  /** Called for each change in the turn of its commit. */
  readonly committed: (call: TableCall, change: Change) => void
  readonly requestId: string
  readonly nowMs: number
  /** Place in a batch, such as `deletes[3]`; empty outside one. */
  readonly at: string
  /** What the whole request has logged, in characters. */
  readonly logged: { chars: number }
  /** Records by id that were read and locked beforehand, as this transaction has left them. */
  readonly locked?: Map<string, RecordRow>
  /** Field by which no record was found to update: one that has its value now came in between. */
  readonly conflictTarget?: string
}

/** A record as a write has left it, and the same as JSON. */
export interface Stored {
  readonly row: RecordRow
  readonly text: string
}
