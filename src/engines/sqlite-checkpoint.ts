/**
 * When the write-ahead logs are folded back. SQLite starts a log over only when all of it has been folded while nobody
 * writes, so a fold happens twice: most of it beside the writers, then the small rest with the writer paused for a
 * moment.
 */
import { Worker } from 'node:worker_threads'
import { walCheckpointBytes, walPauseBytes } from '../limits.ts'

export interface Checkpointer {
  /**
   * Folds what the log of that file holds now, off the main thread. Failures are harmless: the log stays and is folded
   * later.
   */
  fold(path: string): Promise<void>
  close(): void
}

export function openCheckpointer(): Checkpointer {
  let worker: Worker | null = null
  let lastId = 0
  const waiting = new Map<number, () => void>()

  function start(): Worker {
    const started = new Worker(new URL('./sqlite-checkpoint-worker.ts', import.meta.url))
    started.on('message', ({ id }: { id: number }) => {
      waiting.get(id)?.()
      waiting.delete(id)
      if (waiting.size === 0) started.unref()
    })
    started.on('error', () => {
      for (const done of waiting.values()) done()
      waiting.clear()
      worker = null
    })
    started.unref()
    return started
  }

  return {
    fold(path) {
      worker ??= start()
      const id = ++lastId
      const target = worker
      return new Promise((resolve) => {
        waiting.set(id, resolve)
        // A process that waits for nothing else waits for this.
        target.ref()
        target.postMessage({ id, path })
      })
    },
    close() {
      void worker?.terminate()
      for (const done of waiting.values()) done()
      waiting.clear()
      worker = null
    },
  }
}

/**
 * What a writer calls after each group (`onGroup`): decides when its database's log is folded and when the writer must
 * wait for it.
 */
export function createFoldPlan(checkpointer: Checkpointer, path: string): (bytes: number) => Promise<void> | undefined {
  let bytesSinceFold = 0
  let folding: Promise<void> | null = null
  let restIsDue = false

  return (bytes) => {
    bytesSinceFold += bytes
    if (restIsDue) {
      restIsDue = false
      bytesSinceFold = 0
      return checkpointer.fold(path)
    }
    if (bytesSinceFold >= walPauseBytes && folding) return folding
    if (bytesSinceFold < walCheckpointBytes || folding) return undefined
    folding = checkpointer.fold(path).then(() => {
      folding = null
      restIsDue = true
    })
    return undefined
  }
}
