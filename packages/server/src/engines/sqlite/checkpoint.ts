/**
 * When write-ahead logs are checkpointed: by the size of the log's file while there are writes, and once there have
 * been none for a while. SQLite starts a log over only when all of it has been checkpointed while nobody writes, so a
 * checkpoint happens twice: most of it beside the writers, then the small rest with the writer paused for a moment.
 */
import { Worker } from 'node:worker_threads'
import type { Clock } from '../../base/clock.ts'
import { releaseHandles } from '../../base/open-files.ts'
import { walPauseFactor, walQuietMs } from '../../limits/sqlite.ts'

/**
 * `passive` waits for no one; `truncate` also empties the log's file, unless a reader still needs it; `recover` does so
 * only with a log whose frames are all intact.
 */
export type CheckpointMode = 'passive' | 'truncate' | 'recover'

/** Why a checkpoint was not made. */
export interface CheckpointFailure {
  readonly message: string
  readonly isOutOfHandles: boolean
}

export interface Checkpointer {
  /**
   * Brings what the log of that file holds now into the file, off the main thread. Failures are harmless: the log stays
   * and is checkpointed later. No transaction may begin during `truncate`: it would block the main thread.
   */
  checkpoint(path: string, mode: Exclude<CheckpointMode, 'recover'>): Promise<void>
  /**
   * Brings a log that may be damaged into the file once every frame has been checked, and empties it; the writer must
   * be held. Gives the reason where that failed, which leaves the log as it was.
   */
  recover(path: string): Promise<string | null>
  close(): void
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

  /** Gives the reason where that failed. */
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
      // A process that waits for nothing else waits for this.
      target.ref()
      target.postMessage({ id, path, mode })
    })
  }

  return {
    async checkpoint(path, mode) {
      await run(path, mode)
    },
    recover: (path) => run(path, 'recover'),
    close() {
      void worker?.terminate()
      for (const done of waiting.values()) done(failureOf('The engine is closing'))
      waiting.clear()
      worker = null
    },
  }
}

export interface CheckpointPlan {
  /** Called after each group of writes; the promise it gives, if any, is awaited before the next group. */
  afterGroup(): Promise<void> | undefined
  /** Empties the log where nothing was written for a while. */
  checkpointIdle(): Promise<void>
}

export interface CheckpointPlanDeps {
  /** See `Checkpointer`, for the database of this plan. */
  readonly checkpoint: (mode: 'passive' | 'truncate') => Promise<void>
  readonly clock: Clock
  /** Size of the log's file in bytes. */
  readonly logBytes: () => number
  /** The size at which a checkpoint is due; the writing connection cuts the file to it when the log starts over. */
  readonly checkpointBytes: number
  /** See `Writer.pause`. */
  readonly pauseWriter: () => Promise<() => void>
}

/** Decides when one database's log is checkpointed and when its writer must wait for it. */
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
        // A log that a reader kept from starting over has not been cut: trying again pays once it has grown by as much.
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
      // A clock that was set back must not make the database seem busy.
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
