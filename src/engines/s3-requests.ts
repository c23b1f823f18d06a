/**
 * Signed requests to a bucket of an S3-compatible store: addresses, signatures, time limits, repeated attempts, and
 * what the store's errors mean. What is asked of it is `blobs-s3`'s matter.
 */
import { AwsV4Signer } from 'aws4fetch'
import { sha256 as sha256Of } from '../base/hash.ts'
import type { Log } from '../base/log.ts'
import { s3AnswerMs, s3AttemptsMax, s3BodyMs, s3RetryMaxMs, s3RetryMinMs } from '../limits-storage.ts'
import { EngineError } from './error.ts'
import { textIn } from './s3-xml.ts'
import type { StoreAddress } from './store-address.ts'

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
  readonly attemptsMax?: number
  readonly timeoutMs?: number
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
  /** Breaks off every exchange; there will be no others. */
  close(): void
}

/** The store's refusal, by the code it gives; `retriable` when it may think better of it. */
class S3Refusal extends Error {
  readonly retriable: boolean
  constructor(
    readonly status: number,
    readonly code: string,
  ) {
    super(`The store answered ${status} ${code}`)
    this.name = 'S3Refusal'
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
  let isAway = false
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
    throw new S3Refusal(response.status, textIn(await response.text(), 'Code') ?? codeOf(response.status))
  }

  /** One line in the log for each outage, not for each request. */
  function tell(failure: unknown): void {
    if (isAway === (failure !== null)) return
    isAway = failure !== null
    if (isAway) log.error('The S3 store is away or refuses us', { error: failure })
    else log.info('The S3 store is back')
  }

  async function attempt<T>(request: S3Request, take: (deadline: Deadline) => Promise<T>): Promise<T | null> {
    const { attemptsMax = s3AttemptsMax, tolerated = [], body } = request
    const { timeoutMs = body === undefined ? s3AnswerMs : s3BodyMs } = request
    for (let at = 1; ; at++) {
      const deadline = startDeadline(timeoutMs)
      try {
        const taken = await take(deadline)
        tell(null)
        return taken
      } catch (error) {
        deadline.end()
        if (error instanceof S3Refusal && tolerated.includes(error.code)) {
          tell(null)
          return null
        }
        if ((error instanceof S3Refusal && !error.retriable) || at >= attemptsMax || isClosed) {
          if (!isClosed) tell(error)
          throw new EngineError('unavailable', 'The store is away or refuses us', [], error)
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
        if (late !== null) throw new S3Refusal(500, late)
        deadline.end()
        return { headers: response.headers, text }
      }),
    open: (request) =>
      attempt(request, async (deadline) => {
        const response = await fetchOnce(request, deadline)
        deadline.pause()
        if (!response.body) throw new S3Refusal(502, 'NoBody')
        return { headers: response.headers, body: response.body, deadline }
      }),
    close() {
      isClosed = true
      for (const deadline of [...running]) deadline.abort()
    },
  }
}

/** An answer to HEAD has no body to name the error in. */
const codeOf = (status: number): string => (status === 404 ? 'NoSuchKey' : `Http${status}`)
