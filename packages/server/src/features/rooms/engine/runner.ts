/**
 * Runs one handler at a time, with a limit on how long it may take. A handler that does not wait runs at once and
 * without a promise. JavaScript cannot be interrupted: an endless loop blocks the process.
 */
import type { HandlerContext } from './handler-context.ts'

/** How a handler ended: with a value, or with what it threw. */
export type Outcome = { readonly value: unknown } | { readonly error: unknown }

interface Run {
  readonly turn: HandlerContext
  readonly startedAtMs: number
  readonly conclude: (outcome: Outcome) => void
}

export class Runner {
  private current: Run | null = null

  /** `onIdle` is called when a handler that had to wait has ended. */
  constructor(
    private readonly elapsedMs: () => number,
    private readonly onIdle: () => void,
  ) {}

  get isBusy(): boolean {
    return this.current !== null
  }

  /** When the present handler began, in monotonic milliseconds. */
  get startedAtMs(): number | null {
    return this.current?.startedAtMs ?? null
  }

  /** Calls `conclude` once, at once or later, unless the run is `cut`. */
  start(turn: HandlerContext, invoke: () => unknown, conclude: (outcome: Outcome) => void): void {
    const run: Run = { turn, startedAtMs: this.elapsedMs(), conclude }
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

  /** Ends the present handler with an error; whatever it does from now on is without effect. */
  interrupt(error: unknown): void {
    if (this.current && this.end(this.current, { error })) this.onIdle()
  }

  /** Drops the present handler without a response. */
  cut(): void {
    this.current?.turn.end()
    this.current = null
  }

  /** False for a handler whose run was over already. */
  private end(run: Run, outcome: Outcome): boolean {
    if (this.current !== run) return false
    this.current = null
    run.conclude(outcome)
    return true
  }
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
