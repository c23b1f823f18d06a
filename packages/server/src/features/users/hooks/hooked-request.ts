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

/** A transaction needs an answer of a hook, which runs once the transaction is rolled back. */
export class AnswerNeeded extends Error {
  constructor(
    /** Runs the hook, and keeps its answer for the repetition of the transaction. */
    readonly resolve: () => Promise<void>,
  ) {
    super('A hook has to run outside of the transaction')
    this.name = 'AnswerNeeded'
  }
}

/** The answer of a hook to `question`, its whole input. Throws `AnswerNeeded` if the hook has not run with it yet. */
export function answerOf<Answer extends object>(
  request: HookedRequest,
  question: string,
  runHook: () => Promise<Answer>,
): Answer {
  const known = request.answers?.get(question)
  if (known !== undefined) return known as Answer
  throw new AnswerNeeded(async () => {
    request.answers ??= new Map()
    request.answers.set(question, await runHook())
  })
}
