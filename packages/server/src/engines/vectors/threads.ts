/**
 * Adapter of `Vectors` that searches in threads of this process. Opens copies in the threads; `followed-index` keeps
 * each current, `copies` bounds their memory, and `core` implements a copy.
 */
import type { Worker } from 'node:worker_threads'
import type { Log } from '../../base/log.ts'
import { Copies, type CopiesOptions, type Copy } from './copies.ts'
import { FollowedIndex } from './followed-index.ts'
import { closing, createVectorPool, type VectorPool } from './pool.ts'
import type { VectorIndex, VectorIndexOptions, Vectors } from './vectors.ts'

export interface VectorThreadsOptions extends CopiesOptions {
  /** Graphs are saved here. */
  readonly folder: string
  /** See `vectorExactValuesMax`. */
  readonly exactValuesMax?: number
  readonly saveEveryMs?: number
  /** Called with every thread that starts. */
  readonly onThread?: (worker: Worker) => void
}

export const openVectorThreads = (options: VectorThreadsOptions): Vectors => new VectorThreads(options)

class VectorThreads implements Vectors {
  readonly #options: VectorThreadsOptions
  readonly #log: Log
  readonly #pool: VectorPool
  readonly #copies: Copies
  #lastCopyId = 0
  #isClosed = false

  constructor(options: VectorThreadsOptions) {
    const { log, onThread } = options
    this.#options = options
    this.#log = log
    this.#pool = createVectorPool({
      onStart: onThread ?? (() => {}),
      onWarning: ({ index, message }) => log.warn('vector.graph_failed', { index, reason: message }),
    })
    this.#copies = new Copies(options)
  }

  openIndex(index: VectorIndexOptions): VectorIndex {
    const openCopy = (): Promise<Copy> => this.#openCopy(index)
    return new FollowedIndex({ index, openCopy, copies: this.#copies, log: this.#log })
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await Promise.allSettled(this.#pool.all().map((thread) => thread.request({ task: 'save' })))
    for (const thread of this.#pool.all()) thread.end(closing())
  }

  async #openCopy({ name, dimensions, metric, metadataIndexes }: VectorIndexOptions): Promise<Copy> {
    if (this.#isClosed) throw closing()
    const thread = this.#pool.pick()
    thread.copies += 1
    const id = ++this.#lastCopyId
    const { folder, exactValuesMax, saveEveryMs } = this.#options
    const options = { name, dimensions, metric, metadataIndexes, folder, exactValuesMax, saveEveryMs }
    const { hasGraphs } = await thread.request({ task: 'open', copy: id, options })
    if (!hasGraphs) this.#log.warn('vector.graphs_unsupported', { index: name })
    return this.#copies.add({ id, name, thread })
  }
}
