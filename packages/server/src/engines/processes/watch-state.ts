/**
 * State shared between the statement thread and its watchdog. Waking a thread per statement would cost more than most
 * statements, so an awake watchdog polls.
 */
import { Worker } from 'node:worker_threads'

/** Indexes into the shared array. */
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
  new Worker(new URL('./watchdog.ts', import.meta.url), { workerData: shared }).unref()
  return {
    begin() {
      Atomics.store(state, watchFlags.running, 1)
      // The watchdog sets `asleep` before its last check of `running`, so either this load sees the flag or that check
      // sees the statement.
      if (Atomics.load(state, watchFlags.asleep) === 1) Atomics.notify(state, watchFlags.running)
    },
    end: () => void Atomics.store(state, watchFlags.running, 0),
  }
}
