/**
 * Adapter of `Vectors` that searches in threads of this process. Owns which copies exist, that each follows SQL, and
 * their total memory; `core` implements a copy.
 */
import type { Worker } from 'node:worker_threads'
import type { Log } from '../../base/log.ts'
import {
  vectorCopyIdleMs,
  vectorMemoryBytesMax,
  vectorPageBytes,
  vectorPageRowsMax,
  vectorRefusalMs,
  vectorSearchesWaitingMax,
} from '../../limits/resources.ts'
import { EngineError } from '../sql/error.ts'
import { packRows } from './messages.ts'
import { createVectorPool, ThreadLostError, type VectorThread } from './pool.ts'
import type { VectorIndex, VectorIndexOptions, VectorQuery, Vectors } from './vectors.ts'

export interface VectorThreadsOptions {
  /** Graphs are saved here. */
  readonly folder: string
  readonly log: Log
  /** Bound on the memory of all copies together. */
  readonly memoryBytesMax?: number
  /** See `vectorCopyIdleMs`. */
  readonly copyIdleMs?: number
  /** See `vectorExactValuesMax`. */
  readonly exactValuesMax?: number
  readonly saveEveryMs?: number
  /** Called with every thread that starts. */
  readonly onThread?: (worker: Worker) => void
}

interface Copy {
  readonly id: number
  readonly name: string
  readonly thread: VectorThread
  version: number
  /** Vectors deleted up to this version were never in the copy. */
  begun: number
  bytes: number
  /** Searches and pages in flight. */
  uses: number
  usedMs: number
  isLost: boolean
}

export function openVectorThreads(options: VectorThreadsOptions): Vectors {
  const { log } = options
  const pool = createVectorPool({
    onStart: options.onThread ?? (() => {}),
    onWarning: ({ index, message }) => log.warn('vector.graph_failed', { index, reason: message }),
  })
  const memory = createMemory(options)
  let lastCopyId = 0
  let isClosed = false

  async function openCopy(index: VectorIndexOptions): Promise<Copy> {
    if (isClosed) throw closing()
    const { name, dimensions, metric, metadataIndexes } = index
    const thread = pool.pick()
    thread.copies += 1
    const id = ++lastCopyId
    const { folder, exactValuesMax, saveEveryMs } = options
    const open = { name, dimensions, metric, metadataIndexes, folder, exactValuesMax, saveEveryMs }
    const { hasGraphs } = await thread.request({ task: 'open', copy: id, options: open })
    if (!hasGraphs) log.warn('vector.graphs_unsupported', { index: name })
    const copy: Copy = {
      id,
      name,
      thread,
      version: 0,
      begun: 0,
      bytes: 0,
      uses: 0,
      usedMs: performance.now(),
      isLost: false,
    }
    memory.add(copy)
    return copy
  }

  return {
    openIndex: (index) => createIndex({ index, openCopy, memory, log }),
    async close() {
      if (isClosed) return
      isClosed = true
      await Promise.allSettled(pool.all().map((thread) => thread.request({ task: 'save' })))
      for (const thread of pool.all()) thread.end(closing())
    },
  }
}

const closing = (): EngineError => new EngineError('unavailable', 'The engine is closing')

interface IndexParts {
  readonly index: VectorIndexOptions
  readonly openCopy: (index: VectorIndexOptions) => Promise<Copy>
  readonly memory: Memory
  readonly log: Log
}

