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

export interface Pool {
  /** Current maximum: less than configured while the server has no room. */
  readonly limit: number
  /**
   * Borrows a connection. Rejects with `EngineError` `busy` if none is free in time, `unavailable` if none can be
   * opened.
   */
  take(): Promise<pg.Client>
  /** Returns a connection; one that is not `reusable` is closed. */
  give(client: pg.Client, reusable: boolean): void
  /** Closes every connection, in use or not, and rejects every waiter. */
  abort(failure: EngineError): void
  /** Waits a bounded time for borrowed connections, then closes all. */
  close(): Promise<void>
}

interface Waiter {
  resolve(client: pg.Client): void
  reject(error: unknown): void
}

interface Idle {
  readonly client: pg.Client
  readonly sinceMs: number
}

export function createPool({ connector, connectionsMax, onFailure, log }: PoolOptions): Pool {
  const open = new Set<pg.Client>()
  const waiting = new Set<Waiter>()
  /** Most recently used last: the first are closed first. */
  let idle: Idle[] = []
  let opening = 0
  let limit = connectionsMax
  let isClosed = false
  let onDrained: (() => void) | null = null

  const size = (): number => open.size + opening

  function remove(client: pg.Client): void {
    open.delete(client)
    idle = idle.filter((one) => one.client !== client)
    if (open.size === 0) onDrained?.()
  }

  /** To the longest waiter; else idle. */
  function offer(client: pg.Client): void {
    const [first] = waiting
    if (first) first.resolve(client)
    else idle.push({ client, sinceMs: performance.now() })
  }

  /** Opens another connection for the waiters, within the limit. */
  async function grow(): Promise<void> {
    opening += 1
    try {
      const client = await connector.connect()
      if (isClosed) return destroyClient(client)
      open.add(client)
      client.on('notice', ({ message }) => log.debug('postgres.notice', { message }))
      client.on('end', () => {
        const wasIdle = idle.some((one) => one.client === client)
        remove(client)
        if (wasIdle && !isClosed) onFailure(new Error('An idle connection ended'))
      })
      offer(client)
    } catch (error) {
      refuse(error)
    } finally {
      opening -= 1
    }
  }

  /** When the server has no room, waiters wait for the existing connections. */
  function refuse(error: unknown): void {
    if (sqlStateOf(error) === tooManyClientsState && open.size > 0) {
      if (limit > open.size)
        log.warn('postgres.pool_reduced', { connections: open.size, reason: (error as Error).message })
      limit = open.size
      return
    }
    onFailure(error)
    const [first] = waiting
    first?.reject(unavailable(error))
  }

  const tick = setInterval(() => {
    const sinceMs = performance.now() - postgresIdleMs
    for (const one of idle.filter((one) => one.sinceMs < sinceMs)) {
      remove(one.client)
      endGently(one.client)
    }
    limit = Math.min(connectionsMax, limit + 1)
    if (waiting.size > 0 && size() < limit) void grow()
  }, postgresPoolTickMs)
  tick.unref()

  function wait(): Promise<pg.Client> {
    if (waiting.size >= writeQueueOperationsMax)
      throw new EngineError('busy', 'Too many operations wait for a connection to PostgreSQL')
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer)
        waiting.delete(waiter)
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
      waiting.add(waiter)
      if (size() < limit && opening < waiting.size) void grow()
    })
  }

  return {
    get limit() {
      return limit
    },
    async take() {
      if (isClosed) throw new EngineError('unavailable', 'The connections to PostgreSQL are closed')
      const found = idle.pop()
      return found ? found.client : wait()
    },
    give(client, reusable) {
      if (!open.has(client)) {
        destroyClient(client)
      } else if (reusable && !isClosed && open.size <= limit) {
        offer(client)
        return
      } else {
        remove(client)
        endGently(client)
      }
      if (!isClosed && waiting.size > opening && size() < limit) void grow()
    },
    abort(failure) {
      connector.abort()
      for (const waiter of [...waiting]) waiter.reject(failure)
      for (const client of [...open]) {
        remove(client)
        destroyClient(client)
      }
    },
    async close() {
      isClosed = true
      clearInterval(tick)
      connector.abort()
      const failure = new EngineError('unavailable', 'The connections to PostgreSQL are closed')
      for (const waiter of [...waiting]) waiter.reject(failure)
      const ending = idle.map(({ client }) => client)
      for (const client of ending) remove(client)
      const drained = new Promise<void>((resolve) => {
        onDrained = resolve
        if (open.size === 0) resolve()
      })
      await Promise.all([...ending.map(endGently), inTime(drained, postgresCloseMs)])
      for (const client of [...open]) destroyClient(client)
    },
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
