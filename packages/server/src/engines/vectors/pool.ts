/**
 * Pool of search threads: starts them, exchanges messages, and detects when one is lost. Knows copies by number only.
 */
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { vectorAnswerTimeoutMs, vectorThreadsMax } from '../../limits/resources.ts'
import { EngineError } from '../sql/error.ts'
import type { CopyAnswer, CopyRequest, CopyResults, CopyTask, CopyWarning } from './messages.ts'

/** The thread is lost with its copies; the request may be repeated on another. */
export class ThreadLostError extends EngineError {
  constructor(cause?: unknown) {
    super('unavailable', 'A thread that searches vectors was lost', [], cause)
    this.name = 'ThreadLostError'
  }
}

export const closing = (): EngineError => new EngineError('unavailable', 'The engine is closing')

export interface VectorThread {
  /** Copies assigned to it. */
  copies: number
  /** Rejects with `ThreadLostError`, and with the `EngineError` of the task. */
  request<T extends CopyTask>(task: T, moved?: ArrayBufferLike[]): Promise<CopyResults[T['task']]>
  /** Terminates the thread; pending requests reject. */
  end(error: EngineError): void
}

export interface VectorPool {
  /** The thread with the fewest copies; threads start on demand. */
  pick(): VectorThread
  all(): readonly VectorThread[]
}

interface Waiting {
  readonly resolve: (result: never) => void
  readonly reject: (error: unknown) => void
}

export interface PoolListeners {
  /** Called with every thread that starts; a test may terminate it. */
  readonly onStart: (worker: Worker) => void
  readonly onWarning: (warning: CopyWarning) => void
}

export function createVectorPool({ onStart, onWarning }: PoolListeners): VectorPool {
  const wanted = Math.max(1, Math.min(vectorThreadsMax, availableParallelism() - 1))
  const threads: VectorThread[] = []

  function start(): VectorThread {
    const worker = new Worker(new URL('./worker.ts', import.meta.url))
    const waiting = new Map<number, Waiting>()
    let lastId = 0
    let ended: EngineError | null = null
    let replyTimeout: ReturnType<typeof setTimeout> | undefined

    function end(error: EngineError): void {
      if (ended) return
      ended = error
      threads.splice(threads.indexOf(thread), 1)
      void worker.terminate()
      clearTimeout(replyTimeout)
      for (const { reject } of waiting.values()) reject(error)
      waiting.clear()
    }

    /** A thread cannot be interrupted: one that does not reply in time is terminated, and another starts. */
    function restartReplyTimeout(): void {
      clearTimeout(replyTimeout)
      if (waiting.size === 0) return
      replyTimeout = setTimeout(() => end(new ThreadLostError()), vectorAnswerTimeoutMs)
    }
    const thread: VectorThread = {
      copies: 0,
      request: (task, moved = []) =>
        new Promise((resolve, reject) => {
          if (ended) return reject(ended)
          const id = ++lastId
          waiting.set(id, { resolve, reject })
          if (waiting.size === 1) restartReplyTimeout()
          worker.postMessage({ ...task, id } satisfies CopyRequest, moved as ArrayBuffer[])
        }),
      end,
    }
    worker.on('message', (answer: CopyAnswer | CopyWarning) => {
      if ('index' in answer) return onWarning(answer)
      const entry = waiting.get(answer.id)
      if (!entry) return
      waiting.delete(answer.id)
      restartReplyTimeout()
      if ('result' in answer) entry.resolve(answer.result as never)
      else if (answer.error.kind) entry.reject(new EngineError(answer.error.kind, answer.error.message))
      else entry.reject(new Error(answer.error.message))
    })
    worker.on('error', (error) => end(new ThreadLostError(error)))
    worker.on('exit', () => end(new ThreadLostError()))
    worker.unref()
    threads.push(thread)
    onStart(worker)
    return thread
  }

  return {
    pick() {
      const [best] = [...threads].sort((one, other) => one.copies - other.copies)
      return best && (best.copies === 0 || threads.length >= wanted) ? best : start()
    },
    all: () => [...threads],
  }
}
