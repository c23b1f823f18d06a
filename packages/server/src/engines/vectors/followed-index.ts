/**
 * A `VectorIndex` whose copy is in a thread. Reads the copy's changes from SQL, and opens another copy when it is
 * evicted or its thread is lost.
 */
import type { Log } from '../../base/log.ts'
import { vectorPageBytes, vectorPageRowsMax, vectorSearchesWaitingMax } from '../../limits/resources.ts'
import { EngineError } from '../sql/error.ts'
import type { Copies, Copy } from './copies.ts'
import { packRows } from './messages.ts'
import { closing, ThreadLostError } from './pool.ts'
import type {
  VectorIndex,
  VectorIndexOptions,
  VectorIndexState,
  VectorMatch,
  VectorPage,
  VectorQuery,
} from './vectors.ts'

export interface FollowedIndexDeps {
  readonly index: VectorIndexOptions
  /** Opens an empty copy of the index. */
  readonly openCopy: () => Promise<Copy>
  readonly copies: Copies
  readonly log: Log
}

/** Pulls for one search: one in progress, one of our own, and one for a copy dropped meanwhile. */
const pullsMax = 3

export class FollowedIndex implements VectorIndex {
  readonly #index: VectorIndexOptions
  readonly #openCopy: FollowedIndexDeps['openCopy']
  readonly #copies: Copies
  readonly #log: Log
  readonly #rowsPerPage: number
  #current: Copy | null = null
  #pulling: Promise<Copy> | null = null
  #waiting = 0
  #isClosed = false

  constructor({ index, openCopy, copies, log }: FollowedIndexDeps) {
    this.#index = index
    this.#openCopy = openCopy
    this.#copies = copies
    this.#log = log
    const rowsPerPage = Math.floor(vectorPageBytes / (index.dimensions * 4))
    this.#rowsPerPage = Math.max(1, Math.min(vectorPageRowsMax, rowsPerPage))
  }

  follow(): void {
    this.#pull().catch((error: unknown) =>
      this.#log.warn('vector.index_load_failed', { index: this.#index.name, error }),
    )
  }

  async search({ atLeast, ...query }: VectorQuery): Promise<VectorMatch[]> {
    if (this.#waiting >= vectorSearchesWaitingMax) throw new EngineError('busy', 'Too many searches are waiting')
    this.#waiting += 1
    // A view of a larger buffer would copy the whole buffer to the thread.
    const alone = { ...query, vector: query.vector.slice() }
    try {
      return await this.#onCopy(atLeast, ({ id, thread }) => thread.request({ task: 'search', copy: id, query: alone }))
    } finally {
      this.#waiting -= 1
    }
  }

  state(): Promise<VectorIndexState> {
    return this.#onCopy(0, async (copy) => ({
      ...(await copy.thread.request({ task: 'state', copy: copy.id })),
      version: copy.version,
    }))
  }

  close(): void {
    this.#isClosed = true
    if (this.#current) this.#copies.drop(this.#current)
  }

  /** Retries once when the thread is lost: everything in it can be rebuilt. */
  async #onCopy<T>(version: number, use: (copy: Copy) => Promise<T>): Promise<T> {
    try {
      return await this.#attempt(version, use)
    } catch (error) {
      if (!(error instanceof ThreadLostError) || this.#isClosed) throw error
      this.#log.warn('vector.thread_lost', { index: this.#index.name })
      return this.#attempt(version, use)
    }
  }

  async #attempt<T>(version: number, use: (copy: Copy) => Promise<T>): Promise<T> {
    const copy = await this.#copyWith(version)
    copy.uses += 1
    copy.usedMs = performance.now()
    try {
      return await use(copy)
    } catch (error) {
      if (error instanceof ThreadLostError) this.#copies.drop(copy)
      throw error
    } finally {
      copy.uses -= 1
    }
  }

  /** A pull in progress may have read before the version existed: the next one has not. */
  async #copyWith(version: number): Promise<Copy> {
    for (let pulls = 0; pulls < pullsMax; pulls++) {
      const copy = this.#current
      if (copy && !copy.isLost && copy.version >= version) return copy
      await this.#pull()
    }
    throw new EngineError('unavailable', 'The copy of a vector index cannot follow it')
  }

  /** Reads pages until the copy is current. One pull at a time. */
  #pull(): Promise<Copy> {
    this.#pulling ??= this.#pullPages().finally(() => {
      this.#pulling = null
    })
    return this.#pulling
  }

  async #pullPages(): Promise<Copy> {
    for (;;) {
      const copy = await this.#takeCopy()
      if (await this.#catchUp(copy)) return copy
    }
  }

  async #takeCopy(): Promise<Copy> {
    if (this.#isClosed) throw closing()
    if (this.#current && !this.#current.isLost) return this.#current
    this.#copies.checkRefusal(this.#index.name)
    this.#current = await this.#openCopy()
    return this.#current
  }

  /** False if the copy had to be dropped, because the source no longer knows the deletions since its version. */
  async #catchUp(copy: Copy): Promise<boolean> {
    copy.uses += 1
    try {
      for (;;) {
        const page = await this.#index.source.readChanges(copy.version, copy.begun, this.#rowsPerPage)
        if (page ? !page.isLast && page.version <= copy.version : copy.version === 0)
          throw new Error(`The source of the vector index ${this.#index.name} does not end`)
        if (!page) {
          this.#copies.drop(copy)
          return false
        }
        await this.#applyPage(copy, page)
        if (page.isLast) return true
      }
    } catch (error) {
      // A copy with part of a page, or without a thread, is unusable.
      this.#copies.drop(copy)
      throw error
    } finally {
      copy.uses -= 1
    }
  }

  async #applyPage(copy: Copy, page: VectorPage): Promise<void> {
    const rows = packRows(page.rows, this.#index.dimensions)
    const moved = [rows.keys.buffer, rows.isGone.buffer, rows.values.buffer]
    const task = { task: 'apply', copy: copy.id, rows, isCurrent: page.isLast } as const
    const { bytes } = await copy.thread.request(task, moved)
    if (copy.version === 0) copy.begun = page.latest
    copy.version = page.version
    this.#copies.resize(copy, bytes)
  }
}
