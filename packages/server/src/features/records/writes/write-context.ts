/** The context of a write in progress, and the records it produces. */
import type { Transaction } from '../../../engines/sql/sql.ts'
import type { Change } from '../changes/changes.ts'
import type { TableCall } from '../resolve-table.ts'
import type { VersionedRow } from '../version.ts'
import type { HookPass } from './hooks/hook-pass.ts'
import type { RemovalBounds } from './removal-bounds.ts'

/** Called for each change of a row in a database, in the event-loop tick of its commit. */
export type OnCommitted = (written: Pick<TableCall, 'address' | 'database'>, change: Change) => void

/** A write in progress: its transaction, and the metadata of its changes. */
export interface Write {
  readonly call: TableCall
  readonly tx: Transaction
  readonly committed: OnCommitted
  readonly removals: RemovalBounds
  readonly requestId: string
  readonly nowMs: number
  /** Path in a batch, such as `deletes[3]`; empty outside a batch. */
  readonly at: string
  /** The hooks of the tables; null where no table of the namespace has any. */
  readonly hooks: HookPass | null
  /** Whether nothing is written or locked: the work finds out which hooks it needs. */
  readonly isRehearsal: boolean
  /** Characters that the request has added to the change log. */
  readonly logged: { chars: number }
  /** Records by id that were read and locked in advance, with this transaction's changes applied. */
  readonly locked?: Map<string, VersionedRow>
  /** The conflict target of an upsert that found no record; a duplicate in it was inserted concurrently. */
  readonly conflictTarget?: string
}

/** A record after a write, and its JSON. */
export interface Stored extends VersionedRow {
  readonly text: string
  /** Names of the fields that hooks have changed. */
  readonly altered?: ReadonlySet<string>
}

/** The path of a field in errors, with the position in the batch. */
export const fieldPath = ({ at }: Write, name: string): string => (at === '' ? name : `${at}.${name}`)
