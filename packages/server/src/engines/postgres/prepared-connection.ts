/** One connection to PostgreSQL: statements prepared by name, counted, their failures mapped and reported. */
import type pg from 'pg'
import { postgresStatementsMax, statementAnswerMs } from '../../limits/postgres.ts'
import type { Load } from '../sql/circuit.ts'
import type { EngineError } from '../sql/error.ts'
import { type FaultScope, faultOf } from './errors.ts'

/** A statement with `$1`, `$2`…; the name stands for the text on every connection. */
export interface Prepared {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
  /** How long to wait for the answer; `statementAnswerMs` unless told otherwise. */
  readonly answerMs?: number
}

export interface Answer {
  /** `INSERT`, `COMMIT`…: what the server says it did. */
  readonly command: string
  readonly rows: readonly unknown[]
  readonly changed: number
}

/** A connection on loan. A broken one rejects whatever it is sent. */
export interface PreparedConnection {
  /** Rejects with `EngineError`, or with the library's error for a mistake in the statement. */
  send(statement: Prepared): Promise<Answer>
}

/** What is known of a connection beyond what the library knows. */
export class PooledConnection implements PreparedConnection {
  /** Names prepared here: the server keeps them all, so a connection that has collected many is replaced. */
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
    // The library reads the time limit from here; its types do not know it.
    const query = { name, text, values: values as unknown[], query_timeout: answerMs }
    try {
      const { command, rows, rowCount } = await this.client.query(query)
      return { command, rows, changed: rowCount ?? 0 }
    } catch (failure) {
      const { error, scope } = faultOf(failure)
      if (scope !== 'statement') {
        // One to a server that became read-only leads to what was the primary.
        this.isBroken ||= scope !== 'health'
        this.report(scope, error as EngineError)
      }
      throw error
    } finally {
      this.load.running -= 1
      this.load.finished += 1
    }
  }

  /** Whether it is not to be lent again; so is one that was left in the middle of a transaction. */
  get isSpent(): boolean {
    return this.isBroken || this.prepared.size > postgresStatementsMax || this.client.getTransactionStatus() !== 'I'
  }
}
