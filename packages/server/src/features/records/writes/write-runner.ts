/**
 * Runs the write of one request: in one transaction, within the caller's write budget, and at most once per
 * `Idempotency-Key`. Hooks run outside of the transaction. The endpoints decide what is written.
 */
import type { Clock } from '../../../base/clock.ts'
import type { DatabaseAddress, Reader, Transaction } from '../../../engines/sql/sql.ts'
import type { Call, Reply } from '../../../http/endpoint.ts'
import { idempotencyRetentionMs } from '../../../limits/api.ts'
import type { BeforeHooks, HookOperation } from '../../before-hooks.ts'
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
  /**
   * The only operation of the work, where it reads no more than the rows that it writes, each by its id, and none that
   * it has written: then hooks can run before its transaction.
   */
  readonly foresees?: HookOperation
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

export function createWriteRunner({ budget, onWrite, committed, removals, hooks, clock }: WriteRunnerDeps): RunWrite {
  const lockRows = createRowLocks()
  return (call, table, shapeOf, work, { spansTables = false, foresees } = {}) => {
    const { database, address } = table
    const isBounded = budget.check(call.caller)
    const nowMs = clock.now()
    const key = keyOf(call)
    onWrite(address)
    const found = hooks?.of(address.namespace) ?? null
    const covers = (operation: HookOperation): boolean =>
      found?.covers(table.table.name, operation) === true || (spansTables && found !== null)
    const passes = found && operations.some(covers) ? new HookPasses(found, call, lockRows) : null
    const workIn = (tx: Transaction, isRehearsal: boolean): Promise<WriteResponse> => {
      const logged = { chars: 0 }
      if (isBounded) tx.afterCommit(() => budget.charge(call.caller, logged.chars))
      const { requestId } = call
      return work({
        call: table,
        tx,
        committed,
        removals,
        requestId,
        nowMs,
        at: '',
        hooks: passes,
        isRehearsal,
        logged,
      })
    }
    const run = (tx: Transaction): Promise<WriteResponse> => workIn(tx, false)
    const target = { database, namespace: address.namespace, table: spansTables ? undefined : table.table.name }
    const times = { nowMs, sinceMs: nowMs - idempotencyRetentionMs }
    const replay: Replay = (tx, stored) => replayedBody(tx, table, shapeOf(), stored)
    if (!passes) return writeOnce(target, key, times, run, replay)
    const rehearse = async (): Promise<unknown> =>
      // A repeated request gets its response; its hooks have run.
      key && (await hasStored(target, key, times)) ? null : workIn(rehearsalOf(database), true)
    const attempt = () => writeOnce(target, key, times, passes.pass(run), replay)
    return passes.run(attempt, foresees && covers(foresees) ? rehearse : null)
  }
}

const operations: readonly HookOperation[] = ['insert', 'update', 'delete']

/** Reads as a transaction would, and writes nothing. */
const rehearsalOf = (database: Reader): Transaction => ({
  all: (query) => database.all(query),
  run: async () => 1,
  send() {},
  async lock() {},
  afterCommit() {},
})

/** Null without the header, except for the writes of jobs. */
function keyOf({ effectKey, headers, caller, method, path, query, body }: Call): IdempotencyKey | null {
  if (effectKey !== undefined) return effectKeyOf(effectKey)
  const header = headers.get('Idempotency-Key')
  if (header === null) return null
  const ifMatch = headers.get('If-Match')
  const content = JSON.stringify([query, body, ...(ifMatch === null ? [] : [ifMatch])])
  return parseIdempotencyKey(header, { caller, method, path, content })
}
