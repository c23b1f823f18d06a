/** An error that the sender of an action receives with its code and message. */
import type { RoomErrorCode } from '../messages/messages.ts'

export type ActionErrorCode = Extract<
  RoomErrorCode,
  'ACTION_FAILED' | 'ACTION_TIMEOUT' | 'INVALID_STATE' | 'RATE_LIMITED' | 'STATE_TOO_LARGE'
>

export class ActionError extends Error {
  constructor(
    readonly code: ActionErrorCode,
    message: string,
  ) {
    super(message)
    this.name = 'ActionError'
  }
}

export const invalidState = (message: string): ActionError => new ActionError('INVALID_STATE', message)
