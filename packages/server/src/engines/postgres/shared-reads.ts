/**
 * Pipelined reads over shared connections: each carries many statements, answered in order. A statement that waits for
 * a lock blocks those behind it (head-of-line blocking), so a stalled connection gets no others, no table occupies all
 * connections, and statements behind one that ran into its lock timeout are sent again elsewhere. Look-ups of rows with
 * the same text share a segment: the server runs them in one transaction, and answers with one packet.
 */
import {
  postgresBurstLookups,
  postgresBurstReads,
  postgresLockedMs,
  postgresSharedConnectionsMax,
  postgresStalledReadsMax,
  postgresTableShare,
} from '../../limits/postgres.ts'
import { EngineError } from '../sql/error.ts'
import { destroyClient } from './connect.ts'
import { lockTimeoutState, sqlStateOf } from './errors.ts'
import type { PooledConnection } from './prepared-connection.ts'
import type { PreparedStatement } from './statements.ts'
import { type Answer, SkippedStatement } from './wire/wire.ts'

export interface SharedReadsOptions {
  readonly take: () => Promise<PooledConnection>
  readonly give: (line: PooledConnection) => void
  /** Maximum number of connections. */
  readonly limit: () => number
}

export interface SharedReads {
  /** `key` names the table. Rejects with `EngineError` `busy` at once while the table is known to be locked. */
  send(statement: PreparedStatement, key: string): Promise<Answer>
  /** Throws `EngineError` `busy` while the table is known to be locked. */
  check(key: string): void
  /** Call it periodically: marks connections without a reply since the last call as stalled. */
  tick(): void
}

/** A connection used by several reads at once. */
interface Shared {
  readonly line: Promise<PooledConnection>
  running: number
  finished: number
  finishedAtLastTick: number
  isStalled: boolean
  /** A statement ran into the lock timeout; the others are sent again. */
  isAbandoned: boolean
  /** Statements in flight per table. */
  readonly tables: Map<string, number>
}

const shareOfBurst = ({ isLookup }: PreparedStatement): number =>
  1 / (isLookup ? postgresBurstLookups : postgresBurstReads)

/**
 * The connection of a table's last reads in this tick, for a few of them: they leave in one write, and wake one process
 * of the server.
 */
function createBursts(): {
  next(statement: PreparedStatement, key: string, usable: readonly Shared[]): Shared | null
  begin(statement: PreparedStatement, key: string, one: Shared): Shared
} {
  /** `left` is the share of the burst that is free. */
  let burst: { readonly one: Shared; readonly key: string; left: number } | null = null
  return {
    next(statement, key, usable) {
      const share = shareOfBurst(statement)
      if (burst?.key !== key || burst.left < share || burst.one.isStalled || !usable.includes(burst.one)) return null
      burst.left -= share
      return burst.one
    },
    begin(statement, key, one) {
      if (burst === null)
        setImmediate(() => {
          burst = null
        })
      burst = { one, key, left: 1 - shareOfBurst(statement) }
      return one
    },
  }
}

const lockedError = (cause?: unknown): EngineError =>
  new EngineError('busy', 'The table is locked by another session of the database', [], cause)

export function createSharedReads({ take, give, limit }: SharedReadsOptions): SharedReads {
  const lockedUntilMs = new Map<string, number>()
  let shared: Shared[] = []
  const bursts = createBursts()

  function check(key: string): void {
    if (lockedUntilMs.size === 0) return
    const untilMs = lockedUntilMs.get(key)
    if (untilMs === undefined) return
    if (performance.now() < untilMs) throw lockedError()
    lockedUntilMs.delete(key)
  }

  /** Fewer when the server has no room, so that transactions get some. */
  function connectionsMax(): number {
    const most = limit()
    return Math.max(1, Math.min(postgresSharedConnectionsMax, Math.floor(most * 0.4)))
  }

  /** The connection with the fewest statements among those the table may use, or a new one within the limit. */
  function choose(key: string): Shared {
    const most = connectionsMax()
    const share = Math.max(1, Math.floor(most * postgresTableShare))
    let carriers = 0
    for (const one of shared) if (one.tables.has(key)) carriers += 1
    const isAtShare = carriers >= share
    let least: Shared | undefined
    let stalled: Shared | undefined
    for (let at = 0; at < shared.length && at < most; at++) {
      const one = shared[at] as Shared
      if (isAtShare && !one.tables.has(key)) continue
      if (one.isStalled) {
        if (!stalled || one.running < stalled.running) stalled = one
      } else if (!least || one.running < least.running) least = one
    }
    if (shared.length < most && !isAtShare) return open()
    const chosen = least ?? stalled ?? shared[0] ?? open()
    if (chosen.isStalled && chosen.running >= postgresStalledReadsMax)
      throw new EngineError('busy', 'Too many statements wait for the same table')
    return chosen
  }

  function open(): Shared {
    const tables = new Map<string, number>()
    const one = {
      line: take(),
      running: 0,
      finished: 0,
      finishedAtLastTick: 0,
      isStalled: false,
      isAbandoned: false,
      tables,
    }
    shared.push(one)
    return one
  }

  const stopSharing = (one: Shared): void => {
    shared = shared.filter((other) => other !== one)
  }

  function begin(one: Shared, key: string): void {
    one.running += 1
    one.tables.set(key, (one.tables.get(key) ?? 0) + 1)
  }

  function end(one: Shared, key: string, line: PooledConnection | undefined): void {
    one.running -= 1
    one.finished += 1
    one.isStalled = false
    const left = (one.tables.get(key) ?? 1) - 1
    if (left === 0) one.tables.delete(key)
    else one.tables.set(key, left)
    if (one.running > 0 && line && !line.isSpent) return
    stopSharing(one)
    if (one.running === 0 && line) give(line)
  }

  async function send(statement: PreparedStatement, key: string, isRepeated = false): Promise<Answer> {
    check(key)
    const one = bursts.next(statement, key, shared) ?? bursts.begin(statement, key, choose(key))
    begin(one, key)
    let line: PooledConnection | undefined
    try {
      line = await one.line
      return await line.send(statement, statement.isLookup && !isRepeated ? 'alike' : 'own')
    } catch (error) {
      if (sqlStateOf(error) === lockTimeoutState) {
        lockedUntilMs.set(key, performance.now() + postgresLockedMs)
        one.isAbandoned = true
        if (line) destroyClient(line.client)
        throw lockedError(error)
      }
      // Reads behind another statement are idempotent: send it again.
      if (isRepeated || !(one.isAbandoned || error instanceof SkippedStatement)) throw error
    } finally {
      end(one, key, line)
    }
    return send(statement, key, true)
  }

  return {
    send: (statement, key) => send(statement, key),
    check,
    tick() {
      for (const one of shared) {
        one.isStalled = one.running > 0 && one.finished === one.finishedAtLastTick
        one.finishedAtLastTick = one.finished
      }
    },
  }
}
