/**
 * What the thread that runs statements tells the watchdog beside it. Waking a thread for every statement would cost
 * more than most statements do: a watchdog that has not gone to sleep yet looks by itself.
 */
import { Worker } from 'node:worker_threads'

/** Places in what the two threads share. */
export const watchFlags = {
  /** 1 while a statement runs. */
  running: 0,
  /** 1 while the watchdog sleeps until it is woken. */
  asleep: 1,
} as const

export interface Watch {
  /** A statement begins. */
  begin(): void
  end(): void
}

/** Starts the watchdog of this process. */
export function createWatch(): Watch {
  const shared = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)
  const state = new Int32Array(shared)
  new Worker(new URL('./sqlite-watchdog.ts', import.meta.url), { workerData: shared }).unref()
  return {
    begin() {
      Atomics.store(state, watchFlags.running, 1)
      // It says that it sleeps before it looks a last time: either this sees the one, or that look the other.
      if (Atomics.load(state, watchFlags.asleep) === 1) Atomics.notify(state, watchFlags.running)
    },
    end: () => void Atomics.store(state, watchFlags.running, 0),
  }
}
