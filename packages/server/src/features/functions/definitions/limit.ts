/** Call limits of functions, such as `3/m per user` or `100/s`. */
import { type Caller, callerKey } from '../../../access/caller.ts'
import type { Counters, Hit } from '../../../engines/cluster/cluster.ts'
import { rateLimited } from '../../../errors.ts'

export interface FunctionLimit {
  readonly calls: number
  readonly windowMs: number
  /** Whether each caller is counted separately; anonymous callers by their address. */
  readonly isPerCaller: boolean
}

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Throws a `RangeError` whose message completes a sentence about the value. */
export function parseLimit(text: string): FunctionLimit {
  const [, calls, unit = '', per] = /^([1-9]\d{0,8})\/([smhd])( per user)?$/.exec(text) ?? []
  const windowMs = unitMs[unit]
  if (windowMs === undefined) throw new RangeError('must be a limit such as "3/m per user" or "100/s"')
  return { calls: Number(calls), windowMs, isPerCaller: per !== undefined }
}

/** Counts a call. Throws or rejects with 429 beyond the limit. */
export function countCall(
  counters: Counters,
  name: string,
  { calls, windowMs, isPerCaller }: FunctionLimit,
  caller: Caller,
): void | Promise<void> {
  const key = isPerCaller ? `function:${name}:${callerKey(caller)}` : `function:${name}`
  const judge = ({ count, resetMs }: Hit): void => {
    if (count > calls) throw rateLimited(resetMs / 1000)
  }
  const hit = counters.hit(key, windowMs, 1, calls)
  return hit instanceof Promise ? hit.then(judge) : judge(hit)
}