function createIndex({ index, openCopy, memory, log }: IndexParts): VectorIndex {
  const { dimensions, source } = index
  const rowsPerPage = Math.max(1, Math.min(vectorPageRowsMax, Math.floor(vectorPageBytes / (dimensions * 4))))
  let current: Copy | null = null
  let pulling: Promise<Copy> | null = null
  let waiting = 0
  let isClosed = false

  async function takeCopy(): Promise<Copy> {
    if (isClosed) throw closing()
    if (current && !current.isLost) return current
    memory.checkRefusal(index.name)
    current = await openCopy(index)
    return current
  }

  /** Reads pages until the copy is current. */
  async function pull(): Promise<Copy> {
    let copy = await takeCopy()
    copy.uses += 1
    try {
      for (;;) {
        const page = await source.readChanges(copy.version, copy.begun, rowsPerPage)
        if (page ? !page.isLast && page.version <= copy.version : copy.version === 0)
          throw new Error(`The source of the vector index ${index.name} does not end`)
        if (!page) {
          copy.uses -= 1
          memory.drop(copy)
          copy = await takeCopy()
          copy.uses += 1
          continue
        }
        const rows = packRows(page.rows, dimensions)
        const moved = [rows.keys.buffer, rows.isGone.buffer, rows.values.buffer]
        const { bytes } = await copy.thread.request(
          { task: 'apply', copy: copy.id, rows, isCurrent: page.isLast },
          moved,
        )
        if (copy.version === 0) copy.begun = page.latest
        copy.version = page.version
        memory.resize(copy, bytes)
        if (page.isLast) return copy
      }
    } catch (error) {
      // A copy with part of a page, or without a thread, is unusable.
      memory.drop(copy)
      throw error
    } finally {
      copy.uses -= 1
    }
  }

  const follow = (): Promise<Copy> => {
    pulling ??= pull().finally(() => {
      pulling = null
    })
    return pulling
  }

  /** A pull in progress may have read before the version existed: the next one has not. */
  async function copyWith(version: number): Promise<Copy> {
    for (let pulls = 0; pulls < pullsMax; pulls++) {
      if (current && !current.isLost && current.version >= version) return current
      await follow()
    }
    throw new EngineError('unavailable', 'The copy of a vector index cannot follow it')
  }

  async function onCopy<T>(version: number, use: (copy: Copy) => Promise<T>): Promise<T> {
    const copy = await copyWith(version)
    copy.uses += 1
    copy.usedMs = performance.now()
    try {
      return await use(copy)
    } catch (error) {
      if (error instanceof ThreadLostError) memory.drop(copy)
      throw error
    } finally {
      copy.uses -= 1
    }
  }

  /** Retries once when the thread is lost: everything in it can be rebuilt. */
  async function twice<T>(attempt: () => Promise<T>): Promise<T> {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof ThreadLostError) || isClosed) throw error
      log.warn('vector.thread_lost', { index: index.name })
      return attempt()
    }
  }

  return {
    follow() {
      follow().catch((error: unknown) => log.warn('vector.index_load_failed', { index: index.name, error }))
    },
    async search({ atLeast, ...query }: VectorQuery) {
      if (waiting >= vectorSearchesWaitingMax) throw new EngineError('busy', 'Too many searches are waiting')
      waiting += 1
      // A view of a larger buffer would copy the whole buffer to the thread.
      const alone = { ...query, vector: query.vector.slice() }
      try {
        return await twice(() =>
          onCopy(atLeast, (copy) => copy.thread.request({ task: 'search', copy: copy.id, query: alone })),
        )
      } finally {
        waiting -= 1
      }
    },
    state: () =>
      twice(() =>
        onCopy(0, async (copy) => ({
          ...(await copy.thread.request({ task: 'state', copy: copy.id })),
          version: copy.version,
        })),
      ),
    close() {
      isClosed = true
      if (current) memory.drop(current)
    },
  }
}

/** One in progress, one of our own, and one for a copy dropped meanwhile. */
const pullsMax = 3

interface Memory {
  add(copy: Copy): void
  /** Accounts for the copy's growth, evicting idle copies. Throws `EngineError` when there is not enough memory. */
  resize(copy: Copy, bytes: number): void
  drop(copy: Copy): void
  /** Throws while an index that did not fit must not be retried. */
  checkRefusal(name: string): void
}

function createMemory(options: VectorThreadsOptions): Memory {
  const bytesMax = options.memoryBytesMax ?? vectorMemoryBytesMax
  const copyIdleMs = options.copyIdleMs ?? vectorCopyIdleMs
  const copies = new Set<Copy>()
  const refusedUntilMs = new Map<string, number>()
  const total = (): number => [...copies].reduce((sum, { bytes }) => sum + bytes, 0)
  const tooLarge = (): EngineError =>
    new EngineError('unavailable', `The vector indexes in use need more than ${bytesMax} bytes of memory`)

  function drop(copy: Copy): void {
    if (copy.isLost) return
    copy.isLost = true
    copies.delete(copy)
    copy.thread.copies -= 1
    // A thread that ended has lost the copy already.
    copy.thread.request({ task: 'drop', copy: copy.id }).catch(() => {})
  }

  return {
    add: (copy) => void copies.add(copy),
    drop,
    resize(copy, bytes) {
      copy.bytes = bytes
      const idleSinceMs = performance.now() - copyIdleMs
      const idle = [...copies]
        .filter((other) => other !== copy && other.uses === 0 && other.usedMs <= idleSinceMs)
        .sort((one, other) => one.usedMs - other.usedMs)
      while (total() > bytesMax) {
        const oldest = idle.shift()
        if (!oldest) {
          refusedUntilMs.set(copy.name, performance.now() + vectorRefusalMs)
          throw tooLarge()
        }
        options.log.warn('vector.index_evicted', { index: oldest.name, to: copy.name })
        drop(oldest)
      }
      refusedUntilMs.delete(copy.name)
    },
    checkRefusal(name) {
      if ((refusedUntilMs.get(name) ?? 0) > performance.now()) throw tooLarge()
    },
  }
}
