/**
 * Watchdog thread. The statement thread cannot be interrupted, so while a statement runs this thread kills the process
 * when its memory exceeds the bound, or when the parent process has exited.
 */
import { workerData } from 'node:worker_threads'
import { sqlProcessBytesMax, sqlProcessIdlePolls, sqlProcessPollMs } from '../../limits/resources.ts'
import { tooLargeSignal } from './child-signals.ts'
import { watchFlags } from './watch-state.ts'

const state = new Int32Array(workerData as SharedArrayBuffer)
const { running, asleep } = watchFlags
const parent = process.ppid

for (let idlePolls = 0; ; ) {
  if (Atomics.load(state, running) === 1) {
    idlePolls = 0
    if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL')
    if (process.memoryUsage.rss() > sqlProcessBytesMax) process.kill(process.pid, tooLargeSignal)
  } else if (++idlePolls > sqlProcessIdlePolls) {
    Atomics.store(state, asleep, 1)
    Atomics.wait(state, running, 0)
    Atomics.store(state, asleep, 0)
    continue
  }
  // The polled state does not notify: this is a sleep.
  Atomics.wait(state, asleep, 0, sqlProcessPollMs)
}
