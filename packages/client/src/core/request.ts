/** What a request consists of, and what answers it. */
import type { Call } from './deadline.ts'
import { randomId } from './ids.ts'

type Token = string | null | undefined

/** Where access tokens come from: the feature `auth`, or `getToken`. */
export interface Credentials {
  /** The token of the next request, refreshed where it is about to expire; none for an anonymous request. */
  token(): Token | Promise<Token>
  /** After a 401 for `rejected`: another token if there is one now. */
  renew(rejected: string): Token | Promise<Token>
}

export interface Request extends Call {
  /** Values that are not text are sent as JSON; undefined and null are left out. */
  readonly query?: object | undefined
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as it is, in place of `body`. */
  readonly raw?: BodyInit | undefined
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined
  /** The key under which the server executes the request at most once, which makes a POST repeatable. */
  readonly idempotencyKey?: string | undefined
  /** The version that the record must have. */
  readonly ifMatch?: string | undefined
  /** Attempts after the first one. Without it, only reads and requests with an idempotency key are repeated. */
  readonly retries?: number | undefined
  /** The access token in place of the client's; null for a request without credentials. */
  readonly token?: string | null | undefined
  /** For the bytes of the response in place of its JSON. */
  readonly as?: 'blob' | 'stream' | undefined
}

export interface Reply {
  readonly headers: Headers
  /** The parsed body, its `Blob`, or its stream; null where it is empty. */
  readonly data: unknown
}

/** Makes a POST safe to repeat. */
export const keyed = ({ idempotencyKey = randomId(), ...request }: Request): Request => ({ ...request, idempotencyKey })

/** A query string with its question mark; empty where no value is set. */
export function queryString(query: object = {}): string {
  let text = ''
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue
    const pair = [name, typeof value === 'string' ? value : JSON.stringify(value)]
    text += (text ? '&' : '?') + pair.map(encodeURIComponent).join('=')
  }
  return text
}
