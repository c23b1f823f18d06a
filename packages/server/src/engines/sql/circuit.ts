/**
 * A circuit breaker before an engine on another machine. Closed, work passes; once a probe fails, the circuit is open
 * and work is refused at once, until a probe succeeds. Probes run when the health of the engine is asked for, when work
 * reports a failure that may concern the whole engine, and when work is under way but nothing is answered.
 */
import type { Log } from '../../base/log.ts'
import { circuitProbeMs, circuitRetryMaxMs, circuitRetryMinMs, circuitTickMs } from '../../limits/postgres.ts'
import { EngineError } from './error.ts'

/** Work under way, counted by the adapter: plain fields, since every statement changes them. */
export interface Load {
  running: number
  finished: number
}

export interface CircuitOptions {
  /** Names the engine in the log and in messages. */
  readonly engine: string
  /** Resolves when the engine serves; rejects with why it does not. Aborted when it takes too long. */
  readonly probe: (signal: AbortSignal) => Promise<void>
  /** Whether the adapter knows of trouble that only a probe can end. */
  readonly isTroubled?: () => boolean
  /** How often work under way is looked at; half a second unless told otherwise. */
  readonly tickMs?: number
  readonly log: Log
}

export interface Circuit {
  readonly load: Load
  /** Why work is refused; null while it passes. */
  readonly failure: EngineError | null
  /** Throws the failure while the circuit is open. */
  check(): void
  /** Work failed in a way that may concern the whole engine: has it probed now. */
  suspect(): void
  /** Work that began before the circuit opened was answered after all: the circuit closes. */
  answered(): void
  /** Probes and gives what is wrong, null for nothing; answers at once while the circuit is open. */
  probe(): Promise<EngineError | null>
  /** Called when the circuit opens: whatever waits for the engine is to fail now. */
  onOpen(listener: (failure: EngineError) => void): void
  /** Probes no more. */
  close(): void
}

const toEngineError = (engine: string, error: unknown): EngineError =>
  new EngineError('unavailable', `${engine}: ${(error as Error).message}`, [], error)

/** Pauses grow, and differ between nodes that lost the engine at the same moment. */
const retryPauseMs = (attempt: number): number =>
  Math.min(circuitRetryMinMs * 2 ** Math.min(attempt, 16), circuitRetryMaxMs) * (0.5 + Math.random() / 2)

export function createCircuit(options: CircuitOptions): Circuit {
  const { engine, probe, isTroubled = () => false, tickMs = circuitTickMs, log } = options
  const load: Load = { running: 0, finished: 0 }
  const listeners: ((failure: EngineError) => void)[] = []
  let failure: EngineError | null = null
  let probing: Promise<EngineError | null> | null = null
  let retry: ReturnType<typeof setTimeout> | undefined
  let seen = 0
  let isClosed = false

  function open(found: EngineError): void {
    const isFirst = failure === null
    failure = found
    if (!isFirst) return
    // Without a stack: that an engine is away is no mistake in the program.
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
    // An outage that follows another has but one series of probes.
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
    const isSilent = load.running > 0 && load.finished === seen
    seen = load.finished
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
 * Rejects, and aborts the work, when it takes longer than that. An answer that is here already but was not read yet,
 * since this process was busy, still counts.
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
