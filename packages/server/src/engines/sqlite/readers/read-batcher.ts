/**
 * Batches reads. Reads issued in one tick of the event loop run together at its end, in one transaction: the log is
 * locked once for all of them, and SQLite's code and pages stay in the processor's caches from one read to the next.
 */
import { readBatchMs } from '../../../limits/sqlite.ts'
import type { Connection } from '../connection.ts'

export interface ReadBatcher {
  /**
   * Runs `task`, which reads through the connection or elsewhere and sees every commit that was made before it was
   * asked for. One of several statements says so, and finds them all in one transaction.
   */
  read<T>(task: () => T | Promise<T>, hasSeveral?: boolean): Promise<T>
  /** Runs what still waits. */
  close(): void
}

interface Waiting {
  /** Runs the task and answers its caller. */
  readonly run: () => void
  readonly reject: (error: unknown) => void
  readonly hasSeveral: boolean
}

/** Nothing else may begin a transaction on `connection`. */
export function createReadBatcher(connection: Connection): ReadBatcher {
  let waiting: Waiting[] = []

  /** Gives how many were run in the time of a batch. */
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
      // Some failures end the transaction themselves.
      if (connection.inTransaction) connection.exec('COMMIT')
    }
  }

  function run(): void {
    const batch = waiting
    waiting = []
    const ran = batch.length > 1 || batch[0]?.hasSeveral ? runTogether(batch) : runSome(batch)
    if (ran === batch.length) return
    waiting = batch.slice(ran)
    setImmediate(run)
  }

  return {
    read: (task, hasSeveral = false) =>
      new Promise((resolve, reject) => {
        // A task that fails takes no other with it.
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
