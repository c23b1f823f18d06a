/** A request that may create an account or issue tokens, with what the hooks of the application have answered to it. */
import type { Call } from '../../../http/endpoint.ts'
import type { HookRequest } from '../../before-hooks.ts'

export interface HookedRequest extends HookRequest {
  /** By question; null until a hook has answered. */
  answers: Map<string, unknown> | null
  /** The account that the request creates: each repetition of its transaction creates the same one. */
  newAccount: { readonly id: string; readonly createdAtMs: number } | null
}

export const hookedRequest = ({
  caller,
  requestId,
  signal,
}: Pick<Call, 'caller' | 'requestId' | 'signal'>): HookedRequest => ({
  caller,
  requestId,
  signal,
  answers: null,
  newAccount: null,
})

/** A transaction needs an answer of a hook, which is asked once the transaction is rolled back. */
export class AnswerNeeded extends Error {
  constructor(
    /** Asks, and keeps the answer for the repetition of the transaction. */
    readonly ask: () => Promise<void>,
  ) {
    super('A hook has to be asked outside of the transaction')
    this.name = 'AnswerNeeded'
  }
}

/** The answer to a question, of which `question` is the whole content. Throws `AnswerNeeded` if it was not asked yet. */
export function answerOf<Answer extends object>(
  request: HookedRequest,
  question: string,
  ask: () => Promise<Answer>,
): Answer {
  const known = request.answers?.get(question)
  if (known !== undefined) return known as Answer
  throw new AnswerNeeded(async () => {
    request.answers ??= new Map()
    request.answers.set(question, await ask())
  })
}
