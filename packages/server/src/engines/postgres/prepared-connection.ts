/** A connection to PostgreSQL in the pool: its statements counted, their failures mapped and reported. */
import type pg from 'pg'
import { postgresStatementsMax, statementAnswerMs } from '../../limits/postgres.ts'
import type { Load } from '../sql/circuit.ts'
import type { EngineError } from '../sql/error.ts'
import { type FaultScope, faultOf } from './errors.ts'
import { type Answer, type Prepared, Wire } from './wire/wire.ts'

/** A borrowed connection. A broken one rejects every statement. */
export interface PreparedConnection {
  /**
   * Sends a statement. If one that `isChained` fails, those sent after it in the same tick are skipped; others are
   * independent. Rejects with `EngineError`, or with the library's error for an invalid statement.
   */
  send(statement: Prepared, isChained?: boolean): Promise<Answer>
}

/** State of a connection beside the library's. */
export class PooledConnection implements PreparedConnection {
  private readonly wire: Wire
  private isBroken = false

  constructor(
    readonly client: pg.Client,
    private readonly load: Load,
    private readonly report: (scope: FaultScope, error: EngineError) => void,
  ) {
    client.on('error', () => {
      this.isBroken = true
    })
    this.wire = new Wire(client)
  }

  send(statement: Prepared, isChained = false): Promise<Answer> {
    const { load } = this
    load.running += 1
    const deadlineMs = performance.now() + (statement.answerMs ?? statementAnswerMs)
    return new Promise((resolve, reject) => {
      this.wire.send(statement, !isChained, deadlineMs, {
        resolve(answer) {
          load.running -= 1
          load.finished += 1
          resolve(answer)
        },
        reject: (failure) => {
          load.running -= 1
          load.finished += 1
          reject(this.noted(failure))
        },
      })
    })
  }

  /** Reports a failure that concerns more than its statement. */
  private noted(failure: unknown): unknown {
    const { error, scope } = faultOf(failure)
    if (scope !== 'statement') {
      // A connection to a server that became read-only leads to the former primary.
      this.isBroken ||= scope !== 'health'
      this.report(scope, error as EngineError)
    }
    return error
  }

  /** Closes the connection if a reply is overdue. */
  expire(nowMs: number): void {
    this.wire.expire(nowMs)
  }

  /** Whether it must be replaced: broken, with too many prepared statements, or left inside a transaction. */
  get isSpent(): boolean {
    return this.isBroken || this.wire.statements > postgresStatementsMax || this.wire.isInTransaction
  }
}
