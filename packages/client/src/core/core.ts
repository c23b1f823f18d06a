/**
 * What the features of one client share. Every request goes through `send`: credentials, retries, deadlines, errors.
 */
import type { ClientOptions } from '../types/options.ts'
import { backoffMs, delay, limitCall } from './deadline.ts'
import { failure, PlinthError } from './error.ts'
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
  /** Called by `close`. */
  readonly cleanups: (() => void)[] = []
  /** What features offer to others, such as `live` to queries. */
  readonly parts: Record<string, unknown> = {}
  /** Set by the feature `auth`, or for `getToken`. */
  credentials: Credentials | undefined
  /** Ends a call under way. */
  readonly #calls = new Set<(error: PlinthError) => void>()
  #isClosed = false

  constructor(
    /** Without a slash at the end. */
    readonly url: string,
    readonly options: ClientOptions,
  ) {
    const { getToken } = options
    if (getToken) this.credentials = { token: getToken, renew: getToken }
  }

  /** The part that a feature has registered. Throws if the feature was not passed to `createClient`. */
  part<Part>(name: string): Part {
    const part = this.parts[name]
    if (part === undefined) throw failure('feature-not-loaded', `Pass the feature \`${name}\` to createClient`)
    return part as Part
  }

  /** The access token of the next request. Null where the user is signed out, and with a service key. */
  async accessToken(): Promise<string | null> {
    return (!this.options.serviceKey && (await this.credentials?.token())) || null
  }

  /** Rejects the calls under way and all later ones. */
  close(): void {
    this.#isClosed = true
    for (const cancel of this.#calls) cancel(closed())
    for (const cleanUp of this.cleanups.splice(0)) cleanUp()
  }

  /** The data of an answer. */
  async json<Data = unknown>(method: string, path: string, request?: Request): Promise<Data> {
    return (await this.send(method, path, request)).data as Data
  }

  /** A POST that is safe to repeat. */
  post(path: string, body: unknown, request: Request = {}): Promise<Reply> {
    return this.send('POST', path, { ...request, idempotencyKey: request.idempotencyKey ?? randomId(), body })
  }

  /** Sends a request, with retries where it is repeatable. Rejects with `PlinthError`. */
  async send(method: string, path: string, request: Request = {}): Promise<Reply> {
    if (this.#isClosed) throw closed()
    // Another origin must not receive the credentials.
    if (!/^\/(?![/\\])/.test(path)) throw failure('invalid-input', `A path begins with one slash: ${path}`)
    const controller = new AbortController()
    let cancel!: (error: PlinthError) => void
    const canceled = new Promise<never>((_, reject) => {
      cancel = (error) => {
        reject(error)
        controller.abort(error)
      }
    })
    this.#calls.add(cancel)
    const { timeout = this.options.timeout ?? timeoutDefaultMs } = request
    const stopTimer = limitCall({ timeout }, cancel)
    const stopSignal = limitCall({ signal: request.signal }, cancel)
    // A stream can be aborted for as long as it is read.
    let isStream = request.as === 'stream'
    try {
      const reply = this.#sendRepeatedly(method, path, request, controller.signal, Date.now() + timeout)
      return await Promise.race([canceled, reply])
    } catch (error) {
      isStream = false
      throw error
    } finally {
      stopTimer()
      if (!isStream) {
        stopSignal()
        this.#calls.delete(cancel)
      }
    }
  }

  async #sendRepeatedly(
    method: string,
    path: string,
    request: Request,
    signal: AbortSignal,
    deadline: number,
  ): Promise<Reply> {
    const isRepeatable = /^(?:GET|HEAD)$/.test(method) || request.isRepeatable || request.idempotencyKey
    const retries = isRepeatable ? (request.retries ?? this.options.retries ?? retriesDefault) : 0
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
    const token = request.isAnonymous ? null : await this.accessToken()
    try {
      return await this.#attempt(method, path, request, signal, token)
    } catch (error) {
      const isRejected = /^(?:token-expired|invalid-token)$/.test((error as PlinthError).slug)
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
    const { body, as } = request
    const all = {
      'X-Platform-Service-Key': this.options.serviceKey,
      Authorization: token && `Bearer ${token}`,
      'Content-Type': body === undefined ? null : 'application/json',
      'Idempotency-Key': request.idempotencyKey,
      ...request.headers,
    }
    const init = {
      method,
      headers: Object.entries(all).filter((header): header is [string, string] => Boolean(header[1])),
      body: request.raw ?? (body === undefined ? null : JSON.stringify(body)),
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
      throw failure('network', 'The server cannot be reached', cause)
    }
    return readReply(response, text)
  }
}

/** The data of a response, or the error that it states. A page of a proxy is neither. */
function readReply({ ok, status, headers }: Response, text: string): Reply {
  let data: unknown = null
  try {
    if (text) data = JSON.parse(text)
    if (ok) return { headers, data }
  } catch {
    // Not the server's.
  }
  const seconds = Number.parseFloat(headers.get('retry-after') ?? '')
  const error = data as Partial<PlinthError> | null
  throw new PlinthError({
    status,
    ...(!ok && typeof error?.slug === 'string'
      ? { slug: error.slug, message: String(error.message), data: error.data }
      : { slug: 'invalid-answer', message: `Status ${status} without an answer of Plinth` }),
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfterMs: seconds >= 0 ? seconds * 1000 : undefined,
  })
}

const closed = (): PlinthError => failure('aborted', 'The client is closed')
