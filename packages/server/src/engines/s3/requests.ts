/**
 * Requests to a bucket of an S3-compatible store: deadlines, retries, the circuit breaker, and rejected writes.
 * `signed-fetch` sends a request, `blobs/s3` owns the operations.
 */
import type { Log } from '../../base/log.ts'
import { circuitProbeMs } from '../../limits/postgres.ts'
import {
  s3AnswerMs,
  s3AttemptsMax,
  s3BodyMs,
  s3PauseMs,
  s3RetryMaxMs,
  s3RetryMinMs,
  s3TickMs,
} from '../../limits/storage.ts'
import type { StoreAddress } from '../blobs/store-address.ts'
import { type Circuit, createCircuit } from '../sql/circuit.ts'
import { EngineError } from '../sql/error.ts'
import { type Deadline, Deadlines } from './deadline.ts'
import { createSignedFetch, S3Error, type S3Request, type SignedFetch } from './signed-fetch.ts'
import { textIn } from './xml.ts'

/** A response with its body. */
export interface S3Answer {
  readonly headers: Headers
  readonly text: string
}

/** A response whose body is still to be read; move `deadline` while reading. */
export interface S3Stream {
  readonly headers: Headers
  readonly body: ReadableStream<Uint8Array>
  readonly deadline: Deadline
}

/** Key written by probes only, beside the blobs. */
const probeKey = 'plinth-probe'

/** Exponential backoff with jitter, so that nodes do not retry together. */
function retryPauseMs(attempt: number): number {
  return Math.min(s3RetryMinMs * 4 ** (attempt - 1), s3RetryMaxMs) * (0.5 + Math.random() / 2)
}

const isWrite = ({ method }: S3Request): boolean => method === 'PUT' || method === 'POST'

const abortAll = (deadlines: ReadonlySet<Deadline>): void => {
  for (const deadline of [...deadlines]) deadline.abort()
}

/** Sends requests to one bucket, over the runtime's connection pool. */
export class S3Requests {
  /** Names the store in the log and in messages. */
  readonly #engine: string
  readonly #fetch: SignedFetch
  readonly #log: Log
  readonly #circuit: Circuit
  readonly #deadlines = new Deadlines()
  /** Exchanges without a response yet. */
  readonly #unanswered = { reads: new Set<Deadline>(), writes: new Set<Deadline>() }
  /** The store replies and rejects requests; null while it accepts them. */
  #failure: EngineError | null = null
  #refusesWrites = false

