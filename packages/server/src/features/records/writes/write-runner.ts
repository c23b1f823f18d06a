/**
 * Runs the write of one request: in one transaction, within the caller's write budget, and at most once per
 * `Idempotency-Key`. The endpoints decide what is written.
 */
import type { Clock } from '../../../base/clock.ts'
import type { DatabaseAddress, Transaction } from '../../../engines/sql/sql.ts'
import type { Call, Reply } from '../../../http/endpoint.ts'
import { idempotencyRetentionMs } from '../../../limits/api.ts'
import type { TableCall } from '../resolve-table.ts'
import { type IdempotencyKey, parseIdempotencyKey, type Replay, writeOnce } from './idempotency.ts'
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
}

export interface WriteRunnerDeps {
  readonly budget: WriteBudget
  /** Called before each write with the address of its database. */
  readonly onWrite: (address: DatabaseAddress) => void
  readonly committed: OnCommitted
  readonly removals: RemovalBounds
  readonly clock: Clock
}

export function createWriteRunner({ budget, onWrite, committed, removals, clock }: WriteRunnerDeps): RunWrite {
  return (call, table, shapeOf, work, { spansTables = false } = {}) => {
    const isBounded = budget.check(call.caller)
    const nowMs = clock.now()
    onWrite(table.address)
    const run = (tx: Transaction): Promise<WriteResponse> => {
      const logged = { chars: 0 }
      if (isBounded) tx.afterCommit(() => budget.charge(call.caller, logged.chars))
      return work({ call: table, tx, committed, removals, requestId: call.requestId, nowMs, at: '', logged })
    }
    const target = {
      database: table.database,
      namespace: table.address.namespace,
      table: spansTables ? undefined : table.table.name,
    }
    const times = { nowMs, sinceMs: nowMs - idempotencyRetentionMs }
    const replay: Replay = (tx, stored) => replayedBody(tx, table, shapeOf(), stored)
    return writeOnce(target, keyOf(call), times, run, replay)
  }
}

/** Null without the header. */
function keyOf({ headers, caller, method, path, query, body }: Call): IdempotencyKey | null {
  const header = headers.get('Idempotency-Key')
  if (header === null) return null
  const ifMatch = headers.get('If-Match')
  const content = JSON.stringify([query, body, ...(ifMatch === null ? [] : [ifMatch])])
  return parseIdempotencyKey(header, { caller, method, path, content })
}
