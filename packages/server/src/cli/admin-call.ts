/** Calls a server's admin endpoints with its service key, for commands about users, keys and rooms. */
import { EngineError } from '../engines/sql/error.ts'
import { ApiError, type ErrorBody } from '../errors.ts'
import { UsageError } from './command.ts'

/** Throws `ApiError` if the server refuses, `EngineError` `unavailable` if no Plinth server responds. */
export type AdminCall = <T>(method: string, path: string, body?: unknown) => Promise<T>

/** The same with the headers of the request and of the answer; an `ApiError` has the headers of its response. */
export type AdminRequest = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<{ readonly answer: unknown; readonly headers: Headers }>

interface Server {
  readonly url: string
  readonly base: string
  /** Undefined to send none. */
  readonly serviceKey: string | undefined
  readonly silent: string
}

/** Timeout of a request: a password hash behind many others, or a save that waits for its database. */
const answerTimeoutMs = 30_000

/** The value of the option `--url`, without a trailing slash. Throws `UsageError`. */
export function parseAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError('--url must be an address such as http://127.0.0.1:4100.')
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

/** `url` has no trailing slash, paths are relative to `base`; `silent` is the error if no Plinth server responds. */
export function createAdminCall(to: Server): AdminCall {
  const request = createAdminRequest(to)
  return async <T>(method: string, path: string, body?: unknown) => (await request(method, path, body)).answer as T
}

/** See `createAdminCall`. */
export function createAdminRequest({ url, base, serviceKey, silent }: Server): AdminRequest {
  const common = {
    ...(serviceKey === undefined ? {} : { 'X-Platform-Service-Key': serviceKey }),
    'Content-Type': 'application/json',
  }

  async function fetchJson(path: string, options: RequestInit): Promise<{ response: Response; answer: unknown }> {
    try {
      // Redirects are refused so that the key is not sent elsewhere.
      const response = await fetch(`${url}${base}${path}`, { ...options, redirect: 'error' })
      return { response, answer: await response.json() }
    } catch (error) {
      throw new EngineError('unavailable', silent, [], error)
    }
  }

  return async (method, path, body, headers = {}) => {
    const signal = AbortSignal.timeout(answerTimeoutMs)
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const { response, answer } = await fetchJson(path, { method, signal, headers: { ...common, ...headers }, ...sent })
    if (response.ok) return { answer, headers: response.headers }
    const { slug, message, data } = answer as ErrorBody
    const hint = response.status === 401 ? `. Give the key of the server at ${url} as PLINTH_SERVICE_KEY.` : ''
    throw new ApiError(response.status, slug, `${message}${hint}`, data, Object.fromEntries(response.headers))
  }
}
