/**
 * Bounded connection pool. Waiting for a connection is bounded in number and time. When the server has no room for more
 * connections, the pool shrinks to those it has and grows again later.
 */
import type pg from 'pg'
import type { Log } from '../../base/log.ts'
import { postgresCloseMs, postgresIdleMs, postgresPoolTickMs, postgresWaitMs } from '../../limits/postgres.ts'
import { writeQueueOperationsMax } from '../../limits/sqlite.ts'
import { EngineError } from '../sql/error.ts'
import { type Connector, destroyClient } from './connect.ts'
import { faultOf, sqlStateOf, tooManyClientsState } from './errors.ts'

export interface PoolOptions {
  readonly connector: Connector
  readonly connectionsMax: number
  /** Called when a connection could not be opened, or an idle one ended. */
  readonly onFailure: (error: unknown) => void
  readonly log: Log
}

interface Waiter {
  resolve(client: pg.Client): void
  reject(error: unknown): void
}

interface Idle {
  readonly client: pg.Client
  readonly sinceMs: number
}

export class ConnectionPool {
  readonly #options: PoolOptions
  readonly #open = new Set<pg.Client>()
  readonly #waiting = new Set<Waiter>()
  readonly #tick: ReturnType<typeof setInterval>
  /** Most recently used last: the first are closed first. */
  #idle: Idle[] = []
  #opening = 0
  #limit: number
  #isClosed = false
  #onDrained: (() => void) | null = null

  constructor(options: PoolOptions) {
    this.#options = options
    this.#limit = options.connectionsMax
    this.#tick = setInterval(() => this.#maintain(), postgresPoolTickMs)
    this.#tick.unref()
  }

  /** Current maximum: less than configured while the server has no room. */
  get limit(): number {
    return this.#limit
  }

  /**
   * Borrows a connection. Rejects with `EngineError` `busy` if none is free in time, `unavailable` if none can be
   * opened.
   */
  async take(): Promise<pg.Client> {
    if (this.#isClosed) throw new EngineError('unavailable', 'The connections to PostgreSQL are closed')
    const found = this.#idle.pop()
    return found ? found.client : this.#wait()
  }

  /** Returns a connection; one that is not `reusable` is closed. */
  give(client: pg.Client, reusable: boolean): void {
    if (!this.#open.has(client)) {
      destroyClient(client)
    } else if (reusable && !this.#isClosed && this.#open.size <= this.#limit) {
      this.#offer(client)
      return
    } else {
      this.#remove(client)
      void endGently(client)
    }
    if (!this.#isClosed && this.#waiting.size > this.#opening && this.#size < this.#limit) void this.#grow()
  }

  /** Closes every connection, in use or not, and rejects every waiter. */
  abort(failure: EngineError): void {
    this.#options.connector.abort()
    for (const waiter of [...this.#waiting]) waiter.reject(failure)
    for (const client of [...this.#open]) {
      this.#remove(client)
      destroyClient(client)
    }
  }

  /** Waits a bounded time for borrowed connections, then closes all. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#tick)
    this.#options.connector.abort()
    const failure = new EngineError('unavailable', 'The connections to PostgreSQL are closed')
    for (const waiter of [...this.#waiting]) waiter.reject(failure)
    const ending = this.#idle.map(({ client }) => client)
    for (const client of ending) this.#remove(client)
    const drained = new Promise<void>((resolve) => {
      this.#onDrained = resolve
      if (this.#open.size === 0) resolve()
    })
    await Promise.all([...ending.map(endGently), inTime(drained, postgresCloseMs)])
    for (const client of [...this.#open]) destroyClient(client)
  }

  get #size(): number {
    return this.#open.size + this.#opening
  }

  #wait(): Promise<pg.Client> {
    if (this.#waiting.size >= writeQueueOperationsMax)
      throw new EngineError('busy', 'Too many operations wait for a connection to PostgreSQL')
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(waiter)
      }
      const waiter: Waiter = {
        resolve(client) {
          leave()
          resolve(client)
        },
        reject(error) {
          leave()
          reject(error)
        },
      }
      const timer = setTimeout(() => {
        waiter.reject(new EngineError('busy', `No connection to PostgreSQL was free within ${postgresWaitMs} ms`))
      }, postgresWaitMs)
      this.#waiting.add(waiter)
      if (this.#size < this.#limit && this.#opening < this.#waiting.size) void this.#grow()
    })
  }

  /** Opens another connection for the waiters, within the limit. */
  async #grow(): Promise<void> {
    const { connector, onFailure, log } = this.#options
    this.#opening += 1
    try {
      const client = await connector.connect()
      if (this.#isClosed) return destroyClient(client)
      this.#open.add(client)
      client.on('notice', ({ message }) => log.debug('postgres.notice', { message }))
      client.on('end', () => {
        const wasIdle = this.#idle.some((one) => one.client === client)
        this.#remove(client)
        if (wasIdle && !this.#isClosed) onFailure(new Error('An idle connection ended'))
      })
      this.#offer(client)
    } catch (error) {
      this.#refuse(error)
    } finally {
      this.#opening -= 1
    }
  }

  /** When the server has no room, waiters wait for the existing connections. */
  #refuse(error: unknown): void {
    const { onFailure, log } = this.#options
    const connections = this.#open.size
    if (sqlStateOf(error) === tooManyClientsState && connections > 0) {
      if (this.#limit > connections)
        log.warn('postgres.pool_reduced', { connections, reason: (error as Error).message })
      this.#limit = connections
      return
    }
    onFailure(error)
    const [first] = this.#waiting
    first?.reject(unavailable(error))
  }

  /** To the longest waiter; else idle. */
  #offer(client: pg.Client): void {
    const [first] = this.#waiting
    if (first) first.resolve(client)
    else this.#idle.push({ client, sinceMs: performance.now() })
  }

  #remove(client: pg.Client): void {
    this.#open.delete(client)
    this.#idle = this.#idle.filter((one) => one.client !== client)
    if (this.#open.size === 0) this.#onDrained?.()
  }

  /** Closes connections that have been idle for long, and grows again by one. */
  #maintain(): void {
    const sinceMs = performance.now() - postgresIdleMs
    for (const one of this.#idle.filter((one) => one.sinceMs < sinceMs)) {
      this.#remove(one.client)
      void endGently(one.client)
    }
    this.#limit = Math.min(this.#options.connectionsMax, this.#limit + 1)
    if (this.#waiting.size > 0 && this.#size < this.#limit) void this.#grow()
  }
}

const unavailable = (error: unknown): unknown => {
  const { error: mapped } = faultOf(error)
  return mapped instanceof EngineError ? mapped : new EngineError('unavailable', (error as Error).message, [], error)
}

/** Closes the session; does not wait for a server that does not reply. */
async function endGently(client: pg.Client): Promise<void> {
  await inTime(client.end(), postgresCloseMs / 5)
  destroyClient(client)
}

/** Resolves when the work ends, in success or failure, or after `ms`. */
async function inTime(work: Promise<unknown>, ms: number): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, ms)
  await Promise.race([work.catch(() => undefined), late.promise])
  clearTimeout(timer)
}
