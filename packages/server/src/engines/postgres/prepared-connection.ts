/** A connection to PostgreSQL in the pool: its statements counted, their failures mapped and reported. */
import type pg from 'pg'
import { postgresStatementsMax, statementAnswerMs } from '../../limits/postgres.ts'
import type { Load } from '../sql/circuit.ts'
import type { EngineError } from '../sql/error.ts'
import { type FaultScope, faultOf } from './errors.ts'
import { type Answer, type Prepared, type Segment, Wire } from './wire/wire.ts'

/** A borrowed connection. A broken one rejects every statement. */
export interface PreparedConnection {
  /**
   * Sends a statement, by default in a segment of its own. Rejects with `EngineError`, with the library's error for an
   * invalid statement, and with `SkippedStatement` after another of its segment has failed.
   */
  send(statement: Prepared, segment?: Segment): Promise<Answer>
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

  send(statement: Prepared, segment: Segment = 'own'): Promise<Answer> {
    const { load } = this
    load.running += 1
    const deadlineMs = performance.now() + (statement.answerMs ?? statementAnswerMs)
    return new Promise((resolve, reject) => {
      this.wire.send(statement, segment, deadlineMs, {
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
