/**
 * Runs one handler at a time and can end it early. A synchronous handler completes within `start`, without a promise.
 * JavaScript cannot be interrupted: an endless loop blocks the process.
 */
import type { HandlerContext } from './handler-context.ts'

/** What `Runner` runs. */
export interface Invocation {
  invoke(context: HandlerContext): unknown
}

/** How a handler ended: with a value, or with what it threw. */
export type Outcome = { readonly value: unknown } | { readonly error: unknown }

interface Run<Call extends Invocation> {
  readonly context: HandlerContext
  readonly call: Call
  readonly startedAtMs: number
}

export interface RunnerDeps<Call extends Invocation> {
  readonly elapsedMs: () => number
  /** The handler has ended. Not called for one that was dropped. */
  readonly conclude: (context: HandlerContext, call: Call, outcome: Outcome) => void
  /** An asynchronous handler has ended. */
  readonly onIdle: () => void
}

export class Runner<Call extends Invocation> {
  private current: Run<Call> | null = null

  constructor(private readonly deps: RunnerDeps<Call>) {}

  get isBusy(): boolean {
    return this.current !== null
  }

  /** When the running handler was called, in monotonic milliseconds; null without one. */
  get startedAtMs(): number | null {
    return this.current?.startedAtMs ?? null
  }

  /** Runs a handler. `conclude` is called once, synchronously or later. */
  start(context: HandlerContext, call: Call): void {
    const run: Run<Call> = { context, call, startedAtMs: this.deps.elapsedMs() }
    this.current = run
    let value: unknown
    try {
      value = call.invoke(context)
    } catch (error) {
      this.end(run, { error })
      return
    }
    if (isThenable(value)) this.awaitValue(run, value)
    else this.end(run, { value })
  }

  /** Ends the running handler with an error; it has no effect afterwards. */
  interrupt(error: unknown): void {
    if (this.current) this.endLater(this.current, { error })
  }

  /** Drops the running handler: `conclude` is not called. */
  drop(): void {
    this.current?.context.end()
    this.current = null
  }

  private awaitValue(run: Run<Call>, value: PromiseLike<unknown>): void {
    value.then(
      (value) => this.endLater(run, { value }),
      (error) => this.endLater(run, { error }),
    )
  }

  private endLater(run: Run<Call>, outcome: Outcome): void {
    if (this.end(run, outcome)) this.deps.onIdle()
  }

  /** False for a handler that was ended before. */
  private end(run: Run<Call>, outcome: Outcome): boolean {
    if (this.current !== run) return false
    this.current = null
    this.deps.conclude(run.context, run.call, outcome)
    return true
  }
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
