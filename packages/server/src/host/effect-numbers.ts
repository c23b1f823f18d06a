/**
 * Numbers the writes of an invocation, so that the server knows a write of a repeated attempt of a job. The number of a
 * write depends on the code alone, and not on how often a conflict has repeated a transaction: all runs of a
 * transaction send their changes under its number, and other writes in its work are numbered by the run.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** Gives the next write its number. */
type Numbering = () => string

/** That of the innermost transaction; none outside of one. */
const current = new AsyncLocalStorage<Numbering>()

/** Set while requests only read, whatever their method. */
const reads = new AsyncLocalStorage<true>()

const countFrom = (prefix: string): Numbering => {
  let count = 0
  return () => `${prefix}${++count}`
}

export interface EffectNumbers {
  /** The number of the write that is made now, in the order of calls. */
  next(): string
  /** That of a request; undefined if it changes nothing. */
  ofRequest(method: string): string | undefined
  /** Every write in `work` has this number. At most one of them may succeed. */
  at<Result>(number: string, work: () => Result): Result
  /** The writes in `work` are numbered below this number. */
  below<Result>(number: string, work: () => Result): Result
  /** The requests in `work` change nothing and have no number, although their method is that of a write. */
  reading<Result>(work: () => Result): Result
}

export function createEffectNumbers(): EffectNumbers {
  const outermost = countFrom('')
  const next: Numbering = () => (current.getStore() ?? outermost)()
  return {
    next,
    ofRequest: (method) => (method === 'GET' || method === 'HEAD' || reads.getStore() ? undefined : next()),
    at: (number, work) => current.run(() => number, work),
    below: (number, work) => current.run(countFrom(`${number}.`), work),
    reading: (work) => reads.run(true, work),
  }
}
