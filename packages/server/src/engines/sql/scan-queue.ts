/**
 * The queue of scans: statements that may visit every row of a table. A few run at once, the others wait, round robin
 * over callers.
 */
import { createFairQueue, QueueFullError, QueueTimeoutError } from '../../base/concurrency/fair-queue.ts'
import { scanStanding, scansWaitingMax, scansWaitingPerCallerMax, scanWaitMs } from '../../limits/sqlite.ts'
import { EngineError } from './error.ts'

/** Who scans, and for how long a scan may run. Its time in the queue does not count. */
export interface ScanOptions {
  /** The caller's key (`callerKey`). */
  readonly caller: string
  readonly timeoutMs: number
}

export interface ScanQueue {
  /** Runs `work` when a slot is free. Throws `EngineError` `crowded` or `busy` where too many scans wait. */
  enter<T>(caller: string, work: () => Promise<T>): Promise<T>
}

/** The error for a scan that exceeded its time limit. */
export const scanTimedOut = (timeoutMs: number, cause?: unknown): EngineError =>
  new EngineError('timeout', `The query took longer than ${timeoutMs / 1000} seconds and was ended`, [], cause)

function refusalOf(error: unknown): unknown {
  if (error instanceof QueueTimeoutError) return new EngineError('busy', 'A scan waited too long')
  if (!(error instanceof QueueFullError)) return error
  return error.bound === 'caller'
    ? new EngineError('crowded', 'Too many slow requests of yours are waiting')
    : new EngineError('busy', 'Too many scans are waiting')
}

/** `running`: scans at once. */
export function createScanQueue(running: number): ScanQueue {
  const queue = createFairQueue({
    running,
    waiting: scansWaitingMax * running,
    waitingPerCaller: scansWaitingPerCallerMax * running,
    waitMs: scanWaitMs,
    standing: scanStanding,
  })
  const { signal } = new AbortController()
  return {
    enter: (caller, work) =>
      queue.enter(caller, signal, work).catch((error: unknown) => {
        throw refusalOf(error)
      }),
  }
}
