/**
 * Child processes of one kind, started on demand and kept for a while when idle. Bounds on how many work at once belong
 * to the queue in front of it.
 */
import { EngineError } from '../sql/error.ts'

export interface PooledProcess {
  /** Whether it may be given more work. */
  readonly isUsable: boolean
  close(): Promise<void>
}

export interface ProcessPool<P> {
  /** Runs `work` with a process that nothing else uses meanwhile. Throws `EngineError` `unavailable` once closed. */
  use<T>(work: (process: P) => Promise<T>): Promise<T>
  /** Ends every process, busy or idle. */
  close(): Promise<void>
}

export function createProcessPool<P extends PooledProcess>(options: {
  readonly start: () => P
  /** An idle process ends after this. */
  readonly idleMs: number
}): ProcessPool<P> {
  const all = new Set<P>()
  const idle: { readonly process: P; readonly timer: ReturnType<typeof setTimeout> }[] = []
  let isClosed = false

  const end = (process: P): Promise<void> => process.close().finally(() => all.delete(process))

  function take(): P {
    if (isClosed) throw new EngineError('unavailable', 'The server is closing')
    for (let last = idle.pop(); last; last = idle.pop()) {
      clearTimeout(last.timer)
      if (last.process.isUsable) return last.process
      void end(last.process)
    }
    const started = options.start()
    all.add(started)
    return started
  }

  function giveBack(process: P): void {
    if (!process.isUsable || isClosed) {
      void end(process)
      return
    }
    const timer = setTimeout(() => {
      const at = idle.findIndex((one) => one.process === process)
      idle.splice(at, 1)
      void end(process)
    }, options.idleMs)
    idle.push({ process, timer: timer.unref() })
  }

  return {
    async use(work) {
      const process = take()
      try {
        return await work(process)
      } finally {
        giveBack(process)
      }
    },
    async close() {
      isClosed = true
      for (const { timer } of idle.splice(0)) clearTimeout(timer)
      await Promise.all([...all].map(end))
    },
  }
}
