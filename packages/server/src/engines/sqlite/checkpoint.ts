/**
 * Checkpoint policy for write-ahead logs: by the size of the log while there are writes, and after an idle period.
 * SQLite restarts a log only when all of it has been checkpointed and nothing writes, so a checkpoint has two passes:
 * most of the log concurrently with the writer, then the small rest with the writer paused.
 */
import { Worker } from 'node:worker_threads'
import type { Clock } from '../../base/clock.ts'
import { releaseHandles } from '../../base/files/open-files.ts'
import { walPauseFactor, walQuietMs } from '../../limits/sqlite.ts'

/**
 * `passive` waits for no reader or writer; `truncate` also empties the log unless a reader still needs it; `recover`
 * does so only if every frame is intact.
 */
export type CheckpointMode = 'passive' | 'truncate' | 'recover'

/** Why a checkpoint failed. */
export interface CheckpointFailure {
  readonly message: string
  readonly isOutOfHandles: boolean
}

export interface Checkpointer {
  /**
   * Checkpoints the log of a file, off the main thread. A failure is harmless: the log stays and is checkpointed later.
   * No transaction may begin during `truncate`: it would block the main thread.
   */
  checkpoint(path: string, mode: Exclude<CheckpointMode, 'recover'>): Promise<void>
  /**
   * Checkpoints a log that may be damaged: verifies every frame, then empties it. The writer must be paused. Returns
   * the reason of a failure, which leaves the log unchanged.
   */
  recover(path: string): Promise<string | null>
  /** Resolves once no checkpoint is under way: the last connection to a file removes its log. */
  close(): Promise<void>
}

export function openCheckpointer(): Checkpointer {
  let worker: Worker | null = null
  let lastId = 0
  const waiting = new Map<number, (failure: CheckpointFailure | null) => void>()

  function start(): Worker {
    const started = new Worker(new URL('./checkpoint-worker.ts', import.meta.url))
    started.on('message', ({ id, error }: { id: number; error: CheckpointFailure | null }) => {
      waiting.get(id)?.(error)
      waiting.delete(id)
      if (waiting.size === 0) started.unref()
    })
    started.on('error', () => {
      for (const done of waiting.values()) done(failureOf('The checkpoint thread failed'))
      waiting.clear()
      worker = null
    })
    started.unref()
    return started
  }

  const failureOf = (message: string): CheckpointFailure => ({ message, isOutOfHandles: false })

  /** Returns the reason of a failure, or null. */
  async function run(path: string, mode: CheckpointMode): Promise<string | null> {
    for (;;) {
      const failure = await request(path, mode)
      if (!failure?.isOutOfHandles || !releaseHandles()) return failure?.message ?? null
    }
  }

  function request(path: string, mode: CheckpointMode): Promise<CheckpointFailure | null> {
    worker ??= start()
    const id = ++lastId
    const target = worker
    return new Promise((resolve) => {
      waiting.set(id, resolve)
      // Keeps the process alive until the reply.
      target.ref()
      target.postMessage({ id, path, mode })
    })
  }

  return {
    async checkpoint(path, mode) {
      await run(path, mode)
    },
    recover: (path) => run(path, 'recover'),
    async close() {
      const closing = worker
      worker = null
      for (const done of waiting.values()) done(failureOf('The engine is closing'))
      waiting.clear()
      await closing?.terminate()
    },
  }
}

export interface CheckpointPlan {
  /** Called after each group of writes. If it returns a promise, the next group waits for it. */
  afterGroup(): Promise<void> | undefined
  /** Checkpoints and empties the log after an idle period. */
  checkpointIdle(): Promise<void>
}

export interface CheckpointPlanDeps {
  /** `Checkpointer.checkpoint` for this database. */
  readonly checkpoint: (mode: 'passive' | 'truncate') => Promise<void>
  readonly clock: Clock
  /** Size of the log's file in bytes. */
  readonly logBytes: () => number
  /**
   * Size at which a checkpoint is due, and to which the writing connection truncates the file when the log restarts.
   */
  readonly checkpointBytes: number
  /** See `Writer.pause`. */
  readonly pauseWriter: () => Promise<() => void>
}

/** Decides when a database's log is checkpointed and when its writer must wait. */
export function createCheckpointPlan(deps: CheckpointPlanDeps): CheckpointPlan {
  const { checkpoint, clock, logBytes, checkpointBytes, pauseWriter } = deps
  let dueBytes = checkpointBytes
  let running: Promise<void> | null = null
  let step: 'none' | 'rest' | 'measure' = 'none'
  let lastWriteMs = clock.now()

  return {
    afterGroup() {
      lastWriteMs = clock.now()
      const bytes = logBytes()
      if (step === 'measure') {
        // The log was not truncated because a reader pinned it: retry once it has grown by another such amount.
        dueBytes = bytes > checkpointBytes ? bytes + checkpointBytes : checkpointBytes
        step = 'none'
      } else if (step === 'rest') {
        step = 'measure'
        return checkpoint('passive')
      }
      if (running) return bytes > checkpointBytes * walPauseFactor ? running : undefined
      if (bytes <= dueBytes) return undefined
      running = checkpoint('passive').then(() => {
        running = null
        step = 'rest'
      })
      return undefined
    },
    async checkpointIdle() {
      const nowMs = clock.now()
      // A clock that was set back must not make the database seem active.
      lastWriteMs = Math.min(lastWriteMs, nowMs)
      if (nowMs - lastWriteMs < walQuietMs || logBytes() === 0) return
      const release = await pauseWriter()
      try {
        await checkpoint('truncate')
        dueBytes = checkpointBytes
      } finally {
        release()
      }
    },
  }
}
