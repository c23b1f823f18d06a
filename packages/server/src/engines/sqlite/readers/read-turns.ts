/**
 * Reads that are asked for in one turn of the event loop run together at its end, in one transaction: the log is locked
 * once for all of them, and each finds SQLite's code and pages in the processor's caches, where the last one left them.
 */
import { readTurnMs } from '../../../limits/sqlite.ts'
import type { Connection } from '../connection.ts'

export interface ReadTurns {
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
export function createReadTurns(connection: Connection): ReadTurns {
  let waiting: Waiting[] = []

  /** Gives how many were run in the time of a turn. */
  function runSome(turn: readonly Waiting[]): number {
    const untilMs = performance.now() + readTurnMs
    let ran = 0
    for (const one of turn) {
      one.run()
      ran += 1
      if (performance.now() >= untilMs) break
    }
    return ran
  }

  function runTogether(turn: readonly Waiting[]): number {
    try {
      connection.exec('BEGIN')
    } catch (error) {
      for (const { reject } of turn) reject(error)
      return turn.length
    }
    try {
      return runSome(turn)
    } finally {
      // Some failures end the transaction themselves.
      if (connection.inTransaction) connection.exec('COMMIT')
    }
  }

  function run(): void {
    const turn = waiting
    waiting = []
    const ran = turn.length > 1 || turn[0]?.hasSeveral ? runTogether(turn) : runSome(turn)
    if (ran === turn.length) return
    waiting = turn.slice(ran)
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
