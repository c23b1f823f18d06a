/**
 * Pool of child processes of one kind, started on demand and kept while idle. The queue in front of the pool bounds the
 * concurrency.
 */
import { EngineError } from '../sql/error.ts'

export interface PooledProcess {
  /** Whether it can take more work. */
  readonly isUsable: boolean
  close(): Promise<void>
}

export interface ProcessPool<P> {
  /** Runs `work` with exclusive use of a process. Throws `EngineError` `unavailable` once closed. */
  use<T>(work: (process: P) => Promise<T>): Promise<T>
  /** Closes every process, busy or idle. */
  close(): Promise<void>
}

export function createProcessPool<P extends PooledProcess>(options: {
  readonly start: () => P
  /** An idle process is closed after this time, in milliseconds. */
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
