/**
 * The queue of scans: statements that may visit every row of a table. A few run at once, the others wait, round robin
 * over callers.
 */
import { scanStanding, scansWaitingMax, scansWaitingPerCallerMax, scanWaitMs } from '../../limits/sqlite.ts'
import { createEngineQueue, type EngineQueue } from './engine-queue.ts'
import { EngineError } from './error.ts'

/** Who scans, and for how long a scan may run. Its time in the queue does not count. */
export interface ScanOptions {
  /** The caller's key (`callerKey`). */
  readonly caller: string
  readonly timeoutMs: number
}

/** The error for a scan that exceeded its time limit. */
export const scanTimedOut = (timeoutMs: number, cause?: unknown): EngineError =>
  new EngineError('timeout', `The query took longer than ${timeoutMs / 1000} seconds and was ended`, [], cause)

/** `running`: scans at once. */
export const createScanQueue = (running: number): EngineQueue =>
  createEngineQueue('slow requests', {
    running,
    waiting: scansWaitingMax * running,
    waitingPerCaller: scansWaitingPerCallerMax * running,
    waitMs: scanWaitMs,
    standing: scanStanding,
  })
