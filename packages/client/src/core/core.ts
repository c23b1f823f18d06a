/**
 * What the features of one client share. Every request goes through `send`: credentials, retries, deadlines, errors.
 */
import type { ClientOptions } from '../types/options.ts'
import { backoffMs, type Call, delay, limitCall } from './deadline.ts'
import { deferred } from './deferred.ts'
import { failure, notLoaded, PlinthError } from './error.ts'
import { randomId } from './ids.ts'
import { createListeners } from './listeners.ts'
import { type Credentials, queryString, type Reply, type Request } from './request.ts'

/** How long a request may take unless its caller or the client sets another time, in milliseconds. */
const timeoutDefaultMs = 30_000
/** Attempts after the first one, unless the client sets another number. */
const retriesDefault = 2

export class Core {
  /** Emits when the user changes: data of the previous user must no longer be shown. */
  readonly identity = createListeners()
  /** Emits when a new access token replaces an older one of the same user. */
  readonly token = createListeners()
  /** Emits when the client is closed. */
  readonly closing = createListeners()
  /** What features offer to others, such as `live` to queries. */
  readonly parts: Record<string, unknown> = {}
  /** Set by the feature `auth`, or for `getToken`. */
  credentials: Credentials | undefined
  #isClosed = false

  constructor(
    /** Without a slash at the end. */
    readonly url: string,
    readonly options: ClientOptions,
  ) {
    const { getToken } = options
    if (getToken) this.credentials = { token: getToken, renew: getToken }
  }

  /** What a feature offers. Throws if the feature was not passed to `createClient`. */
  part<Part>(name: string): Part {
    const part = this.parts[name]
    if (!part) throw notLoaded(name)
    return part as Part
  }

  /** The access token of the next request. Null where the user is signed out, and with a service key. */
  async accessToken(): Promise<string | null> {
    return (!this.options.serviceKey && (await this.credentials?.token())) || null
  }

  /** Rejects the calls under way and all later ones. */
  close(): void {
    this.#isClosed = true
    this.closing.emit()
  }

  /** The data of an answer. */
  async json<Data = unknown>(method: string, path: string, request?: Request): Promise<Data> {
    return (await this.send(method, path, request)).data as Data
  }

  /** A POST that is safe to repeat. */
  post(path: string, body: unknown, { idempotencyKey = randomId(), ...request }: Request = {}): Promise<Reply> {
    return this.send('POST', path, { ...request, idempotencyKey, body })
  }

  /** Sends a request, with retries where it is repeatable. Rejects with `PlinthError`. */
  async send(method: string, path: string, request: Request = {}): Promise<Reply> {
    if (this.#isClosed) throw closed()
    // Another origin must not receive the credentials.
    if (!/^\/(?![/\\])/.test(path)) throw failure('invalid-input', `Not a path: ${path}`)
    const controller = new AbortController()
    const canceled = deferred<never>()
    const cancel = (error: PlinthError): void => {
      canceled.reject(error)
      controller.abort(error)
    }
    const { signal, timeout = this.options.timeout ?? timeoutDefaultMs } = request
    const limit = (call: Call): (() => void)[] => [limitCall(call, cancel), this.closing.add(() => cancel(closed()))]
    const stops = limit({ signal, timeout })
    try {
      const sending = this.#sendRepeatedly(method, path, request, controller.signal, Date.now() + timeout)
      const reply = await Promise.race([canceled.promise, sending])
      // A stream can be aborted for as long as it is read.
      if (request.as === 'stream') limit({ signal })
      return reply
    } finally {
      for (const stop of stops) stop()
    }
  }

  async #sendRepeatedly(
    method: string,
    path: string,
    request: Request,
    signal: AbortSignal,
    deadline: number,
  ): Promise<Reply> {
    const isRepeatable = /^(GET|HEAD)$/.test(method) || request.idempotencyKey
    const { retries = isRepeatable ? (this.options.retries ?? retriesDefault) : 0 } = request
    for (let attempt = 0; ; attempt++)
      try {
        return await this.#authenticated(method, path, request, signal)
      } catch (error) {
        const { retryable, retryAfterMs = backoffMs(attempt) } = error as PlinthError
        if (signal.aborted || attempt >= retries || !retryable || Date.now() + retryAfterMs >= deadline) throw error
        await delay(retryAfterMs, signal)
      }
  }

  /** Sends the request once, and once more with a new token where the server rejects the token. */
  async #authenticated(method: string, path: string, request: Request, signal: AbortSignal): Promise<Reply> {
    const { token = await this.accessToken() } = request
    try {
      return await this.#attempt(method, path, request, signal, token)
    } catch (error) {
      const isRejected = /^(token-expired|invalid-token)$/.test((error as PlinthError).slug)
      const renewed = isRejected && token && (await this.credentials?.renew(token))
      if (!renewed || renewed === token) throw error
      return this.#attempt(method, path, request, signal, renewed)
    }
  }

  async #attempt(
    method: string,
    path: string,
    request: Request,
    signal: AbortSignal,
    token: string | null,
  ): Promise<Reply> {
    const { as } = request
    const json = JSON.stringify(request.body)
    const headers = {
      'X-Platform-Service-Key': this.options.serviceKey,
      Authorization: token && `Bearer ${token}`,
      'Content-Type': json && 'application/json',
      'Idempotency-Key': request.idempotencyKey,
      ...request.headers,
    }
    const init = {
      method,
      headers: Object.entries(headers).filter(([, value]) => value) as [string, string][],
      body: request.raw ?? json,
      signal,
    }
    let response: Response
    let text: string
    try {
      response = await (this.options.fetch ?? fetch)(this.url + path + queryString(request.query), init)
      if (response.ok && as)
        return { headers: response.headers, data: as === 'blob' ? await response.blob() : response.body }
      text = await response.text()
    } catch (cause) {
      throw failure('network', 'No connection', cause)
    }
    return readReply(response, text)
  }
}

/** The data of a response, or the error that it states. A page of a proxy is neither. */
function readReply({ ok, status, headers }: Response, text: string): Reply {
  let data = null
  try {
    if (text) data = JSON.parse(text)
    if (ok) return { headers, data }
  } catch {
    // Not the server's.
  }
  const seconds = /^\d+/.exec(`${headers.get('retry-after')}`)
  const invalid = { slug: 'invalid-answer', message: `Status ${status}` }
  const { slug, message, data: details } = !ok && data?.slug ? data : invalid
  throw new PlinthError({
    status,
    slug,
    message,
    data: details,
    requestId: headers.get('x-request-id') ?? undefined,
    // A date, which proxies may send, is not used.
    retryAfterMs: seconds ? Number(seconds[0]) * 1000 : undefined,
  })
}

const closed = (): PlinthError => failure('aborted', 'Client closed')
