/**
 * Health of the PostgreSQL server: whether it replies, accepts writes, and is sound. Probes use a connection of their
 * own, so that neither a full pool nor a locked table looks like an outage.
 */
import type pg from 'pg'
import type { Log } from '../../base/log.ts'
import type { DatabaseAddress } from '../../base/network/database-url.ts'
import {
  circuitProbeMs,
  circuitRetryMaxMs,
  circuitRetryMinMs,
  postgresDamageMs,
  statementAnswerMs,
} from '../../limits/postgres.ts'
import { type Circuit, createCircuit } from '../sql/circuit.ts'
import { EngineError } from '../sql/error.ts'
import { createConnector, destroyClient } from './connect.ts'
import { type FaultScope, faultOf, sqlStateOf } from './errors.ts'

export interface ServerHealth {
  readonly circuit: Circuit
  /** Reports a failure that concerns more than its statement. */
  note(scope: FaultScope, error: EngineError): void
  /** Throws `EngineError` `unavailable` while the server replies but rejects writes. */
  checkWrites(): void
  /** Probes and returns the failure, or null. */
  probe(): Promise<EngineError | null>
  /** Resolves once the server is available; rejects with `EngineError` `unavailable` after `withinMs` milliseconds. */
  waitUntilReady(withinMs: number): Promise<void>
  close(): void
}

const stateQuery = `SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS readonly`

/** Allocates and frees some 100 KiB on disk, in a temporary table that ends with its transaction. */
const writeQuery = `BEGIN;
  CREATE TEMPORARY TABLE plinth_probe ON COMMIT DROP AS SELECT n, repeat('x', 1000) AS text FROM generate_series(1, 100) AS n;
  COMMIT`

/** The user may not create temporary tables: the next write shows whether the disk has room. */
const missingPrivilege = '42501'

/** States that waiting does not resolve: a wrong user or password, and a missing database. */
const isFinal = (sqlState: string): boolean => sqlState.startsWith('28') || sqlState === '3D000'

export function watchServerHealth(options: { readonly address: DatabaseAddress; readonly log: Log }): ServerHealth {
  const { address, log } = options
  const connector = createConnector(address, {
    application_name: 'plinth probe',
    query_timeout: statementAnswerMs,
    keepAlive: true,
  })
  let client: pg.Client | null = null
  let writeFailure: EngineError | null = null
  let damage: EngineError | null = null
  let damagedUntilMs = 0
  let isClosed = false

  function drop(): void {
    connector.forget()
    connector.abort()
    if (client) destroyClient(client)
    client = null
  }

  async function connection(): Promise<pg.Client> {
    if (client) return client
    const opened = await connector.connect()
    if (isClosed) destroyClient(opened)
    client = opened
    opened.on('end', () => {
      if (client === opened) client = null
    })
    return opened
  }

  async function probe(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', drop)
    try {
      const own = await connection()
      const [state] = (await own.query<{ standby: boolean; readonly: boolean }>(stateQuery)).rows
      if (state?.standby) throw new EngineError('unavailable', 'the server is a standby')
      if (state?.readonly) noteWrites(new EngineError('unavailable', 'the server is read-only'))
      else if (writeFailure !== null) await probeWrite(own)
    } catch (error) {
      drop()
      throw faultOf(error).error
    } finally {
      signal.removeEventListener('abort', drop)
    }
  }

  /** Accepts writes again once a probe write succeeds. */
  async function probeWrite(own: pg.Client): Promise<void> {
    try {
      await own.query(writeQuery)
    } catch (error) {
      await own.query('ROLLBACK')
      if (sqlStateOf(error) !== missingPrivilege) return
    }
    writeFailure = null
    log.info('postgres.writes_restored', { engine: address.description })
  }

  function noteWrites(error: EngineError): void {
    if (writeFailure === null)
      log.error('postgres.writes_refused', { engine: address.description, reason: error.message })
    writeFailure = error
  }

  const currentDamage = (): EngineError | null => (performance.now() < damagedUntilMs ? damage : null)
  const circuit = createCircuit({
    engine: address.description,
    probe,
    isTroubled: () => writeFailure !== null,
    log,
  })
  circuit.onOpen(drop)

  return {
    circuit,
    note(scope, error) {
      if (scope === 'connection') circuit.suspect()
      if (scope === 'writes') noteWrites(error)
      if (scope !== 'health') return
      if (currentDamage() === null)
        log.error('postgres.damaged', { engine: address.description, reason: error.message })
      damage = error
      damagedUntilMs = performance.now() + postgresDamageMs
    },
    checkWrites() {
      circuit.check()
      if (writeFailure !== null) throw writeFailure
    },
    probe: async () => (await circuit.probe()) ?? writeFailure ?? currentDamage(),
    waitUntilReady: (withinMs) => retryUntilReady(probe, { description: address.description, withinMs, log }),
    close() {
      isClosed = true
      circuit.close()
      drop()
    },
  }
}

/** Repeats the probe with exponential backoff until it succeeds, fails for good, or the time is over. */
async function retryUntilReady(
  probe: (signal: AbortSignal) => Promise<void>,
  { description, withinMs, log }: { readonly description: string; readonly withinMs: number; readonly log: Log },
): Promise<void> {
  const endMs = performance.now() + withinMs
  for (let attempt = 0; ; attempt++) {
    try {
      return await probe(AbortSignal.timeout(circuitProbeMs))
    } catch (error) {
      const state = sqlStateOf(error) ?? ''
      const isOver = performance.now() >= endMs || isFinal(state)
      const reason = (error as Error).message
      const outcome = isFinal(state) ? 'cannot be used' : `did not answer within ${withinMs / 1000} seconds`
      if (isOver) throw new EngineError('unavailable', `${description} ${outcome}: ${reason}`, [], error)
      if (attempt === 0) log.warn('postgres.waiting', { engine: description, reason, withinMs })
    }
    const pauseMs = Math.min(circuitRetryMinMs * 2 ** attempt, circuitRetryMaxMs)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}
