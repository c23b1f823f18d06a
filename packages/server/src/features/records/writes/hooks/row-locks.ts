/**
 * Serializes the requests of this node that change one row with hooks: without it, of many writers of a row each round
 * of hooks lets only one succeed. Other nodes and writes without hooks are not excluded; versions detect their changes.
 */
import { createKeyedLocks, type KeyedLocks, type Release } from '../../../../base/concurrency/keyed-locks.ts'
import { clientClosedRequest, conflict, unavailable } from '../../../../errors.ts'
import { hookedRowWaitersMax, hookedRowWaitersMaxTotal, hookedRowWaitMs } from '../../../../limits/writes.ts'
import type { HookEvent, HookRequest } from '../../../before-hooks.ts'

/** The rows that one request has locked. */
export interface LockedRows {
  /**
   * Locks the rows that the events change. Gives whether it had to wait, so that the rows may have changed. Rejects if
   * the request is aborted, 409 after `hookedRowWaitMs` in all, and 503 if too many wait.
   */
  lock(events: readonly HookEvent[]): Promise<boolean> | false
  release(): void
}

export type LockRows = (request: Pick<HookRequest, 'requestId' | 'signal'>) => LockedRows

export function createRowLocks(): LockRows {
  const locks = createKeyedLocks({ waitingMax: hookedRowWaitersMax, waitingMaxTotal: hookedRowWaitersMaxTotal })
  return (request) => new RequestLocks(locks, request)
}

const keyOf = ({ namespace, instanceId, table, row }: HookEvent): string =>
  `${namespace}\n${instanceId ?? ''}\n${table}\n${row.id}`

/** The request that caused another one through functions: ids of their requests end with that of their cause. */
const isCausedBy = (requestId: string, cause: string): boolean =>
  requestId.startsWith('fn:') && requestId.endsWith(`:${cause.replace(/^fn:\d+:/, '')}`)

class RequestLocks implements LockedRows {
  readonly #locks: KeyedLocks
  readonly #request: Pick<HookRequest, 'requestId' | 'signal'>
  readonly #held = new Map<string, Release>()
  /** The greatest key that is held. Locks are taken in the order of their keys, so that no two requests deadlock. */
  #last = ''
  #deadlineMs: number | null = null

  constructor(locks: KeyedLocks, request: Pick<HookRequest, 'requestId' | 'signal'>) {
    this.#locks = locks
    this.#request = request
  }

  lock(events: readonly HookEvent[]): Promise<boolean> | false {
    const missing = new Set(events.map(keyOf).filter((key) => !this.#held.has(key)))
    return missing.size > 0 && this.#lockMissing(missing)
  }

  async #lockMissing(missing: ReadonlySet<string>): Promise<boolean> {
    let keys = [...missing].sort()
    if ((keys[0] as string) < this.#last) {
      keys = [...this.#held.keys(), ...keys].sort()
      this.release()
    }
    let hasWaited = false
    for (const key of keys) if (await this.#take(key)) hasWaited = true
    return hasWaited
  }

  release(): void {
    for (const release of this.#held.values()) release()
    this.#held.clear()
    this.#last = ''
  }

  /** Whether it had to wait. */
  async #take(key: string): Promise<boolean> {
    const { requestId } = this.#request
    const owner = this.#locks.ownerOf(key)
    // The holder waits for its hooks, which wait for this request.
    if (owner !== null && isCausedBy(requestId, owner)) return false
    const request = this.#locks.request(key, requestId)
    if (!request) throw unavailable(1, 'Too many requests are changing this record')
    this.#held.set(key, request.release)
    this.#last = key
    if (!request.granted) return false
    await this.#wait(request.granted)
    return true
  }

  async #wait(granted: Promise<void>): Promise<void> {
    const { signal } = this.#request
    this.#deadlineMs ??= performance.now() + hookedRowWaitMs
    const failed = Promise.withResolvers<never>()
    const abort = (): void => failed.reject(clientClosedRequest())
    const timer = setTimeout(
      () => failed.reject(conflict('Too many requests are changing this record')),
      this.#deadlineMs - performance.now(),
    )
    timer.unref?.()
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    try {
      await Promise.race([granted, failed.promise])
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
  }
}
