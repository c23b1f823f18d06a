/** What a way of delivering messages is to the rest of the feature, and the error there is where none is configured. */
import { parseHttpDate } from '../../http/replies/http-date.ts'
import { pushErrorCharsMax } from '../../limits/push.ts'

/** What became of a message to one device; `removed`: the device is no more. */
export interface Outcome {
  readonly status: 'sent' | 'failed' | 'removed'
  /** Null when sent. */
  readonly error: string | null
}

/** The moment is wrong, not the message. `afterMs` is what the provider asks for, null where it says nothing. */
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

/** Milliseconds that the header `Retry-After` asks for, in seconds or as a date; null without one, or a bad one. */
export function retryAfterOf(headers: Headers, nowMs: number): number | null {
  const text = headers.get('retry-after')?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const dateMs = parseHttpDate(text)
  return dateMs === null ? null : Math.max(0, dateMs - nowMs)
}

/** A request that came to nothing: a name that does not resolve, no connection, no answer in time. */
export const unreachable = (error: unknown): Later =>
  later(`UNREACHABLE: ${error instanceof Error ? error.name : 'Error'}`)
