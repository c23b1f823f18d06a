/**
 * Circuit breaker for an engine on another machine. While it is closed, work passes. A failed probe opens it, and work
 * is rejected at once until a probe succeeds. A probe runs on a health check, on a failure that may concern the whole
 * engine, and when operations are in flight but none completed for a tick.
 */
import type { Log } from '../../base/log.ts'
import { circuitProbeMs, circuitRetryMaxMs, circuitRetryMinMs, circuitTickMs } from '../../limits/postgres.ts'
import { EngineError } from './error.ts'

/** Operations in flight, counted by the adapter. Plain fields, since every statement updates them. */
export interface Load {
  running: number
  finished: number
}

export interface CircuitOptions {
  /** Names the engine in the log and in messages. */
  readonly engine: string
  /** Resolves when the engine is available; rejects with the reason when it is not. Aborted after `circuitProbeMs`. */
  readonly probe: (signal: AbortSignal) => Promise<void>
  /** Whether the adapter is in a degraded state that only a successful probe can end. */
  readonly isTroubled?: () => boolean
  /** Interval at which operations in flight are checked, in milliseconds; `circuitTickMs` by default. */
  readonly tickMs?: number
  readonly log: Log
}

export interface Circuit {
  readonly load: Load
  /** Why work is rejected; null while the circuit is closed. */
  readonly failure: EngineError | null
  /** Throws the failure while the circuit is open. */
  check(): void
  /** Reports a failure that may concern the whole engine; starts a probe. */
  suspect(): void
  /** Reports a reply to an operation that began before the circuit opened; closes the circuit. */
  answered(): void
  /** Probes and returns the failure, or null. While the circuit is open it returns the current failure at once. */
  probe(): Promise<EngineError | null>
  /** Registers a listener that is called when the circuit opens; operations that wait for the engine must fail then. */
  onOpen(listener: (failure: EngineError) => void): void
  /** Stops probing. */
  close(): void
}

const toEngineError = (engine: string, error: unknown): EngineError =>
  new EngineError('unavailable', `${engine}: ${(error as Error).message}`, [], error)

/** Exponential backoff with jitter, so that nodes that lost the engine together do not retry together. */
const retryPauseMs = (attempt: number): number =>
  Math.min(circuitRetryMinMs * 2 ** Math.min(attempt, 16), circuitRetryMaxMs) * (0.5 + Math.random() / 2)

export function createCircuit(options: CircuitOptions): Circuit {
  const { engine, probe, isTroubled = () => false, tickMs = circuitTickMs, log } = options
  const load: Load = { running: 0, finished: 0 }
  const listeners: ((failure: EngineError) => void)[] = []
  let failure: EngineError | null = null
  let probing: Promise<EngineError | null> | null = null
  let retry: ReturnType<typeof setTimeout> | undefined
  let finishedAtLastTick = 0
  let isClosed = false

  function open(found: EngineError): void {
    const isFirst = failure === null
    failure = found
    if (!isFirst) return
    // No stack: an unavailable engine is not a program error.
    log.error('engine.unavailable', { engine, reason: found.message })
    for (const listener of listeners) listener(found)
    retryLater(0)
  }

  function shut(): void {
    if (failure === null) return
    failure = null
    log.info('engine.available', { engine })
  }

  function retryLater(attempt: number): void {
    // Only one series of probes runs at a time.
    clearTimeout(retry)
    retry = setTimeout(async () => {
      await probeNow()
      if (failure !== null && !isClosed) retryLater(attempt + 1)
    }, retryPauseMs(attempt))
    retry.unref()
  }

  /** One probe at a time, shared by all callers. */
  function probeNow(): Promise<EngineError | null> {
    probing ??= within(circuitProbeMs, probe)
      .then(
        () => {
          if (!isClosed) shut()
          return null
        },
        (error) => {
          const found = toEngineError(engine, error)
          if (!isClosed) open(found)
          return found
        },
      )
      .finally(() => {
        probing = null
      })
    return probing
  }

  const tick = setInterval(() => {
    const isSilent = load.running > 0 && load.finished === finishedAtLastTick
    finishedAtLastTick = load.finished
    if (failure === null && (isSilent || isTroubled())) void probeNow()
  }, tickMs)
  tick.unref()

  return {
    load,
    get failure() {
      return failure
    },
    check() {
      if (failure !== null) throw failure
    },
    suspect() {
      if (failure === null && !isClosed) void probeNow()
    },
    answered: shut,
    probe: async () => failure ?? probeNow(),
    onOpen: (listener) => void listeners.push(listener),
    close() {
      isClosed = true
      clearInterval(tick)
      clearTimeout(retry)
    },
  }
}

/**
 * Rejects and aborts the work after `ms`. A reply that has arrived but was not read yet, because this process was busy,
 * still counts.
 */
async function within(ms: number, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>()
  const abort = new AbortController()
  const expire = (): void => {
    late.reject(new Error(`no answer within ${ms} ms`))
    abort.abort()
  }
  let timer = setTimeout(() => {
    timer = setTimeout(expire, 0)
  }, ms)
  try {
    await Promise.race([work(abort.signal), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
