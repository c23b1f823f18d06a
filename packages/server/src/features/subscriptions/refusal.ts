/** What is answered to a socket's message that is refused, and which refusal another error of the platform becomes. */
import { ApiError } from '../../errors.ts'

/** `code` and message of the `error` that is sent. */
export class SubscriptionError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** Runs what throws an `ApiError` where the caller may not do a thing; rejects with the `SubscriptionError` instead. */
export async function refusing<T>(run: () => T | Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.status === 401) throw new SubscriptionError('NOT_AUTHENTICATED', error.message)
    if (error.status === 403) throw new SubscriptionError('CHANNEL_ACCESS_DENIED', error.message)
    throw new SubscriptionError('INVALID_CHANNEL', error.message)
  }
}
