/**
 * Runs one handler at a time and can end it early. A synchronous handler completes within `start`, without a promise.
 * JavaScript cannot be interrupted: an endless loop blocks the process.
 */
import type { HandlerContext } from './handler-context.ts'

/** How a handler ended: with a value, or with what it threw. */
export type Outcome = { readonly value: unknown } | { readonly error: unknown }

interface Run {
  readonly context: HandlerContext
  readonly startedAtMs: number
  readonly conclude: (outcome: Outcome) => void
}

export class Runner {
  private current: Run | null = null

  /** `onIdle` is called when an asynchronous handler has ended. */
  constructor(
    private readonly elapsedMs: () => number,
    private readonly onIdle: () => void,
  ) {}

  get isBusy(): boolean {
    return this.current !== null
  }

  /** When the running handler was called, in monotonic milliseconds; null without one. */
  get startedAtMs(): number | null {
    return this.current?.startedAtMs ?? null
  }

  /** Calls `conclude` once, synchronously or later, unless the handler is dropped. */
  start(context: HandlerContext, invoke: () => unknown, conclude: (outcome: Outcome) => void): void {
    const run: Run = { context, startedAtMs: this.elapsedMs(), conclude }
    this.current = run
    let value: unknown
    try {
      value = invoke()
    } catch (error) {
      this.end(run, { error })
      return
    }
    if (!isThenable(value)) {
      this.end(run, { value })
      return
    }
    const later = (outcome: Outcome): void => {
      if (this.end(run, outcome)) this.onIdle()
    }
    value.then(
      (value) => later({ value }),
      (error) => later({ error }),
    )
  }

  /** Ends the running handler with an error; it has no effect afterwards. */
  interrupt(error: unknown): void {
    if (this.current && this.end(this.current, { error })) this.onIdle()
  }

  /** Drops the running handler: `conclude` is not called. */
  drop(): void {
    this.current?.context.end()
    this.current = null
  }

  /** False for a handler that was ended before. */
  private end(run: Run, outcome: Outcome): boolean {
    if (this.current !== run) return false
    this.current = null
    run.conclude(outcome)
    return true
  }
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
