/** One connection to PostgreSQL: statements prepared by name, counted, their failures mapped and reported. */
import type pg from 'pg'
import { postgresStatementsMax, statementAnswerMs } from '../../limits/postgres.ts'
import type { Load } from '../sql/circuit.ts'
import type { EngineError } from '../sql/error.ts'
import { type FaultScope, faultOf } from './errors.ts'

/** A statement with `$1`, `$2`…; the name identifies the text on every connection. */
export interface Prepared {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
  /** Time to wait for the reply, in milliseconds; `statementAnswerMs` by default. */
  readonly answerMs?: number
}

export interface Answer {
  /** Command tag of the reply: `INSERT`, `COMMIT`… */
  readonly command: string
  readonly rows: readonly unknown[]
  readonly changed: number
}

/** A borrowed connection. A broken one rejects every statement. */
export interface PreparedConnection {
  /** Rejects with `EngineError`, or with the library's error for an invalid statement. */
  send(statement: Prepared): Promise<Answer>
}

/** State of a connection beside the library's. */
export class PooledConnection implements PreparedConnection {
  /** Names prepared on this connection: the server keeps them all, so a connection with many is replaced. */
  private readonly prepared = new Set<string>()
  private isBroken = false

  constructor(
    readonly client: pg.Client,
    private readonly load: Load,
    private readonly report: (scope: FaultScope, error: EngineError) => void,
  ) {
    client.on('error', () => {
      this.isBroken = true
    })
  }

  async send({ name, text, values, answerMs = statementAnswerMs }: Prepared): Promise<Answer> {
    this.prepared.add(name)
    this.load.running += 1
    // The library reads the time limit from here; its types lack it.
    const query = { name, text, values: values as unknown[], query_timeout: answerMs }
    try {
      const { command, rows, rowCount } = await this.client.query(query)
      return { command, rows, changed: rowCount ?? 0 }
    } catch (failure) {
      const { error, scope } = faultOf(failure)
      if (scope !== 'statement') {
        // A connection to a server that became read-only leads to the former primary.
        this.isBroken ||= scope !== 'health'
        this.report(scope, error as EngineError)
      }
      throw error
    } finally {
      this.load.running -= 1
      this.load.finished += 1
    }
  }

  /** Whether it must be replaced: broken, with too many prepared statements, or left inside a transaction. */
  get isSpent(): boolean {
    return this.isBroken || this.prepared.size > postgresStatementsMax || this.client.getTransactionStatus() !== 'I'
  }
}
