/** Counts the runs of functions, and logs and keeps their failures. */
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { CodeLocation } from '../../../engines/hosts/hosts.ts'
import type { RecentLines } from '../logs/recent-lines.ts'
import type { Fault } from './failures.ts'

/** Counters of a function since the start of the node. */
export interface FunctionCounts {
  calls: number
  failures: number
  /** Whether the last call that ended has failed. */
  isFailing: boolean
  lastError: { readonly at: string; readonly message: string; readonly location: CodeLocation | null } | null
}

export interface CountsDeps {
  /** Where a function is declared: the location of faults that have none of their own, such as timeouts. */
  readonly locationOf: (name: string) => CodeLocation | null
  /** Keeps the lines and failures of functions for operators. */
  readonly lines: RecentLines
  readonly clock: Clock
  readonly log: Log
}

export interface Counts {
  countsOf(name: string): FunctionCounts
  /** Counts a run without an invocation of its own; `report` follows if it fails. */
  countRun(name: string): void
  /** Logs and counts a failure of a function that its invocation did not reject with. */
  report(call: { readonly name: string; readonly requestId: string }, fault: Fault): void
}

export function createCounts({ locationOf, lines, clock, log }: CountsDeps): Counts {
  const counts = new Map<string, FunctionCounts>()

  const countsOf = (name: string): FunctionCounts =>
    counts.getOrInsertComputed(name, () => ({ calls: 0, failures: 0, isFailing: false, lastError: null }))

  return {
    countsOf,
    countRun(name) {
      const count = countsOf(name)
      count.calls++
      count.isFailing = false
    },
    report({ name, requestId }, fault) {
      const { reason, message, stack } = fault
      const location = fault.location ?? locationOf(name)
      const count = countsOf(name)
      count.failures++
      count.isFailing = true
      count.lastError = { at: new Date(clock.now()).toISOString(), message, location }
      lines.add({ level: 'error', function: name, message, requestId, location, data: { reason }, atMs: clock.now() })
      const at = location ? { location: `${location.file}:${location.line}` } : {}
      log.error('functions.failed', { function: name, reason, message, requestId, ...at, ...(stack && { stack }) })
    },
  }
}
