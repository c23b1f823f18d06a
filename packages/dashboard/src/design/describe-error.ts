/** What an error says to the person at the screen: what is wrong, and what to do about it. */
import { isPlinthError } from 'plinth-client'

export interface ErrorDescription {
  readonly title: string
  readonly advice: string | null
  /** By field, as the server names them. */
  readonly details: readonly { readonly name: string; readonly message: string }[]
  /** Under which the server has logged the request. */
  readonly requestId: string | null
}

const adviceBySlug: Readonly<Record<string, string>> = {
  network: 'The server cannot be reached. The page tries again by itself.',
  timeout: 'The server did not answer in time. Try again, or check its load under Home.',
  forbidden: 'Your role does not permit this. An owner can change it under Settings.',
  'rate-limited': 'Too many requests in a short time. Wait a moment, then try again.',
  'query-timeout': 'The query took too long. Narrow the filter, or add an index.',
  conflict: 'It has changed since it was loaded, or it is in use elsewhere.',
  'precondition-failed': 'It has changed since it was loaded.',
  'not-found': 'It may have been deleted meanwhile.',
  internal: 'This is a defect of the server. Its log has the cause under the number of the request.',
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The members of `data` that have a message. */
function detailsOf(data: unknown): ErrorDescription['details'] {
  if (!isObject(data)) return []
  return Object.entries(data).flatMap(([name, value]) => {
    if (typeof value === 'string') return [{ name, message: value }]
    return isObject(value) && typeof value.message === 'string' ? [{ name, message: value.message }] : []
  })
}

export function describeError(error: unknown): ErrorDescription {
  if (!isPlinthError(error)) {
    const message = error instanceof Error ? error.message : String(error)
    return { title: message, advice: null, details: [], requestId: null }
  }
  return {
    title: error.slug === 'network' ? 'No connection' : error.message,
    advice: adviceBySlug[error.slug] ?? (error.status >= 500 ? (adviceBySlug.internal ?? null) : null),
    details: detailsOf(error.data),
    requestId: error.status >= 500 ? (error.requestId ?? null) : null,
  }
}
