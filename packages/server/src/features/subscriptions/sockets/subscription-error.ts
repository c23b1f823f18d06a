/** Errors of subscription messages, and how other errors of the platform map to them. */
import { ApiError, type SocketErrorCodeOn } from '../../../errors.ts'
import type { SubscriptionErrorMessage } from '../protocol.ts'

type Code = SocketErrorCodeOn<'subscriptions'>
type Slug = NonNullable<SubscriptionErrorMessage['slug']>

/** Sent as `error` with `code` and message. */
export class SubscriptionError extends Error {
  constructor(
    readonly code: Code,
    message: string,
  ) {
    super(message)
  }
}

/** What HTTP answers where a socket answers with the code; 400 `invalid-input` for the others. */
const httpErrors: Readonly<Partial<Record<Code, readonly [status: number, slug: Slug]>>> = {
  NOT_AUTHENTICATED: [401, 'authentication-required'],
  CHANNEL_ACCESS_DENIED: [403, 'access-denied'],
  INVALID_CHANNEL: [404, 'not-found'],
  RATE_LIMITED: [429, 'rate-limited'],
  UNAVAILABLE: [503, 'unavailable'],
}

/** The message of a refusal. */
export function errorMessage(code: Code, message: string): SubscriptionErrorMessage {
  const [status, slug] = httpErrors[code] ?? [400, 'invalid-input']
  return { type: 'error', code, message, status, slug }
}

/** Runs a check that throws `ApiError`; rejects with the corresponding `SubscriptionError` instead. */
export async function asSubscriptionError<T>(run: () => T | Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.status === 401) throw new SubscriptionError('NOT_AUTHENTICATED', error.message)
    if (error.status === 403) throw new SubscriptionError('CHANNEL_ACCESS_DENIED', error.message)
    throw new SubscriptionError('INVALID_CHANNEL', error.message)
  }
}
