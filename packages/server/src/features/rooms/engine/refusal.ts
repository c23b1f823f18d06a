/** Why an action was not done, as its sender may read it. Anything else that a handler throws is a bug or its own. */
import type { RoomErrorCode } from './messages.ts'

export type RefusalCode = Extract<
  RoomErrorCode,
  'ACTION_FAILED' | 'ACTION_TIMEOUT' | 'INVALID_STATE' | 'RATE_LIMITED' | 'STATE_TOO_LARGE'
>

export class Refusal extends Error {
  constructor(
    readonly code: RefusalCode,
    message: string,
  ) {
    super(message)
    this.name = 'Refusal'
  }
}

export const invalidState = (message: string): Refusal => new Refusal('INVALID_STATE', message)
