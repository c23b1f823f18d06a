/** Common outcomes of delivery attempts, for all providers. */
import { parseHttpDate } from '../../../http/replies/http-date.ts'
import { pushErrorCharsMax } from '../../../limits/push.ts'

/** The result for one device; `removed` means that the token is unregistered. */
export interface Outcome {
  readonly status: 'sent' | 'failed' | 'removed'
  /** Null when sent. */
  readonly error: string | null
}

/** A retryable failure. `afterMs` is the pause that the provider requests; null if it names none. */
export interface Later {
  readonly status: 'later'
  readonly error: string
  readonly afterMs: number | null
}

/** One attempt at a request; never rejects. */
export type Attempt<T = Outcome> = () => Promise<T | Later>

export const sent: Outcome = Object.freeze({ status: 'sent', error: null })
const cut = (error: string): string => error.slice(0, pushErrorCharsMax).toWellFormed().replaceAll('\0', '')
export const failed = (error: string): Outcome => ({ status: 'failed', error: cut(error) })
export const removed = (error: string): Outcome => ({ status: 'removed', error: cut(error) })
export const later = (error: string, afterMs: number | null = null): Later => ({
  status: 'later',
  error: cut(error),
  afterMs,
})

/** The pause in milliseconds that `Retry-After` requests, in seconds or as a date; null if absent or invalid. */
export function retryAfterOf(headers: Headers, nowMs: number): number | null {
  const text = headers.get('retry-after')?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const dateMs = parseHttpDate(text)
  return dateMs === null ? null : Math.max(0, dateMs - nowMs)
}

/** A request without a response: DNS failure, no connection, timeout. */
export const unreachable = (error: unknown): Later =>
  later(`UNREACHABLE: ${error instanceof Error ? error.name : 'Error'}`)
