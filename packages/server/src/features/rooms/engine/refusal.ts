/** Why an action was not done, as its sender may read it. Anything else that a handler throws is a bug or its own. */

export type RefusalCode =
  | 'ACTION_FAILED'
  | 'ACTION_TIMEOUT'
  | 'INVALID_STATE'
  | 'NO_HANDLER'
  | 'NOT_JOINED'
  | 'RATE_LIMITED'
  | 'STATE_TOO_LARGE'

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
