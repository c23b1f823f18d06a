/** Actions that have not been answered yet, and the state with their predicted effects. */

import { type Call, limitCall } from '../core/deadline.ts'
import { type Deferred, deferred } from '../core/deferred.ts'
import type { PlinthError } from '../core/error.ts'
import { randomId } from '../core/ids.ts'
import { later } from '../core/later.ts'
import { produce, type State } from './state.ts'

export type Predictor = (shared: State, me: string, payload: unknown) => void

interface Action {
  readonly message: { readonly type: 'send'; actionType: string; payload: unknown; requestId: string }
  readonly answer: Deferred<unknown>
  /** Answered; its change has not arrived yet. */
  isAnswered: boolean
}

/** How long an action waits for its answer, in milliseconds, unless the call sets another time. */
const sendTimeoutMs = 10_000
/** How long a prediction outlives the answer, in milliseconds, where no change follows. */
const predictionTailMs = 250

export class Actions {
  readonly predictors = new Map<string, Predictor>()
  readonly #pending = new Map<string, Action>()
  readonly #send: (message: object) => void
  readonly #onChange: () => void

  /** `onChange`: the predicted state may have changed. */
  constructor(send: (message: object) => void, onChange: () => void) {
    this.#send = send
    this.#onChange = onChange
  }

  /** Sends the actions without an answer again, after a reconnect; the server runs each once. */
  resend(): void {
    for (const { message, isAnswered } of this.#pending.values()) if (!isAnswered) this.#send(message)
  }

  add(actionType: string, payload: unknown, { signal, timeout = sendTimeoutMs }: Call = {}): Promise<unknown> {
    const requestId = randomId()
    const message = { type: 'send', actionType, payload, requestId } as const
    const answer = deferred<unknown>()
    this.#pending.set(requestId, { message, answer, isAnswered: false })
    const stop = limitCall({ signal, timeout }, (error) => this.fail(requestId, error))
    if (!signal?.aborted) {
      this.#send(message)
      this.#onChange()
    }
    return answer.promise.finally(stop)
  }

  succeed(requestId: string, result: unknown): void {
    const action = this.#pending.get(requestId)
    if (!action || action.isAnswered) return
    action.isAnswered = true
    if (this.predictors.has(action.message.actionType)) later(() => this.#forget(requestId), predictionTailMs)
    else this.#pending.delete(requestId)
    action.answer.resolve(result)
  }

  fail(requestId: string, error: PlinthError): void {
    this.#pending.get(requestId)?.answer.reject(error)
    this.#forget(requestId)
  }

  failAll(error: PlinthError): void {
    for (const requestId of [...this.#pending.keys()]) this.fail(requestId, error)
  }

  /** A change has arrived, which contains the effects of the actions that were answered before. */
  confirm(): void {
    for (const [requestId, { isAnswered }] of this.#pending) if (isAnswered) this.#pending.delete(requestId)
  }

  /** The state with the effects of the pending actions, in order. */
  predict(truth: State, me: string): State {
    let state = truth
    for (const { message } of this.#pending.values()) {
      const apply = this.predictors.get(message.actionType)
      if (!apply) continue
      try {
        state = produce(state, (draft) => apply(draft, me, message.payload))
      } catch (error) {
        // On this truth, the action may no longer make sense.
        console.error(error)
      }
    }
    return state
  }

  #forget(requestId: string): void {
    if (this.#pending.delete(requestId)) this.#onChange()
  }
}
