/**
 * Connections to PostgreSQL: a bounded pool. A transaction has a connection to itself; reads share a few, each sent
 * without waiting for the one before. Every statement is prepared once per connection. Owns time limits and what
 * happens to a connection that breaks; the port's words for failures are `postgres`'s matter.
 */
import pg from 'pg'
import type { Log } from '../base/log.ts'
import {
  postgresConnectionsMax,
  postgresConnectTimeoutMs,
  postgresIdleMs,
  postgresSharedConnectionsMax,
  postgresStatementsMax,
  statementAnswerMs,
  statementTimeoutMs,
} from '../limits.ts'
import { EngineError } from './error.ts'

/** A statement with `$1`, `$2`…; the name stands for the text on every connection. */
export interface Prepared {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
}

export interface Answer {
  /** `INSERT`, `COMMIT`…: what the server says it did. */
  readonly command: string
  readonly rows: readonly unknown[]
  readonly changed: number
}

/** A connection for as long as somebody has it. Broken ones reject whatever they are sent. */
export interface Line {
  send(statement: Prepared): Promise<Answer>
}

export interface Connections {
  /** Sends a statement that needs no transaction. */
  read(statement: Prepared): Promise<Answer>
  /** Lends a connection to `work` alone. Statements it sends without awaiting go out together, in order. */
  withOwn<T>(work: (line: Line) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** JSON stays text: records are parsed by those who read them. */
const jsonTypes: ReadonlySet<number> = new Set([pg.types.builtins.JSON, pg.types.builtins.JSONB])
const asText = (value: unknown): unknown => value
const types = {
  getTypeParser: ((oid: number, format: 'text' | 'binary') =>
    jsonTypes.has(oid) ? asText : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
}

/**
 * What the server says passes as it is; the library gives failures of a connection no kind of their own, so whatever
 * else is not a mistake of the program is one of those.
 */
function asAway(error: unknown): unknown {
  const isOurs = error instanceof pg.DatabaseError || error instanceof TypeError || error instanceof RangeError
  return isOurs ? error : new EngineError('unavailable', (error as Error).message, [], error)
}

/** What is known of a connection beyond what the library knows. */
class PooledLine implements Line {
  /** Names prepared here: the server keeps them all, so a connection that has collected many is replaced. */
  private readonly prepared = new Set<string>()
  private broken = false

  constructor(private readonly client: pg.PoolClient) {
    // Without a listener an error that comes while nobody waits for an answer would end the process.
    client.on('error', () => {
      this.broken = true
    })
  }

  async send({ name, text, values }: Prepared): Promise<Answer> {
    this.prepared.add(name)
    try {
      const { command, rows, rowCount } = await this.client.query({ name, text, values: values as unknown[] })
      return { command, rows, changed: rowCount ?? 0 }
    } catch (error) {
      throw asAway(error)
    }
  }

  get isSpent(): boolean {
    return this.broken || this.prepared.size > postgresStatementsMax
  }

  /** One that somebody left in the middle of a transaction is not lent again. */
  giveBack(): void {
    this.client.release(this.isSpent || this.client.getTransactionStatus() !== 'I')
  }
}

/** A connection that several reads use at once. */
interface Shared {
  readonly line: Promise<PooledLine>
  running: number
}

/** `url` is a `postgres://` URL. Connections are made as they are needed. */
export function openConnections({ url, log }: { readonly url: string; readonly log: Log }): Connections {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: 'plinth',
    max: postgresConnectionsMax,
    connectionTimeoutMillis: postgresConnectTimeoutMs,
    idleTimeoutMillis: postgresIdleMs,
    statement_timeout: statementTimeoutMs,
    query_timeout: statementAnswerMs,
    keepAlive: true,
    pipeline: true,
    types,
  })
  const lines = new WeakMap<pg.PoolClient, PooledLine>()
  let shared: Shared[] = []
  pool.on('connect', (client) => {
    lines.set(client, new PooledLine(client))
    client.on('notice', ({ message }) => log.debug('PostgreSQL says', { message }))
  })
  pool.on('error', (error) => log.debug('An idle connection to PostgreSQL ended', { error }))

  async function take(): Promise<PooledLine> {
    try {
      return lines.get(await pool.connect()) as PooledLine
    } catch (error) {
      throw asAway(error)
    }
  }

  /** The shared connection with the least to do, or another while there may be more. */
  function findShared(): Shared {
    let least: Shared | undefined
    for (const one of shared) if (!least || one.running < least.running) least = one
    if (least && shared.length >= postgresSharedConnectionsMax) return least
    const opened = { line: take(), running: 0 }
    shared.push(opened)
    return opened
  }

  const stopSharing = (one: Shared): void => {
    shared = shared.filter((other) => other !== one)
  }

  return {
    async read(statement) {
      const one = findShared()
      one.running += 1
      let line: PooledLine | undefined
      try {
        line = await one.line
        return await line.send(statement)
      } finally {
        one.running -= 1
        if (one.running === 0 || !line || line.isSpent) stopSharing(one)
        if (one.running === 0) line?.giveBack()
      }
    },

    async withOwn(work) {
      const line = await take()
      try {
        return await work(line)
      } finally {
        line.giveBack()
      }
    },

    close: () => pool.end(),
  }
}
