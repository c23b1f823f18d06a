/**
 * Reads that are asked for in one turn of the event loop run together at its end, in one transaction: the log is locked
 * once for all of them, and each finds SQLite's code and pages in the processor's caches, where the last one left them.
 */
import { readTurnMs } from '../limits.ts'
import type { SqlRow } from './sql.ts'
import type { SqlText } from './sql-text.ts'
import type { Connection } from './sqlite-connection.ts'

export interface ReadTurns {
  /** Sees every commit that was made before it was asked for. */
  read(query: SqlText): Promise<SqlRow[]>
  /** Runs what still waits. */
  close(): void
}

interface Waiting {
  readonly query: SqlText
  readonly resolve: (rows: SqlRow[] | Promise<SqlRow[]>) => void
  readonly reject: (error: unknown) => void
}

/** `read` is what one read does on `connection`, or elsewhere; nobody else may begin a transaction there. */
export function createReadTurns(
  connection: Connection,
  read: (query: SqlText) => SqlRow[] | Promise<SqlRow[]>,
): ReadTurns {
  let waiting: Waiting[] = []

  /** One that fails takes no other with it. */
  function answer({ query, resolve, reject }: Waiting): void {
    try {
      resolve(read(query))
    } catch (error) {
      reject(error)
    }
  }

  /** Gives how many were run in the time of a turn. */
  function runSome(turn: readonly Waiting[]): number {
    const untilMs = performance.now() + readTurnMs
    let ran = 0
    for (const one of turn) {
      answer(one)
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
    const ran = turn.length > 1 ? runTogether(turn) : runSome(turn)
    if (ran === turn.length) return
    waiting = turn.slice(ran)
    setImmediate(run)
  }

  return {
    read: (query) =>
      new Promise((resolve, reject) => {
        if (waiting.push({ query, resolve, reject }) === 1) setImmediate(run)
      }),
    close() {
      while (waiting.length > 0) run()
    },
  }
}
