/** The error that the sender of an action receives when its handler threw; it reveals no internals. */
import type { PlinthError } from 'plinth-client'
import { ApiError } from '../../../../errors.ts'
import { actionErrorCharsMax } from '../../../../limits/rooms.ts'
import { ActionError, type ActionErrorCode } from './action-error.ts'

export interface Failure {
  readonly code: ActionErrorCode
  readonly message: string
  /** An unexpected failure, which is logged. */
  readonly isBug: boolean
}

/** As the client recognizes its errors; the package itself is loaded only where it is used. */
const isOfClient = (error: unknown): error is PlinthError => (error as PlinthError | null)?.name === 'PlinthError'

/**
 * Describes what a handler threw. A plain `Error` is meant for the client, which receives its message. Other errors
 * (subclasses, and errors with a `code`, as the runtime, libraries and engines throw them) are internal.
 */
export function describeFailure(error: unknown): Failure {
  if (error instanceof ActionError) return { code: error.code, message: error.message, isBug: false }
  if (error instanceof ApiError || isOfClient(error))
    return { code: 'ACTION_FAILED', message: error.message, isBug: error.status >= 500 }
  if (error instanceof Error && Object.getPrototypeOf(error) === Error.prototype && !('code' in error))
    return { code: 'ACTION_FAILED', message: error.message.slice(0, actionErrorCharsMax), isBug: false }
  return { code: 'ACTION_FAILED', message: 'The action failed', isBug: true }
}
