/**
 * Advisory locks within this process: one transaction at a time reaches PostgreSQL's lock of a key, and the others
 * queue here without a connection. A transaction that finds a key taken is rolled back, waits for every key it is known
 * to need, and runs again. Since a transaction never waits here while it has a connection or a key, and joins the
 * queues of all its keys at once, the queues cannot deadlock.
 */
import { EngineError } from '../../sql/error.ts'

/** Thrown into a transaction that must be rolled back and run again once its keys are free. */
export class LockContention extends Error {}

/** The locks of one write, over all its attempts. */
export interface Locks {
  /** Whether the attempt found a key taken: it must be rolled back, whatever came of it. */
  readonly isContended: boolean
  /** Takes keys for the attempt in progress. Throws `LockContention` where another write has or awaits one. */
  take(keys: readonly string[]): void
  /**
   * Ends a contended attempt: releases its keys, then waits for these and the one it lacked. Rejects with `EngineError`
   * `busy` when too many writes wait for a key, or when this one has waited too long.
   */
  wait(): Promise<void>
  /** Releases every key; to be called once the write has ended. */
  release(): void
}

export interface LockQueue {
  open(): Locks
}

interface Ticket {
  readonly keys: Set<string>
  /** Called when the ticket is the first of all its queues; null while it does not wait. */
  granted: (() => void) | null
}

export interface LockQueueBounds {
  /** Writes that may wait for one key. */
  readonly waiting: number
  /** Attempts of one write that may find a key taken. */
  readonly attempts: number
  /** How long one write may wait in all. */
  readonly waitMs: number
}

export function createLockQueue(bounds: LockQueueBounds): LockQueue {
  /** By key, the writes that want it in order of arrival; the first has it, if it is the first of all its queues. */
  const queues = new Map<string, Set<Ticket>>()

  const isFirst = (ticket: Ticket, key: string): boolean => queues.get(key)?.values().next().value === ticket

  function isFirstEverywhere(ticket: Ticket): boolean {
    for (const key of ticket.keys) if (!isFirst(ticket, key)) return false
    return true
  }

  function join(ticket: Ticket, key: string): void {
    ticket.keys.add(key)
    const queue = queues.get(key)
    if (queue) queue.add(ticket)
    else queues.set(key, new Set([ticket]))
  }

  /** Leaves every queue and grants the tickets that are now first. */
  function leave(ticket: Ticket): void {
    const next = new Set<Ticket>()
    for (const key of ticket.keys) {
      const queue = queues.get(key)
      queue?.delete(ticket)
      const first = queue?.values().next().value
      if (first) next.add(first)
      else queues.delete(key)
    }
    ticket.keys.clear()
    for (const one of next) if (one.granted && isFirstEverywhere(one)) one.granted()
  }

  function waitInQueues(ticket: Ticket, keys: readonly string[], waitMs: number): Promise<void> {
    for (const key of keys)
      if ((queues.get(key)?.size ?? 0) > bounds.waiting)
        throw new EngineError('busy', 'Too many writes wait for the same lock')
    for (const key of keys) join(ticket, key)
    if (isFirstEverywhere(ticket)) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        ticket.granted = null
        leave(ticket)
        reject(new EngineError('busy', 'A write waited too long for a lock'))
      }, waitMs)
      ticket.granted = () => {
        clearTimeout(timer)
        ticket.granted = null
        resolve()
      }
    })
  }

  return {
    open() {
      const ticket: Ticket = { keys: new Set(), granted: null }
      let lacked: readonly string[] | null = null
      let attempts = 0
      let waitedMs = 0
      return {
        get isContended() {
          return lacked !== null
        },
        take(keys) {
          const more = keys.filter((key) => !ticket.keys.has(key))
          if (more.some((key) => queues.has(key))) {
            lacked = more
            throw new LockContention('Another write has the lock')
          }
          for (const key of more) join(ticket, key)
        },
        async wait() {
          const keys = [...new Set([...ticket.keys, ...(lacked ?? [])])]
          lacked = null
          leave(ticket)
          attempts += 1
          if (attempts > bounds.attempts) throw new EngineError('busy', 'Too many writes want the same locks')
          const beganMs = performance.now()
          await waitInQueues(ticket, keys, Math.max(0, bounds.waitMs - waitedMs))
          waitedMs += performance.now() - beganMs
        },
        release: () => leave(ticket),
      }
    },
  }
}
