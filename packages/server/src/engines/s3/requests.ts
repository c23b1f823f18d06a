/**
 * Signed requests to a bucket of an S3-compatible store: URLs, signatures, deadlines, retries, and the mapping of the
 * store's errors. `blobs/s3` owns the operations.
 */
import { AwsV4Signer } from 'aws4fetch'
import { sha256 as sha256Of } from '../../base/crypto/hash.ts'
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
import { createCircuit } from '../sql/circuit.ts'
import { EngineError } from '../sql/error.ts'
import { textIn } from './xml.ts'

/** A body that can be sent repeatedly without being held in memory. */
export interface S3Body {
  readonly size: number
  /** Lower-case hex. */
  readonly sha256: string
  stream(): ReadableStream<Uint8Array>
}

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** Absent for the bucket itself. */
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | S3Body
  /** Error codes that are valid outcomes: `send` returns null for them. */
  readonly tolerated?: readonly string[]
  /** Continues an operation the caller has partly completed: attempted even while the circuit is open. */
  readonly isContinuation?: boolean
}

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

export interface S3Requests {
  /** Sends a request, with retries. Null for a tolerated error. Rejects with `EngineError` `unavailable`. */
  send(request: S3Request): Promise<S3Answer | null>
  /** Like `send`, with a streaming response body. */
  open(request: S3Request): Promise<S3Stream | null>
  /** Probes the store; returns the failure, or null. */
  probe(): Promise<EngineError | null>
  /** Aborts every exchange and rejects later ones. */
  close(): void
}

/** An error response of the store; `retriable` if a retry may succeed. */
class S3Error extends Error {
  readonly retriable: boolean
  constructor(
    readonly status: number,
    readonly code: string,
  ) {
    super(`The store answered ${status} ${code}`)
    this.name = 'S3Error'
    this.retriable = status >= 500 || status === 429 || status === 408 || code === 'RequestTimeout'
  }
}

/** Aborts an exchange that exceeds its time limit. */
export interface Deadline {
  readonly signal: AbortSignal
  /** Restarts the timer. */
  move(): void
  /** Stops the timer while the store is not responsible for the delay. */
  pause(): void
  /** Ends the deadline: the exchange is complete. */
  end(): void
  /** Aborts the exchange. */
  abort(): void
}

/** Key written by probes only, beside the blobs. */
const probeKey = 'plinth-probe'

/** Exponential backoff with jitter, so that nodes do not retry together. */
function retryPauseMs(attempt: number): number {
  return Math.min(s3RetryMinMs * 4 ** (attempt - 1), s3RetryMaxMs) * (0.5 + Math.random() / 2)
}

