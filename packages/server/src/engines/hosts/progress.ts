/**
 * How long a process could have run. A process that waits for a processor, because others occupy all of them, is not
 * blocked. On Linux only: elsewhere the time that has passed counts.
 */
import { readFileSync } from 'node:fs'

export interface ProgressSample {
  readonly atMs: number
  /** Of the main thread. */
  readonly processorMs: number
  /** Time in which the main thread was ready to run and did not, except for a wait that has not ended. */
  readonly waitedMs: number
  readonly isRunnable: boolean
}

/** Of a process that has ended, or where the system does not report it: one that was free to run all the time. */
const unknown = { processorMs: 0, waitedMs: 0, isRunnable: false }

export function sampleProgress(pid: number): ProgressSample {
  const atMs = performance.now()
  try {
    const [processorNs = 0, waitedNs = 0] = readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ').map(Number)
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field is the name of the program in brackets.
    const isRunnable = stat[stat.lastIndexOf(')') + 2] === 'R'
    return { atMs, processorMs: processorNs / 1e6, waitedMs: waitedNs / 1e6, isRunnable }
  } catch {
    return { atMs, ...unknown }
  }
}

/** Milliseconds in which the process ran or slept between two samples. */
export function availableMs(from: ProgressSample, to: ProgressSample): number {
  // It may have waited for all of the rest.
  if (to.isRunnable) return to.processorMs - from.processorMs
  return to.atMs - from.atMs - (to.waitedMs - from.waitedMs)
}
