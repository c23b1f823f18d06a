/**
 * Signed requests to a bucket of an S3-compatible store: addresses, signatures, time limits, repeated attempts, and
 * what the store's errors mean. What is asked of it is `blobs-s3`'s matter.
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

/** Bytes that are sent, and sent again where need be, without being held in memory. */
export interface S3Body {
  readonly size: number
  /** Lower-case hex. */
  readonly sha256: string
  stream(): ReadableStream<Uint8Array>
}

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** None for the bucket itself. */
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | S3Body
  /** Error codes that are an answer like any other: `send` gives null for them. */
  readonly tolerated?: readonly string[]
  /** Goes on with something that the caller has a part of already: tried even while the store is known to be away. */
  readonly isContinuation?: boolean
}

/** An answer, and the bytes after its headers. */
export interface S3Answer {
  readonly headers: Headers
  readonly text: string
}

/** An answer whose body is still to come: as long as it is read, `deadline` must be moved. */
export interface S3Stream {
  readonly headers: Headers
  readonly body: ReadableStream<Uint8Array>
  readonly deadline: Deadline
}

export interface S3Requests {
  /**
   * One exchange, repeated where that may help. Null for a tolerated error. Rejects with `EngineError` `unavailable`.
   */
  send(request: S3Request): Promise<S3Answer | null>
  /** Like `send`, with the answer's body as it comes. */
  open(request: S3Request): Promise<S3Stream | null>
  /** Asks the store now; gives what is wrong, null for nothing. */
  probe(): Promise<EngineError | null>
  /** Breaks off every exchange; there will be no others. */
  close(): void
}

/** The store's refusal, by the code it gives; `retriable` when it may think better of it. */
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

/** Breaks an exchange off when it takes too long. */
export interface Deadline {
  readonly signal: AbortSignal
  /** The time starts over. */
  move(): void
  /** No time runs while the other side is not to blame. */
  pause(): void
  /** The exchange is over. */
  end(): void
  /** Breaks it off now. */
  abort(): void
}

/** Written by probes alone, beside the blobs. */
const probeKey = 'plinth-probe'

/** For the ends of many nodes not to try again at the same moment. */
function retryPauseMs(attempt: number): number {
  return Math.min(s3RetryMinMs * 4 ** (attempt - 1), s3RetryMaxMs) * (0.5 + Math.random() / 2)
}

/** Sends to one bucket, over connections that the runtime keeps. */
export function createS3Requests(options: StoreAddress & { readonly log: Log }): S3Requests {
  const { endpoint, bucket, region, accessKeyId, secretAccessKey, log } = options
  const base = `${endpoint.replace(/\/+$/, '')}/${bucket}`
  const signingKeys = new Map<string, ArrayBuffer>()
  const running = new Set<Deadline>()
  /** Exchanges whose answer has not begun. */
  const unanswered = { reads: new Set<Deadline>(), writes: new Set<Deadline>() }
  let refusal: EngineError | null = null
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
    // The body is part of what is signed: nothing on the way can change it, TLS or not.
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
    // Stores take no body whose length they are not told first.
    if (typeof body === 'object') headers.set('content-length', String(body.size))
    const response = await fetch(url, {
      method,
      headers,
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : body.stream() }),
      signal: deadline.signal,
      // Elsewhere our signature is worth nothing.
      redirect: 'manual',
    })
    if (response.ok) return response
    throw new S3Error(response.status, textIn(await response.text(), 'Code') ?? codeOf(response.status, request))
  }

  const engine = `The S3 store at ${endpoint}, bucket "${bucket}"`

  /** One line in the log for each outage, not for each request. */
  function setRefusal(found: EngineError | null, isWrite: boolean): void {
    if (found !== null && refusal === null) log.error('s3.refused', { engine, reason: found.message })
    if (found === null && refusal !== null) log.info('s3.accepted', { engine })
    refusal = found
    refusesWrites = found !== null && isWrite
  }

  /**
   * The store serves when it answers; a refusal of credentials is an answer, remembered for the health of the node. A
   * refusal of a write is over when a small object can be written.
   */
  async function probe(signal: AbortSignal): Promise<void> {
    const deadline = startDeadline(circuitProbeMs)
    signal.addEventListener('abort', () => deadline.abort())
    const request: S3Request = refusesWrites ? { method: 'PUT', key: probeKey, body: 'probe' } : { method: 'HEAD' }
    try {
      const response = await fetchOnce(request, deadline)
      await response.arrayBuffer()
      setRefusal(null, false)
    } catch (error) {
      if (!(error instanceof S3Error) || error.retriable) throw error
      setRefusal(new EngineError('unavailable', `${engine} refuses: ${error.message}`, [], error), refusesWrites)
    } finally {
      deadline.end()
    }
  }

  const circuit = createCircuit({ engine, probe, isTroubled: () => refusesWrites, tickMs: s3TickMs, log })
  const abortAll = (deadlines: ReadonlySet<Deadline>): void => {
    for (const deadline of [...deadlines]) deadline.abort()
  }
  // A sender has given its bytes already: a store that only paused may still take them.
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
        if (isWrite && refusesWrites) setRefusal(null, false)
        return taken
      } catch (error) {
        if (error instanceof EngineError) throw error
        if (error instanceof S3Error && tolerated.includes(error.code)) return null
        const isFinal = error instanceof S3Error && !error.retriable
        const isHopeless = circuit.failure !== null && !isContinuation
        if (isFinal || at >= s3AttemptsMax || isClosed || isHopeless) {
          const failure = new EngineError('unavailable', `${engine}: ${(error as Error).message}`, [], error)
          if (isFinal && isWrite) setRefusal(failure, true)
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
        // Some long operations begin their answer before they know how they end.
        const late = request.method === 'POST' && text.includes('<Error>') ? textIn(text, 'Code') : null
        if (late !== null) throw new S3Error(500, late)
        deadline.end()
        return { headers: response.headers, text }
      }),
    open: (request) =>
      attempt(request, async (deadline) => {
        const response = await fetchOnce(request, deadline)
        deadline.pause()
        if (!response.body) throw new S3Error(502, 'NoBody')
        return { headers: response.headers, body: response.body, deadline }
      }),
    probe: async () => (await circuit.probe()) ?? refusal,
    close() {
      isClosed = true
      circuit.close()
      for (const deadline of [...running]) deadline.abort()
    },
  }
}

/** An answer to HEAD has no body to name the error in. */
function codeOf(status: number, { key }: S3Request): string {
  if (status === 404) return key === undefined ? 'NoSuchBucket' : 'NoSuchKey'
  return status === 403 ? 'AccessDenied' : `Http${status}`
}
