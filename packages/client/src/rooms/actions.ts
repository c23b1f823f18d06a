/** Actions that have not been answered yet, and the state with their predicted effects. */

import { type Call, limitCall } from '../core/deadline.ts'
import type { PlinthError } from '../core/error.ts'
import { randomId } from '../core/ids.ts'
import { later } from '../core/later.ts'
import { produce, type State } from './state.ts'

export type Predictor = (shared: State, me: string, payload: unknown) => void

interface Action {
  readonly message: { readonly actionType: string; readonly payload: unknown; readonly requestId: string }
  readonly resolve: (result: unknown) => void
  readonly reject: (error: PlinthError) => void
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
  readonly #onChange: () => void

  /** `onChange`: the predicted state may have changed. */
  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  /** The messages to send again after a reconnect; the server runs each request once. */
  get unanswered(): object[] {
    return [...this.#pending.values()].flatMap(({ message, isAnswered }) =>
      isAnswered ? [] : [{ type: 'send', ...message }],
    )
  }

  /** Adds an action and passes its message to `send`. */
  add(
    send: (message: object) => void,
    actionType: string,
    payload: unknown,
    { signal, timeout = sendTimeoutMs }: Call = {},
  ): Promise<unknown> {
    const message = { actionType, payload, requestId: randomId() }
    let stop: () => void
    return new Promise<unknown>((resolve, reject) => {
      this.#pending.set(message.requestId, { message, resolve, reject, isAnswered: false })
      stop = limitCall({ signal, timeout }, (error) => this.fail(message.requestId, error))
      if (signal?.aborted) return
      send({ type: 'send', ...message })
      this.#onChange()
    }).finally(() => stop())
  }

  succeed(requestId: string, result: unknown): void {
    const action = this.#pending.get(requestId)
    if (!action || action.isAnswered) return
    action.isAnswered = true
    if (this.predictors.has(action.message.actionType)) later(() => this.#forget(requestId), predictionTailMs)
    else this.#pending.delete(requestId)
    action.resolve(result)
  }

  fail(requestId: string, error: PlinthError): void {
    this.#pending.get(requestId)?.reject(error)
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
