/** The copies of all indexes and their total memory: evicts idle copies, and refuses an index that does not fit. */
import type { Log } from '../../base/log.ts'
import { vectorCopyIdleMs, vectorMemoryBytesMax, vectorRefusalMs } from '../../limits/resources.ts'
import { EngineError } from '../sql/error.ts'
import type { VectorThread } from './pool.ts'

/** The copy of an index in a thread. */
export interface Copy {
  readonly id: number
  /** Name of the index. */
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

export interface CopiesOptions {
  readonly log: Log
  /** Bound on the memory of all copies together. */
  readonly memoryBytesMax?: number
  /** See `vectorCopyIdleMs`. */
  readonly copyIdleMs?: number
}

export class Copies {
  readonly #log: Log
  readonly #bytesMax: number
  readonly #idleMs: number
  readonly #copies = new Set<Copy>()
  readonly #refusedUntilMs = new Map<string, number>()

  constructor({ log, memoryBytesMax, copyIdleMs }: CopiesOptions) {
    this.#log = log
    this.#bytesMax = memoryBytesMax ?? vectorMemoryBytesMax
    this.#idleMs = copyIdleMs ?? vectorCopyIdleMs
  }

  /** Adds an empty copy. */
  add({ id, name, thread }: Pick<Copy, 'id' | 'name' | 'thread'>): Copy {
    const usedMs = performance.now()
    const copy: Copy = { id, name, thread, version: 0, begun: 0, bytes: 0, uses: 0, usedMs, isLost: false }
    this.#copies.add(copy)
    return copy
  }

  /** Accounts for the copy's growth, evicting idle copies. Throws `EngineError` when there is not enough memory. */
  resize(copy: Copy, bytes: number): void {
    copy.bytes = bytes
    const idle = this.#findIdle(copy)
    while (this.#bytes > this.#bytesMax) {
      const oldest = idle.shift()
      if (!oldest) {
        this.#refusedUntilMs.set(copy.name, performance.now() + vectorRefusalMs)
        throw this.#tooLarge()
      }
      this.#log.warn('vector.index_evicted', { index: oldest.name, to: copy.name })
      this.drop(oldest)
    }
    this.#refusedUntilMs.delete(copy.name)
  }

  drop(copy: Copy): void {
    if (copy.isLost) return
    copy.isLost = true
    this.#copies.delete(copy)
    copy.thread.copies -= 1
    // A thread that ended has lost the copy already.
    copy.thread.request({ task: 'drop', copy: copy.id }).catch(() => {})
  }

  /** Throws while an index that did not fit must not be retried. */
  checkRefusal(name: string): void {
    if ((this.#refusedUntilMs.get(name) ?? 0) > performance.now()) throw this.#tooLarge()
  }

  get #bytes(): number {
    let sum = 0
    for (const { bytes } of this.#copies) sum += bytes
    return sum
  }

  /** Least recently used first. */
  #findIdle(except: Copy): Copy[] {
    const idleSinceMs = performance.now() - this.#idleMs
    return [...this.#copies]
      .filter((copy) => copy !== except && copy.uses === 0 && copy.usedMs <= idleSinceMs)
      .sort((one, other) => one.usedMs - other.usedMs)
  }

  #tooLarge(): EngineError {
    return new EngineError('unavailable', `The vector indexes in use need more than ${this.#bytesMax} bytes of memory`)
  }
}
