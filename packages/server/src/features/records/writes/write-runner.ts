/**
 * Runs the write of one request: in one transaction, within the caller's write budget, and at most once per
 * `Idempotency-Key`. Hooks run outside of the transaction. The endpoints decide what is written.
 */
import { callerKey } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import type { DatabaseAddress, Transaction } from '../../../engines/sql/sql.ts'
import type { AuditedChange } from '../../../http/audited-change.ts'
import type { Call, Reply } from '../../../http/endpoint.ts'
import { idempotencyRetentionMs } from '../../../limits/api.ts'
import { type BeforeHooks, type HookOperation, hookOperations, type NamespaceHooks } from '../../before-hooks.ts'
import { rehearsalOf } from '../../write-rehearsal.ts'
import type { Change } from '../changes/changes.ts'
import { maskedValues } from '../hidden-values.ts'
import type { TableCall } from '../resolve-table.ts'
import { HookPasses } from './hooks/hook-pass.ts'
import { createRowLocks } from './hooks/row-locks.ts'
import {
  effectKeyOf,
  hasStored,
  type IdempotencyKey,
  parseIdempotencyKey,
  type Replay,
  writeOnce,
} from './idempotency.ts'
import type { RemovalBounds } from './removal-bounds.ts'
import { type ResponseShape, replayedBody } from './replay.ts'
import type { WriteResponse } from './response.ts'
import type { WriteBudget } from './write-budget.ts'
import type { OnCommitted, Write } from './write-context.ts'

/**
 * Runs `work` in a transaction, or repeats the response that the request's Idempotency-Key had before; `shapeOf` gives
 * the records that the response contains. Throws what `work` throws, with nothing written, and 429 while the caller's
 * write budget is exhausted.
 */
export type RunWrite = (
  call: Call,
  table: TableCall,
  shapeOf: () => ResponseShape,
  work: (write: Write) => Promise<WriteResponse>,
  options?: RunWriteOptions,
) => Promise<Reply>

export interface RunWriteOptions {
  /** Whether the write concerns other tables as well, so that it uses no single table's share of the connections. */
  readonly spansTables?: boolean
  readonly foresees?: Foreseen
  /** See `WriteOptions`: the only row of the table that is locked or written. */
  readonly row?: string | null | undefined
  /** Whether no hook runs before the write. */
  readonly skipsHooks?: boolean
  /** Whether an error is the response to a repeated request as well; true by default. */
  readonly storesErrors?: boolean
}

/**
 * Writes that can be foreseen, so that their hooks run before the transaction: the work has one operation, and reads no
 * more than the rows that it writes, each by its id, and none that it has written.
 */
export interface Foreseen {
  readonly operation: HookOperation
  /** Gives each row to its hooks as the work does, in a rehearsal. */
  readonly rehearse: (write: Write) => unknown
}

export interface WriteRunnerDeps {
  readonly budget: WriteBudget
  /** Called before each write with the address of its database. */
  readonly onWrite: (address: DatabaseAddress) => void
  readonly committed: OnCommitted
  readonly removals: RemovalBounds
  /** The hooks that run before writes; null without any. */
  readonly hooks: BeforeHooks | null
  readonly clock: Clock
}

/** The operations on a table that its hooks see; on any table without a name. */
const coveredBy = (hooks: NamespaceHooks, tableName: string | null): readonly HookOperation[] =>
  hookOperations.filter((operation) => tableName === null || hooks.covers(tableName, operation))

export function createWriteRunner({ budget, onWrite, committed, removals, hooks, clock }: WriteRunnerDeps): RunWrite {
  const lockRows = createRowLocks()
  return (call, table, shapeOf, work, options = {}) => {
    const { spansTables = false, foresees, row, skipsHooks = false, storesErrors = true } = options
    const { database, address } = table
    const isBounded = budget.check(call.caller)
    const nowMs = clock.now()
    const key = keyOf(call, storesErrors)
    onWrite(address)
    const hooked = skipsHooks ? null : (hooks?.of(address.namespace) ?? null)
    const covered = hooked && coveredBy(hooked, spansTables ? null : table.table.name)
    const passes = hooked && covered?.length ? new HookPasses(hooked, call, lockRows) : null
    const committedHere = call.audit ? audited(committed, call.audit) : committed
    const writeIn = (tx: Transaction, isRehearsal: boolean): Write => {
      const logged = { chars: 0 }
      if (isBounded) tx.afterCommit(() => budget.charge(call.caller, logged.chars))
      const { requestId } = call
      return {
        call: table,
        tx,
        committed: committedHere,
        removals,
        requestId,
        nowMs,
        at: '',
        hooks: passes,
        isRehearsal,
        logged,
      }
    }
    const run = (tx: Transaction): Promise<WriteResponse> => work(writeIn(tx, false))
    const isForeseen = foresees !== undefined && covered?.includes(foresees.operation) === true
    const target = {
      database,
      namespace: address.namespace,
      table: spansTables ? undefined : table.table.name,
      // What its hooks have yet to decide is undone.
      row: passes && !isForeseen ? undefined : row,
      caller: callerKey(call.caller),
    }
    const times = { nowMs, sinceMs: nowMs - idempotencyRetentionMs }
    const replay: Replay = (tx, stored) => replayedBody(tx, table, shapeOf(), stored)
    if (!passes) return writeOnce(target, key, times, run, replay)
    const attempt = () => writeOnce(target, key, times, passes.pass(run), replay)
    if (!foresees || !isForeseen) return passes.run(attempt, null)
    const rehearse = (): unknown => foresees.rehearse(writeIn(rehearsalOf(database), true))
    // A repeated request gets its response; its hooks have run.
    const rehearseOnce = async (): Promise<unknown> => !(key && (await hasStored(target, key, times))) && rehearse()
    return passes.run(attempt, key ? rehearseOnce : rehearse)
  }
}

/** Publishes changes, and notes them for the audit log. */
const audited =
  (committed: OnCommitted, audit: (change: AuditedChange) => void): OnCommitted =>
  (written, change) => {
    committed(written, change)
    audit(auditedChange(change))
  }

/** The change of a record as the audit log shows it: hidden fields only by name. */
function auditedChange({ table, id, before, after }: Change): AuditedChange {
  const shown = (row: Change['before']): object | null => row && { id, ...maskedValues(table, row) }
  return { before: shown(before), after: shown(after) }
}

/** Null without the header, except for the writes of jobs. */
function keyOf(
  { effectKey, headers, caller, method, path, query, body }: Call,
  storesErrors: boolean,
): IdempotencyKey | null {
  if (effectKey !== undefined) return effectKeyOf(effectKey)
  const header = headers.get('Idempotency-Key')
  if (header === null) return null
  const ifMatch = headers.get('If-Match')
  const content = JSON.stringify([query, body, ...(ifMatch === null ? [] : [ifMatch])])
  return parseIdempotencyKey(header, { caller, method, path, content }, storesErrors)
}
