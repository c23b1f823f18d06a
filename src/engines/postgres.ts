/**
 * The shared engine: the port's `Sql` on PostgreSQL. A bounded pool of connections, statements prepared by text,
 * transactions that are tried again when the database asks for it, and every failure of the connection in the port's
 * words. Several processes may serve the same database.
 */
import pg from 'pg'
import type { Log } from '../base/log.ts'
import { createLru } from '../base/lru.ts'
import { postgresHealthMs, postgresRetriesMax, statementCacheEntriesMax, writeQueueOperationsMax } from '../limits.ts'
import { postgresDialect } from './dialect-postgres.ts'
import { EngineError } from './error.ts'
import { type Answer, openConnections, type Prepared } from './postgres-connections.ts'
import type { Database, Sql, Transaction } from './sql.ts'
import { instanceToken, type SqlText } from './sql-text.ts'

/** States (SQLSTATE) in which the work was undone and may succeed when done again. */
const retryable: ReadonlySet<string> = new Set(['40001', '40P01'])

const isRetryable = (error: unknown): boolean =>
  error instanceof EngineError
    ? error.kind === 'outrun'
    : error instanceof pg.DatabaseError && retryable.has(error.code ?? '')

/** Classes of SQLSTATE that say the server is away, starting, stopping, full or out of connections. */
const awayClasses = /^(08|53|57P|58)/

