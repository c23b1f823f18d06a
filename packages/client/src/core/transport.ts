/**
 * Requests over HTTP: credentials, retries, deadlines, and errors. Every request of the client goes through `send`.
 */
import { failure, PlinthError } from './error.ts'
import { randomId } from './ids.ts'

/** Where access tokens come from: the feature `auth`, or `getToken`. */
export interface Credentials {
  /** The token of the next request, refreshed where it is about to expire; null for an anonymous request. */
  token(): Promise<string | null>
  /** After a 401 for `rejected`: another token if there is one now. */
  renew(rejected: string): Promise<string | null>
}

/** Options of every call. */
export interface Call {
  readonly signal?: AbortSignal | undefined
  /** Milliseconds until the call fails with slug `timeout`, its retries included. */
  readonly timeout?: number | undefined
}

export interface Request extends Call {
  /** Values that are not text are sent as JSON; undefined and null are left out. */
  readonly query?: Readonly<Record<string, unknown>> | undefined
  /** Sent as JSON, unless it is `raw`. */
  readonly body?: unknown
  readonly raw?: BodyInit | undefined
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined
  /** The key under which the server executes the request at most once, which makes a POST repeatable. */
  readonly idempotencyKey?: string | undefined
  /** Whether a write may be sent twice because it has the same effect. */
  readonly isRepeatable?: boolean | undefined
  /** Attempts after the first one, for a request that is repeatable. */
  readonly retries?: number | undefined
  /** Whether to send the request without credentials. */
  readonly isAnonymous?: boolean | undefined
  /** `blob` for the bytes of the response. Default `json`. */
  readonly as?: 'json' | 'blob' | 'stream' | undefined
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  /** The parsed body, its `Blob`, or its stream; null where it is empty. */
  readonly data: unknown
}

export interface TransportOptions {
  readonly serviceKey?: string | undefined
  readonly fetch?: typeof fetch | undefined
  readonly retries?: number | undefined
  readonly timeout?: number | undefined
}

/** Longest wait between two attempts without `Retry-After`, and the base of its growth, in milliseconds. */
const backoffMaxMs = 30_000
const backoffBaseMs = 200

/** Exponential backoff with full jitter, in milliseconds. */
export const backoffMs = (attempt: number): number =>
  Math.random() * Math.min(backoffMaxMs, backoffBaseMs * 2 ** (attempt + 1))

export const queryString = (query: Readonly<Record<string, unknown>> = {}): string => {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null
      ? []
      : [
          `${encodeURIComponent(name)}=${encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value))}`,
        ],
  )
  return pairs.length > 0 ? `?${pairs.join('&')}` : ''
}

/** What ends a call early. Kept beside the signal because not every runtime supports `AbortSignal.reason`. */
class Cancellation {
  readonly #controller = new AbortController()
  reason: PlinthError | null = null

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  cancel(reason: PlinthError): void {
    this.reason ??= reason
    this.#controller.abort()
  }

  throwIfCanceled(): void {
    if (this.reason) throw this.reason
  }

  /** Waits, or rejects with the reason. */
  delay(ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        clearTimeout(timer)
        reject(this.reason)
      }
      const timer = setTimeout(() => {
        this.signal.removeEventListener('abort', stop)
        resolve()
      }, ms)
      this.signal.addEventListener('abort', stop)
    })
  }
}

const jsonPattern = /^application\/(?:[\w.+-]+\+)?json\b/i

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The error of a response that is not 2xx; of a proxy's page, where the body is not the server's. */
function errorOf(response: Response, text: string): PlinthError {
  const { status, headers } = response
  const body = parseJson(text) as { slug?: unknown; message?: unknown; data?: unknown } | null | undefined
  const seconds = Number.parseFloat(headers.get('retry-after') ?? '')
  const isServers = typeof body?.slug === 'string'
  return new PlinthError({
    status,
    slug: isServers ? (body.slug as string) : 'invalid-answer',
    message: isServers ? String(body.message) : `The response with status ${status} does not come from Plinth`,
    data: isServers ? body.data : undefined,
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfterMs: seconds >= 0 ? seconds * 1000 : undefined,
  })
}

export class Transport {
  /** Set by the feature `auth`, or for `getToken`. */
  credentials: Credentials | null = null
  /** Calls under way. */
  readonly #calls = new Set<Cancellation>()
  readonly #options: TransportOptions
  #isClosed = false

  constructor(
    /** Without a slash at the end. */
    readonly url: string,
    options: TransportOptions,
  ) {
    this.#options = options
  }

