/**
 * Batches reads. Reads issued in one tick of the event loop run together at its end, in one transaction: the log is
 * locked once for all of them, and SQLite's code and pages stay in the processor's caches from one read to the next.
 */
import { readBatchMs } from '../../../limits/sqlite.ts'
import type { Connection } from '../connection.ts'

export interface ReadBatcher {
  /**
   * Runs `task`, which reads through the connection or elsewhere, and sees every commit made before the call.
   * `hasSeveral` runs a task of several statements in one transaction.
   */
  read<T>(task: () => T | Promise<T>, hasSeveral?: boolean): Promise<T>
  /** Runs pending reads. */
  close(): void
}

interface Waiting {
  /** Runs the task and resolves its promise. */
  readonly run: () => void
  readonly reject: (error: unknown) => void
  readonly hasSeveral: boolean
}

/** `connection` must have no other user of transactions. `beforeReads` is called before the reads of each tick. */
export function createReadBatcher(connection: Connection, beforeReads = (_count: number): void => {}): ReadBatcher {
  let waiting: Waiting[] = []

  /** Runs tasks for up to `readBatchMs`; returns how many ran. */
  function runSome(batch: readonly Waiting[]): number {
    const untilMs = performance.now() + readBatchMs
    let ran = 0
    for (const one of batch) {
      one.run()
      ran += 1
      if (performance.now() >= untilMs) break
    }
    return ran
  }

  function runTogether(batch: readonly Waiting[]): number {
    try {
      connection.exec('BEGIN')
    } catch (error) {
      for (const { reject } of batch) reject(error)
      return batch.length
    }
    try {
      return runSome(batch)
    } finally {
      // Some failures roll back the transaction by themselves.
      if (connection.inTransaction) connection.exec('COMMIT')
    }
  }

  function run(): void {
    const batch = waiting
    waiting = []
    beforeReads(batch.length)
    const ran = batch.length > 1 || batch[0]?.hasSeveral ? runTogether(batch) : runSome(batch)
    if (ran === batch.length) return
    waiting = batch.slice(ran)
    setImmediate(run)
  }

  return {
    read: (task, hasSeveral = false) =>
      new Promise((resolve, reject) => {
        // A task that fails does not affect the others.
        const runTask = (): void => {
          try {
            resolve(task())
          } catch (error) {
            reject(error)
          }
        }
        if (waiting.push({ run: runTask, reject, hasSeveral }) === 1) setImmediate(run)
      }),
    close() {
      while (waiting.length > 0) run()
    },
  }
}