/** `Key (slug)=(a) already exists.`: in whatever language, the columns stand in the first parentheses before `=`. */
const uniqueDetail = /\(([^)]*)\)=\(/

/** The port's words for what the server says; anything else passes as it is. */
function engineErrorOf(error: unknown): unknown {
  if (!(error instanceof pg.DatabaseError)) return error
  const { code = '', detail = '', message } = error
  if (code === '23505') {
    const columns = (uniqueDetail.exec(detail)?.[1] ?? '').split(', ').map((name) => name.replaceAll('"', ''))
    const declared = columns.filter((name) => name !== '_instance')
    return new EngineError('unique', message, declared, error)
  }
  // Beside the size of an index's row this is about statements that we never make.
  if (code === '54000') return new EngineError('oversized', message, [], error)
  // 57014: the statement took longer than `statement_timeout`.
  return code === '57014' || awayClasses.test(code) ? new EngineError('unavailable', message, [], error) : error
}

/** The port's `?` as `$1`, `$2`…; the instance token becomes `$1` wherever it stands. */
interface Numbered {
  readonly name: string
  readonly text: string
  readonly hasInstance: boolean
}

const placeholders = /\?(?:instance)?/g

function createNumbering(): (text: string) => Numbered {
  const known = createLru<string, Numbered>(4 * statementCacheEntriesMax)
  let names = 0
  return (text) => {
    let numbered = known.get(text)
    if (!numbered) {
      const hasInstance = text.includes(instanceToken.text)
      let count = hasInstance ? 1 : 0
      const renumbered = text.replace(placeholders, (found) => (found === instanceToken.text ? '$1' : `$${++count}`))
      // A text that was forgotten gets a name it never had: on some connections the old one may still stand.
      numbered = { name: `s${++names}`, text: renumbered, hasInstance }
      known.set(text, numbered)
    }
    return numbered
  }
}

const begin: Prepared = { name: 'begin', text: 'BEGIN', values: [] }
const commit: Prepared = { name: 'commit', text: 'COMMIT', values: [] }
const rollback: Prepared = { name: 'rollback', text: 'ROLLBACK', values: [] }

/** A transaction handle that dies with its turn, on a connection that is nobody else's meanwhile. */
class Turn implements Transaction {
  readonly hooks: (() => void)[] = []
  /** What was sent without waiting; rejected by what failed. */
  private readonly sent: Promise<unknown>[] = []
  private open = true

  constructor(private readonly query: (text: SqlText) => Promise<Answer>) {}

  private check(): void {
    if (!this.open) throw new Error('The transaction has ended')
  }

  async all<Row>(text: SqlText): Promise<Row[]> {
    this.check()
    return [...(await this.query(text)).rows] as Row[]
  }

  async run(text: SqlText): Promise<number> {
    this.check()
    return (await this.query(text)).changed
  }

  send(text: SqlText): void {
    this.check()
    const sent = this.query(text)
    sent.catch(() => undefined)
    this.sent.push(sent)
  }

  afterCommit(hook: () => void): void {
    this.check()
    this.hooks.push(hook)
  }

  end(): void {
    this.open = false
  }

  /** Once everything is answered: the first failure of what nobody waited for, else the given one. */
  async failure(otherwise: unknown): Promise<unknown> {
    for (const { status, reason } of (await Promise.allSettled(this.sent)) as PromiseRejectedResult[])
      if (status === 'rejected') return reason
    return otherwise
  }
}

/** Opens a pool; connections are made as they are needed. `url` is a `postgres://` URL. */
export function openPostgres({ url, log }: { readonly url: string; readonly log: Log }): Sql {
  const numbered = createNumbering()
  const connections = openConnections({ url, log })
  let waiting = 0

  function prepare(instanceId: string | null, { text, values }: SqlText): Prepared {
    const { name, text: withNumbers, hasInstance } = numbered(text)
    if (hasInstance && instanceId === null) throw new Error('The statement needs an instance')
    return { name, text: withNumbers, values: hasInstance ? [instanceId, ...values] : values }
  }

  /** One attempt at a write. Its first statement goes out with BEGIN, its last with COMMIT. */
  async function attempt<T>(instanceId: string | null, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return connections.withOwn(async (line) => {
      const turn = new Turn(async (text) => {
        try {
          return await line.send(prepare(instanceId, text))
        } catch (error) {
          throw engineErrorOf(error)
        }
      })
      const begun = line.send(begin)
      begun.catch(() => undefined)
      let result: T
      try {
        result = await work(turn)
      } catch (error) {
        turn.end()
        await line.send(rollback)
        throw await turn.failure(error)
      }
      turn.end()
      await begun
      const { command } = await line.send(commit)
      // The server answers so to the COMMIT of a transaction in which something failed.
      if (command !== 'COMMIT') throw await turn.failure(new Error('The transaction was undone'))
      for (const hook of turn.hooks) hook()
      return result
    })
  }

  async function write<T>(instanceId: string | null, work: (tx: Transaction) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt(instanceId, work)
      } catch (error) {
        if (!isRetryable(error)) throw engineErrorOf(error)
        if (tries >= postgresRetriesMax) throw new EngineError('busy', 'Too many writes want the same rows', [], error)
      }
    }
  }

  /** The pool queues without end when all connections are busy; we do not. */
  async function bounded<T>(task: () => Promise<T>): Promise<T> {
    if (waiting >= writeQueueOperationsMax) throw new EngineError('busy', 'Too many operations are waiting')
    waiting += 1
    try {
      return await task()
    } finally {
      waiting -= 1
    }
  }

  async function read(instanceId: string | null, text: SqlText): Promise<readonly unknown[]> {
    try {
      return (await connections.read(prepare(instanceId, text))).rows
    } catch (error) {
      throw engineErrorOf(error)
    }
  }

  const databaseOf = (instanceId: string | null): Database => ({
    dialect: postgresDialect,
    all: <Row>(text: SqlText) => bounded(async () => [...(await read(instanceId, text))] as Row[]),
    write: (work) => bounded(() => write(instanceId, work)),
    // A commit is answered when it is on disk.
    async synced() {},
  })
  const whole = databaseOf(null)

  return {
    keepsInstancesApart: false,
    database: ({ instanceId }) => (instanceId === null ? whole : databaseOf(instanceId)),
    holdWrites: null,
    prepareAgain() {},
    settleQuiet: async () => {},
    releaseHandles: () => false,
    async isHealthy() {
      const late = new Promise<boolean>((resolve) => setTimeout(resolve, postgresHealthMs, false).unref())
      const answers = read(null, { text: 'SELECT 1', values: [] }).then(
        () => true,
        () => false,
      )
      return Promise.race([answers, late])
    },
    close: () => connections.close(),
  }
}