  /** Rejects the calls under way and all later ones. */
  close(): void {
    this.#isClosed = true
    for (const call of this.#calls) call.cancel(closed())
  }

  /** Sends a request, with retries where it is repeatable. Rejects with `PlinthError`. */
  async send(method: string, path: string, request: Request = {}): Promise<Reply> {
    const { signal, timeout = this.#options.timeout ?? 30_000 } = request
    const call = new Cancellation()
    const onAbort = (): void => call.cancel(failure('aborted', 'The request was aborted', signal?.reason))
    if (signal?.aborted) onAbort()
    if (this.#isClosed) call.cancel(closed())
    // Another origin must not receive the credentials.
    if (!/^\/(?![/\\])/.test(path)) call.cancel(failure('invalid-input', `A path begins with one slash: ${path}`))
    const timer = setTimeout(() => call.cancel(failure('timeout', `No response in ${timeout} ms`)), timeout)
    const forget = (): void => {
      signal?.removeEventListener('abort', onAbort)
      this.#calls.delete(call)
    }
    signal?.addEventListener('abort', onAbort)
    this.#calls.add(call)
    try {
      call.throwIfCanceled()
      return await this.#sendRepeatedly(method, path, request, call, Date.now() + timeout)
    } catch (error) {
      forget()
      throw error
    } finally {
      clearTimeout(timer)
      // A stream can be aborted for as long as it is read.
      if (request.as !== 'stream') forget()
    }
  }

  async #sendRepeatedly(
    method: string,
    path: string,
    request: Request,
    call: Cancellation,
    deadline: number,
  ): Promise<Reply> {
    const isRepeatable = /^(?:GET|HEAD)$/.test(method) || request.isRepeatable || request.idempotencyKey !== undefined
    const retries = isRepeatable ? (request.retries ?? this.#options.retries ?? 2) : 0
    for (let attempt = 0; ; attempt++)
      try {
        return await this.#authenticated(method, path, request, call)
      } catch (error) {
        call.throwIfCanceled()
        if (attempt >= retries || !(error instanceof PlinthError) || !error.retryable) throw error
        const waitMs = error.retryAfterMs ?? backoffMs(attempt)
        if (Date.now() + waitMs >= deadline) throw error
        await call.delay(waitMs)
      }
  }

  /** Sends the request once, and once more with a new token where the server rejects the token. */
  async #authenticated(method: string, path: string, request: Request, call: Cancellation): Promise<Reply> {
    const credentials = this.#options.serviceKey || request.isAnonymous ? null : this.credentials
    const token = credentials && (await credentials.token())
    try {
      return await this.#attempt(method, path, request, call, token)
    } catch (error) {
      const isRejected = error instanceof PlinthError && /^(?:token-expired|invalid-token)$/.test(error.slug)
      const renewed = isRejected && token ? await credentials?.renew(token) : null
      if (!renewed || renewed === token) throw error
      return this.#attempt(method, path, request, call, renewed)
    }
  }

  async #attempt(
    method: string,
    path: string,
    { query, body, raw, headers, idempotencyKey, as = 'json' }: Request,
    call: Cancellation,
    token: string | null,
  ): Promise<Reply> {
    const { fetch: send = fetch, serviceKey } = this.#options
    const sent: Record<string, string> = {}
    if (serviceKey) sent['X-Platform-Service-Key'] = serviceKey
    if (token) sent.Authorization = `Bearer ${token}`
    if (body !== undefined) sent['Content-Type'] = 'application/json'
    if (idempotencyKey !== undefined) sent['Idempotency-Key'] = idempotencyKey
    for (const [name, value] of Object.entries(headers ?? {})) if (value !== undefined) sent[name] = value
    const init: RequestInit = { method, headers: sent, signal: call.signal }
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    if (payload !== undefined) init.body = payload
    let response: Response
    let text: string
    try {
      response = await send(this.url + path + queryString(query), init)
      if (response.ok && as !== 'json')
        return { status: response.status, headers: response.headers, data: await bodyOf(response, as) }
      text = await response.text()
    } catch (cause) {
      call.throwIfCanceled()
      throw failure('network', 'The server cannot be reached', cause)
    }
    if (!response.ok) throw errorOf(response, text)
    const data = text === '' ? null : parseJson(text)
    if (data === undefined || (text !== '' && !jsonPattern.test(response.headers.get('content-type') ?? '')))
      throw new PlinthError({
        status: response.status,
        slug: 'invalid-answer',
        message: 'The response is not JSON; a proxy may have replaced it',
        requestId: response.headers.get('x-request-id') ?? undefined,
      })
    return { status: response.status, headers: response.headers, data }
  }

  /** A POST that is safe to repeat. */
  post(path: string, body: unknown, request: Request = {}): Promise<Reply> {
    return this.send('POST', path, { ...request, idempotencyKey: request.idempotencyKey ?? randomId(), body })
  }
}

const closed = (): PlinthError => failure('aborted', 'The client is closed')

const bodyOf = (response: Response, as: 'blob' | 'stream'): Promise<Blob> | ReadableStream<Uint8Array> | null =>
  as === 'blob' ? response.blob() : response.body
