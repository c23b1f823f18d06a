/**
 * How long this thread has been at something, without the time in which others occupied the processor: on a loaded
 * machine the wall clock would call anything slow. On Linux only; elsewhere the time that has passed counts.
 */
import { openSync, readSync } from 'node:fs'

export interface Start {
  readonly atMs: number
  /** Time in which the thread had been ready to run and had not, as of at most `sampleMs` before. */
  readonly waitedMs: number
}

/** Reading the kernel's figure takes more than a microsecond, as long as reading a row. */
const sampleMs = 1

/** Milliseconds in which the thread that first calls the function was ready to run and did not. */
function createWaitedMs(): () => number {
  /** Opened when it is first needed; null where the kernel does not report it. */
  let file: number | null | undefined
  const buffer = Buffer.alloc(128)
  return () => {
    if (file === undefined) file = openOrNull()
    if (file === null) return 0
    const length = readSync(file, buffer, 0, buffer.length, 0)
    const [, waitedNs = '0'] = buffer.toString('latin1', 0, length).split(' ')
    return Number(waitedNs) / 1e6
  }
}

function openOrNull(): number | null {
  try {
    return openSync('/proc/thread-self/schedstat', 'r')
  } catch {
    return null
  }
}

export class RunTime {
  readonly #nowMs: () => number
  readonly #waitedMs: () => number
  #sample: Start = { atMs: Number.NEGATIVE_INFINITY, waitedMs: 0 }

  /** Both clocks are monotonic: the time that passes, and the part of it in which the thread waited for a processor. */
  constructor(nowMs = (): number => performance.now(), waitedMs = createWaitedMs()) {
    this.#nowMs = nowMs
    this.#waitedMs = waitedMs
  }

  start(): Start {
    const atMs = this.#nowMs()
    if (atMs - this.#sample.atMs >= sampleMs) this.#sample = { atMs, waitedMs: this.#waitedMs() }
    return { atMs, waitedMs: this.#sample.waitedMs }
  }

  /** Whether the thread has run for longer than this since the start. */
  exceeds(start: Start, limitMs: number): boolean {
    return this.#nowMs() - start.atMs > limitMs && this.ranMs(start) > limitMs
  }

  /** Milliseconds since the start in which the thread ran, or slept until a disk had answered. */
  ranMs(start: Start): number {
    // First the clock: a wait between the two is then subtracted, never counted.
    const passedMs = this.#nowMs() - start.atMs
    return Math.max(0, passedMs - (this.#waitedMs() - start.waitedMs))
  }
}

/** Of the main thread. */
export const runTime = new RunTime()
