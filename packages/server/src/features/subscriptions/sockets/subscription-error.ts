/** Errors of subscription messages, and how other errors of the platform map to them. */
import { ApiError, type SocketErrorCodeOn } from '../../../errors.ts'

/** Sent as `error` with `code` and message. */
export class SubscriptionError extends Error {
  constructor(
    readonly code: SocketErrorCodeOn<'subscriptions'>,
    message: string,
  ) {
    super(message)
  }
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
