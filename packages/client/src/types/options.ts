/** What `createClient` takes, what each request takes, and what a request fails with. */

export interface ClientOptions {
  /** Where the session is kept. Default: localStorage in browsers, memory elsewhere. */
  storage?: SessionStorage
  /** For servers: sent as a service key; no session is kept. */
  serviceKey?: string
  /** A token source of another system's own; `auth` is then read-only. */
  getToken?: () => string | null | Promise<string | null>
  fetch?: typeof fetch
  /** Where there is none built in (Node 20), such as that of `ws`. */
  WebSocket?: typeof WebSocket
  /**
   * Calls the listener when the app goes to sleep, which closes sockets, and when it wakes, which opens them again.
   * Returns the function that stops it. Default: the visibility of the page and `online`, which only wake.
   */
  lifecycle?: (listener: (event: 'sleep' | 'wake') => void) => () => void
  /** Read retries after network errors, 429 (after Retry-After), 502–504. Default 2. */
  retries?: number
  /** Milliseconds until a request fails with slug `timeout`. Default 30,000. */
  timeout?: number
}

export interface SessionStorage {
  get(key: string): string | null | Promise<string | null>
  set(key: string, value: string): void | Promise<void>
  remove(key: string): void | Promise<void>
  /** Calls the listener when another tab has changed the value. Returns the function that stops it. */
  watch?(key: string, listener: (value: string | null) => void): () => void
}

/** Options of any request. `timeout` is in milliseconds. */
export interface Call {
  signal?: AbortSignal
  timeout?: number
}

/** Options of `request`. */
export interface RequestOptions extends Call {
  query?: object
  body?: unknown
  headers?: object
}

/** The fields of a `PlinthError`. */
export interface PlinthErrorShape extends Error {
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number
  /** The server's slug, or `network`, `timeout`, `aborted`, `invalid-answer`, `feature-not-loaded`. */
  readonly slug: string
  /** The server's errors by field. */
  readonly data?: unknown
  readonly requestId?: string
  readonly retryable: boolean
  readonly retryAfterMs?: number
}

/** A part of the client that is bundled only if it is listed: `records`, `auth`, `live`, … */
export type Feature = object