/** Sends requests to one bucket, over the runtime's connection pool. */
export function createS3Requests(options: StoreAddress & { readonly log: Log }): S3Requests {
  const { endpoint, bucket, region, accessKeyId, secretAccessKey, log } = options
  const base = `${endpoint.replace(/\/+$/, '')}/${bucket}`
  const signingKeys = new Map<string, ArrayBuffer>()
  const running = new Set<Deadline>()
  /** Exchanges without a response yet. */
  const unanswered = { reads: new Set<Deadline>(), writes: new Set<Deadline>() }
  let failure: EngineError | null = null
  let refusesWrites = false
  let isClosed = false

  function startDeadline(ms: number): Deadline {
    const controller = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const deadline: Deadline = {
      signal: controller.signal,
      move() {
        clearTimeout(timer)
        timer = setTimeout(() => deadline.abort(), ms)
      },
      pause: () => clearTimeout(timer),
      end() {
        clearTimeout(timer)
        running.delete(deadline)
      },
      abort() {
        deadline.end()
        controller.abort()
      },
    }
    running.add(deadline)
    if (isClosed) deadline.abort()
    else deadline.move()
    return deadline
  }

  function sign({ method, key, query = {}, headers, body = '' }: S3Request): AwsV4Signer {
    const url = `${base}${key === undefined ? '' : `/${key}`}?${new URLSearchParams(query)}`
    // The signature covers the body: it cannot be changed in transit, with TLS or without.
    const sha256 = typeof body === 'string' ? sha256Of(body) : body.sha256
    return new AwsV4Signer({
      method,
      url,
      headers: { ...headers, 'x-amz-content-sha256': sha256 },
      service: 's3',
      region,
      accessKeyId,
      secretAccessKey,
      cache: signingKeys,
    })
  }

  async function fetchOnce(request: S3Request, deadline: Deadline): Promise<Response> {
    const { url, method, headers } = await sign(request).sign()
    const { body } = request
    // Stores require the body's length in advance.
    if (typeof body === 'object') headers.set('content-length', String(body.size))
    const response = await fetch(url, {
      method,
      headers,
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : body.stream() }),
      signal: deadline.signal,
      // The signature is invalid at another host.
      redirect: 'manual',
    })
    if (response.ok) return response
    throw new S3Error(response.status, textIn(await response.text(), 'Code') ?? codeOf(response.status, request))
  }

  const engine = `The S3 store at ${endpoint}, bucket "${bucket}"`

  /** Logs one line per outage, not per request. */
  function setFailure(found: EngineError | null, isWrite: boolean): void {
    if (found !== null && failure === null) log.error('s3.refused', { engine, reason: found.message })
    if (found === null && failure !== null) log.info('s3.accepted', { engine })
    failure = found
    refusesWrites = found !== null && isWrite
  }

  /**
   * The store is available when it replies; rejected credentials are a reply, recorded for the node's health. Rejected
   * writes end when a small object can be written.
   */
  async function probe(signal: AbortSignal): Promise<void> {
    const deadline = startDeadline(circuitProbeMs)
    signal.addEventListener('abort', () => deadline.abort())
    const request: S3Request = refusesWrites ? { method: 'PUT', key: probeKey, body: 'probe' } : { method: 'HEAD' }
    try {
      const response = await fetchOnce(request, deadline)
      await response.arrayBuffer()
      setFailure(null, false)
    } catch (error) {
      if (!(error instanceof S3Error) || error.retriable) throw error
      setFailure(new EngineError('unavailable', `${engine} refuses: ${error.message}`, [], error), refusesWrites)
    } finally {
      deadline.end()
    }
  }

  const circuit = createCircuit({ engine, probe, isTroubled: () => refusesWrites, tickMs: s3TickMs, log })
  const abortAll = (deadlines: ReadonlySet<Deadline>): void => {
    for (const deadline of [...deadlines]) deadline.abort()
  }
  // A writer has already sent its bytes: a store that only paused may still accept them.
  circuit.onOpen(() => {
    abortAll(unanswered.reads)
    const timer = setTimeout(() => {
      if (circuit.failure !== null) abortAll(unanswered.writes)
    }, s3PauseMs)
    timer.unref()
  })

  async function exchange<T>(request: S3Request, take: (deadline: Deadline) => Promise<T>): Promise<T> {
    const { body, method, isContinuation = false } = request
    if (!isContinuation) circuit.check()
    const deadline = startDeadline(body === undefined ? s3AnswerMs : s3BodyMs)
    const waiting = method === 'PUT' || method === 'POST' ? unanswered.writes : unanswered.reads
    waiting.add(deadline)
    circuit.load.running += 1
    try {
      const taken = await take(deadline)
      circuit.answered()
      return taken
    } catch (error) {
      deadline.end()
      throw error
    } finally {
      waiting.delete(deadline)
      circuit.load.running -= 1
      circuit.load.finished += 1
    }
  }

  async function attempt<T>(request: S3Request, take: (deadline: Deadline) => Promise<T>): Promise<T | null> {
    const { tolerated = [], method, isContinuation = false } = request
    const isWrite = method === 'PUT' || method === 'POST'
    for (let at = 1; ; at++) {
      try {
        const taken = await exchange(request, take)
        if (isWrite && refusesWrites) setFailure(null, false)
        return taken
      } catch (error) {
        if (error instanceof EngineError) throw error
        if (error instanceof S3Error && tolerated.includes(error.code)) return null
        const isFinal = error instanceof S3Error && !error.retriable
        const isHopeless = circuit.failure !== null && !isContinuation
        if (isFinal || at >= s3AttemptsMax || isClosed || isHopeless) {
          const failure = new EngineError('unavailable', `${engine}: ${(error as Error).message}`, [], error)
          if (isFinal && isWrite) setFailure(failure, true)
          if (!isFinal && !isClosed) circuit.suspect()
          throw failure
        }
      }
      await new Promise((resolve) => setTimeout(resolve, retryPauseMs(at)))
    }
  }

  return {
    send: (request) =>
      attempt(request, async (deadline) => {
        const response = await fetchOnce(request, deadline)
        const text = await response.text()
        // Some long operations start a 200 response before they fail.
        const late = request.method === 'POST' && text.includes('<Error>') ? textIn(text, 'Code') : null
        if (late !== null) throw new S3Error(500, late)
        deadline.end()
        return { headers: response.headers, text }
      }),
    open: (request) =>
      attempt(request, async (deadline) => {
        const response = await fetchOnce(request, deadline)
        deadline.pause()
        if (!response.body) throw new S3Error(502, 'EmptyBody')
        return { headers: response.headers, body: response.body, deadline }
      }),
    probe: async () => (await circuit.probe()) ?? failure,
    close() {
      isClosed = true
      circuit.close()
      for (const deadline of [...running]) deadline.abort()
    },
  }
}

/** A response to HEAD has no body with an error code. */
function codeOf(status: number, { key }: S3Request): string {
  if (status === 404) return key === undefined ? 'NoSuchBucket' : 'NoSuchKey'
  return status === 403 ? 'AccessDenied' : `Http${status}`
}
