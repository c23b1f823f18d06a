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

function openOrNull(): number | null {
  try {
    return openSync('/proc/thread-self/schedstat', 'r')
  } catch {
    return null
  }
}

/** Of the thread that first calls it. */
class RunTime {
  /** Opened when it is first needed; null where the kernel does not report it. */
  #file: number | null | undefined
  readonly #buffer = Buffer.alloc(128)
  #sample: Start = { atMs: Number.NEGATIVE_INFINITY, waitedMs: 0 }

  start(): Start {
    const atMs = performance.now()
    if (atMs - this.#sample.atMs >= sampleMs) this.#sample = { atMs, waitedMs: this.#readWaitedMs() }
    return { atMs, waitedMs: this.#sample.waitedMs }
  }

  /** Whether the thread has run for longer than this since the start. */
  exceeds(start: Start, limitMs: number): boolean {
    return performance.now() - start.atMs > limitMs && this.ranMs(start) > limitMs
  }

  /** Milliseconds since the start in which the thread ran, or slept until a disk had answered. */
  ranMs(start: Start): number {
    // First the clock: a wait between the two is then subtracted, never counted.
    const passedMs = performance.now() - start.atMs
    return Math.max(0, passedMs - (this.#readWaitedMs() - start.waitedMs))
  }

  #readWaitedMs(): number {
    if (this.#file === undefined) this.#file = openOrNull()
    if (this.#file === null) return 0
    const length = readSync(this.#file, this.#buffer, 0, this.#buffer.length, 0)
    const [, waitedNs = '0'] = this.#buffer.toString('latin1', 0, length).split(' ')
    return Number(waitedNs) / 1e6
  }
}

/** Of the main thread. */
export const runTime = new RunTime()
