/** Calls of a server's admin endpoints with its service key: what commands about users, keys and rooms share. */
import { EngineError } from '../engines/sql/error.ts'
import { ApiError, type ErrorBody } from '../errors.ts'

/** Throws `ApiError` for a refusal, `EngineError` `unavailable` where no Plinth answers. */
export type AdminCall = <T>(method: string, path: string, body?: unknown) => Promise<T>

/** What one request may take: the hash of a password behind many others, or a save that waits for its database. */
const answerTimeoutMs = 30_000

/** `url` has no slash at the end, paths are below `base`; `silent` is said where nobody answers as Plinth does. */
export function createAdminCall(to: { url: string; base: string; serviceKey: string; silent: string }): AdminCall {
  const { url, base, serviceKey, silent } = to
  const headers = { 'X-Platform-Service-Key': serviceKey, 'Content-Type': 'application/json' }

  async function fetchJson(path: string, options: RequestInit): Promise<{ response: Response; answer: unknown }> {
    try {
      // The key goes where it is meant to and nowhere else.
      const response = await fetch(`${url}${base}${path}`, { ...options, headers, redirect: 'error' })
      return { response, answer: await response.json() }
    } catch (error) {
      throw new EngineError('unavailable', silent, [], error)
    }
  }

  return async <T>(method: string, path: string, body?: unknown) => {
    const signal = AbortSignal.timeout(answerTimeoutMs)
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const { response, answer } = await fetchJson(path, { method, signal, ...sent })
    if (response.ok) return answer as T
    const { slug, message, data } = answer as ErrorBody
    const hint = response.status === 401 ? `. Give the key of the server at ${url} as PLINTH_SERVICE_KEY.` : ''
    throw new ApiError(response.status, slug, `${message}${hint}`, data)
  }
}