  constructor({ log, ...address }: StoreAddress & { readonly log: Log }) {
    this.#engine = `The S3 store at ${address.endpoint}, bucket "${address.bucket}"`
    this.#fetch = createSignedFetch(address)
    this.#log = log
    this.#circuit = createCircuit({
      engine: this.#engine,
      probe: (signal) => this.#probeStore(signal),
      isTroubled: () => this.#refusesWrites,
      tickMs: s3TickMs,
      log,
    })
    this.#circuit.onOpen(() => this.#abortUnanswered())
  }

  /** Sends a request, with retries. Null for a tolerated error. Rejects with `EngineError` `unavailable`. */
  send(request: S3Request): Promise<S3Answer | null> {
    return this.#attempt(request, async (deadline) => {
      const response = await this.#fetch(request, deadline.signal)
      const text = await response.text()
      // Some long operations start a 200 response before they fail.
      const late = request.method === 'POST' && text.includes('<Error>') ? textIn(text, 'Code') : null
      if (late !== null) throw new S3Error(500, late)
      deadline.end()
      return { headers: response.headers, text }
    })
  }

  /** Like `send`, with a streaming response body. */
  open(request: S3Request): Promise<S3Stream | null> {
    return this.#attempt(request, async (deadline) => {
      const response = await this.#fetch(request, deadline.signal)
      deadline.pause()
      if (!response.body) throw new S3Error(502, 'EmptyBody')
      return { headers: response.headers, body: response.body, deadline }
    })
  }

  /** Probes the store; returns the failure, or null. */
  async probe(): Promise<EngineError | null> {
    return (await this.#circuit.probe()) ?? this.#failure
  }

  /** Aborts every exchange and rejects later ones. */
  close(): void {
    this.#circuit.close()
    this.#deadlines.close()
  }

  async #attempt<T>(request: S3Request, take: (deadline: Deadline) => Promise<T>): Promise<T | null> {
    const { tolerated = [], isContinuation = false } = request
    for (let at = 1; ; at++) {
      try {
        const taken = await this.#exchange(request, take)
        if (isWrite(request) && this.#refusesWrites) this.#setFailure(null, false)
        return taken
      } catch (error) {
        if (error instanceof EngineError) throw error
        if (error instanceof S3Error && tolerated.includes(error.code)) return null
        const isFinal = error instanceof S3Error && !error.retriable
        const isHopeless = this.#circuit.failure !== null && !isContinuation
        const { isClosed } = this.#deadlines
        if (isFinal || at >= s3AttemptsMax || isClosed || isHopeless) {
          const failure = new EngineError('unavailable', `${this.#engine}: ${(error as Error).message}`, [], error)
          if (isFinal && isWrite(request)) this.#setFailure(failure, true)
          if (!isFinal && !isClosed) this.#circuit.suspect()
          throw failure
        }
      }
      await new Promise((resolve) => setTimeout(resolve, retryPauseMs(at)))
    }
  }

  async #exchange<T>(request: S3Request, take: (deadline: Deadline) => Promise<T>): Promise<T> {
    const { body, isContinuation = false } = request
    const { load } = this.#circuit
    if (!isContinuation) this.#circuit.check()
    const deadline = this.#deadlines.start(body === undefined ? s3AnswerMs : s3BodyMs)
    const unanswered = isWrite(request) ? this.#unanswered.writes : this.#unanswered.reads
    unanswered.add(deadline)
    load.running += 1
    try {
      const taken = await take(deadline)
      this.#circuit.answered()
      return taken
    } catch (error) {
      deadline.end()
      throw error
    } finally {
      unanswered.delete(deadline)
      load.running -= 1
      load.finished += 1
    }
  }

  /** A writer has already sent its bytes: a store that only paused may still accept them. */
  #abortUnanswered(): void {
    abortAll(this.#unanswered.reads)
    const timer = setTimeout(() => {
      if (this.#circuit.failure !== null) abortAll(this.#unanswered.writes)
    }, s3PauseMs)
    timer.unref()
  }

  /**
   * The store is available when it replies; rejected credentials are a reply, recorded for the node's health. Rejected
   * writes end when a small object can be written.
   */
  async #probeStore(signal: AbortSignal): Promise<void> {
    const deadline = this.#deadlines.start(circuitProbeMs)
    signal.addEventListener('abort', () => deadline.abort())
    const request: S3Request = this.#refusesWrites
      ? { method: 'PUT', key: probeKey, body: 'probe' }
      : { method: 'HEAD' }
    try {
      const response = await this.#fetch(request, deadline.signal)
      await response.arrayBuffer()
      this.#setFailure(null, false)
    } catch (error) {
      if (!(error instanceof S3Error) || error.retriable) throw error
      const reason = `${this.#engine} refuses: ${error.message}`
      this.#setFailure(new EngineError('unavailable', reason, [], error), this.#refusesWrites)
    } finally {
      deadline.end()
    }
  }

  /** Logs one line per outage, not per request. */
  #setFailure(found: EngineError | null, refusesWrites: boolean): void {
    const engine = this.#engine
    if (found !== null && this.#failure === null) this.#log.error('s3.refused', { engine, reason: found.message })
    if (found === null && this.#failure !== null) this.#log.info('s3.accepted', { engine })
    this.#failure = found
    this.#refusesWrites = refusesWrites
  }
}
