/**
 * Admission control and load shedding of expensive requests on the event loop. Each round of the loop begins expensive
 * requests for one slice; the others wait for later rounds, round robin over callers, so that a cheap request waits for
 * one slice and one step, however many expensive ones there are. Those that would wait too long are refused. Time in
 * which other processes occupy the processor counts neither as work nor as a wait: no request is refused for that.
 */
import {
  expensiveSliceMs,
  expensiveStanding,
  expensiveWaitingMax,
  expensiveWaitingPerCallerMax,
  expensiveWaitMs,
} from '../../limits/api.ts'
import { ControlledDelay, QueueTimeoutError } from './fair-queue.ts'
import { RoundRobin } from './round-robin.ts'
import { runTime } from './run-time.ts'

interface Entry {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  readonly signal: AbortSignal
  readonly addedAtMs: number
  /** When it has waited too long. */
  readonly dueMs: number
}

export interface AdmissionOptions {
  /** A monotonic clock of the time in which the thread ran or slept. */
  readonly elapsedMs?: () => number
  /** Calls back in the next round of the event loop. */
  readonly nextRound?: (callback: () => void) => void
}

function runClock(): () => number {
  const start = runTime.start()
  return () => runTime.ranMs(start)
}

export class AdmissionControl {
  readonly #elapsedMs: () => number
  readonly #nextRound: (callback: () => void) => void
  readonly #waiting = new RoundRobin<Entry>()
  readonly #delay = new ControlledDelay({
    waiting: expensiveWaitingMax,
    waitingPerCaller: expensiveWaitingPerCallerMax,
    waitMs: expensiveWaitMs,
    standing: expensiveStanding,
  })
  /** When the slice of this round ends; null until an expensive request begins in it. */
  #sliceEndMs: number | null = null
  #refused = 0

  constructor({ elapsedMs = runClock(), nextRound = setImmediate }: AdmissionOptions = {}) {
    this.#elapsedMs = elapsedMs
    this.#nextRound = nextRound
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Requests that were refused since the start. */
  get refused(): number {
    return this.#refused
  }

  /**
   * Returns a promise to await before the request of `caller` begins; undefined where it may begin at once. Throws
   * `QueueFullError` at a bound; rejects with `QueueTimeoutError` after too long a wait, and with the reason of
   * `signal` if it is aborted by then.
   */
  admit(caller: string, signal: AbortSignal): Promise<void> | undefined {
    const nowMs = this.#elapsedMs()
    if (this.#waiting.size === 0 && this.#isFree(nowMs)) return undefined
    const entry = { signal, addedAtMs: nowMs, dueMs: nowMs + this.#findWaitMs(caller, nowMs) }
    return new Promise((resolve, reject) => {
      this.#waiting.add(caller, { ...entry, resolve, reject })
    })
  }

  #findWaitMs(caller: string, nowMs: number): number {
    try {
      return this.#delay.add(this.#waiting.size, this.#waiting.sizeOf(caller), nowMs) as number
    } catch (error) {
      this.#refused += 1
      throw error
    }
  }

  /** Whether the slice of this round is not over; begins it where no request has. */
  #isFree(nowMs: number): boolean {
    if (this.#sliceEndMs === null) this.#beginSlice(nowMs)
    return nowMs < (this.#sliceEndMs as number)
  }

  #beginSlice(nowMs: number): void {
    this.#sliceEndMs = nowMs + expensiveSliceMs
    this.#nextRound(() => this.#endRound())
  }

  /** Begins the next entry, which is the only one of its round: how long it takes is seen in the round after. */
  #endRound(): void {
    this.#sliceEndMs = null
    const entry = this.#next()
    if (!entry) return
    const nowMs = this.#elapsedMs()
    this.#beginSlice(nowMs)
    this.#delay.begin(entry.addedAtMs, nowMs)
    entry.resolve()
  }

  /** The next entry that may still begin. */
  #next(): Entry | undefined {
    const nowMs = this.#elapsedMs()
    for (let entry = this.#waiting.shift(); entry; entry = this.#waiting.shift()) {
      const { signal, dueMs, reject } = entry
      if (signal.aborted) reject(signal.reason)
      else if (nowMs <= dueMs) return entry
      else {
        this.#refused += 1
        reject(new QueueTimeoutError())
      }
    }
    return undefined
  }
}
