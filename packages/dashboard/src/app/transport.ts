/**
 * The requests of the page. All of them go to the server that served it, with the session's cookie and the header that
 * proves that a page of this origin sent them. Where the session has ended, or is too old for what was requested, the
 * request waits until the administrator has signed in again and is then repeated, so that nothing that was typed is
 * lost. Where the server cannot be reached, `connection` waits for it.
 */
import { createClient, files, records } from 'plinth-client'
import { connection } from './connection.ts'
import { session } from './session-store.ts'

/** Where the server answers the dashboard; the API follows. */
export const basePath = '/dashboard'

/** How long one attempt of a request may take. Waiting for a sign-in does not count. */
const attemptTimeoutMs = 60_000

/** How long a request may wait for a sign-in. */
const requestTimeoutMs = 60 * 60_000

/** The header of responses that names the user as whom the session views data. */
const viewedHeader = 'x-plinth-viewing-as'

const isOfView = (url: URL): boolean => url.pathname.startsWith(`${basePath}/api/view-as`)

const isOfSession = (url: URL): boolean => url.pathname.startsWith(`${basePath}/api/session`)

/** The slug of an error without using up the response. */
async function slugOf(response: Response): Promise<string> {
  try {
    return String(((await response.clone().json()) as { slug?: unknown }).slug)
  } catch {
    return ''
  }
}

/** Whether a response shows that the session views as another user than the page; the page then reads the session. */
function isOfOtherView({ ok, headers }: Response): boolean {
  const viewedId = headers.get(viewedHeader)
  // A refusal without the name may be from before the session was known.
  return (ok || viewedId !== null) && !session.shows(viewedId)
}

async function attempt(input: RequestInfo | URL, init: RequestInit, timeoutMs: number): Promise<Response> {
  const headers = new Headers(init.headers)
  headers.set('X-Plinth-Dashboard', '1')
  const deadline = AbortSignal.timeout(timeoutMs)
  const signal = init.signal ? AbortSignal.any([init.signal, deadline]) : deadline
  try {
    const response = await fetch(input, { ...init, headers, signal, credentials: 'same-origin' })
    connection.reached()
    return response
  } catch (error) {
    if (!init.signal?.aborted) connection.lost()
    throw error
  }
}

async function send(input: RequestInfo | URL, init: RequestInit = {}, timeoutMs = attemptTimeoutMs): Promise<Response> {
  const url = new URL(input instanceof Request ? input.url : input, location.origin)
  for (;;) {
    const response = await attempt(input, init, timeoutMs)
    if (isOfSession(url)) return response
    if (response.status === 401) {
      await session.requireSignIn('expired', init.signal ?? null)
      continue
    }
    if (response.status === 403 && (await slugOf(response)) === 'sign-in-again') {
      await session.requireSignIn('recent', init.signal ?? null)
      continue
    }
    if (isOfView(url)) return response
    if (isOfOtherView(response)) throw new DOMException('The session shows another view', 'AbortError')
    return response
  }
}

/** Our own client; its paths begin with `/api`. */
export const client = createClient(`${location.origin}${basePath}`, [records, files], {
  fetch: ((input: RequestInfo | URL, init?: RequestInit) => send(input, init)) as typeof fetch,
  storage: { get: () => null, set() {}, remove() {} },
  timeout: requestTimeoutMs,
})

interface Options {
  readonly query?: object
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** The server executes requests with one key at most once. */
  readonly idempotencyKey?: string
  /** Attempts after the first one, where the server is too busy. */
  readonly retries?: number
}

const requestBy =
  (method: string) =>
  <T>(path: string, options: Options = {}): Promise<T> =>
    client.request<T>(method, path, options)

/** Requests to `/dashboard` + path. They reject with `PlinthError`. */
export const api = {
  get: requestBy('GET'),
  post: requestBy('POST'),
  put: requestBy('PUT'),
  patch: requestBy('PATCH'),
  delete: requestBy('DELETE'),
}

/** How long a download may take. */
const downloadTimeoutMs = 12 * 60 * 60_000

/** The body of a response of any length, read as it arrives. Rejects with the error of the server. */
export async function openStream(
  path: string,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  const response = await send(`${basePath}${path}?${new URLSearchParams(query)}`, { signal }, downloadTimeoutMs)
  if (response.ok && response.body) return response.body
  const { message = 'The server did not answer.' } = (await response.json().catch(() => ({}))) as { message?: string }
  throw new Error(message)
}
