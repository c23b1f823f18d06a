/** Exclusive locks by key, in this process. Each key is granted in the order in which it was requested. */

/** Ends a hold of a key, or a wait for it. Repeated calls do nothing. */
export type Release = () => void

export interface LockRequest {
  /** Resolves when the caller holds the key; null if it holds it at once. */
  readonly granted: Promise<void> | null
  readonly release: Release
}

export interface KeyedLocks {
  /** Null if the bounds of the queues are reached. */
  request(key: string, owner: string): LockRequest | null
  /** Who holds a key; null if it is free. */
  ownerOf(key: string): string | null
  /** Keys that are held, for tests. */
  readonly size: number
}

interface Waiter {
  readonly owner: string
  readonly grant: () => void
}

interface Queue {
  owner: string
  /** In the order of the requests. */
  readonly waiting: Set<Waiter>
}

/** `waitingMax` bounds the requests that wait for one key, `waitingMaxTotal` those that wait for any. */
export function createKeyedLocks({
  waitingMax,
  waitingMaxTotal,
}: {
  readonly waitingMax: number
  readonly waitingMaxTotal: number
}): KeyedLocks {
  const queues = new Map<string, Queue>()
  let waitingTotal = 0

  function remove(queue: Queue, waiter: Waiter): boolean {
    const isWaiting = queue.waiting.delete(waiter)
    if (isWaiting) waitingTotal -= 1
    return isWaiting
  }

  function passOn(key: string, queue: Queue): void {
    const [next] = queue.waiting
    if (!next) return void queues.delete(key)
    remove(queue, next)
    queue.owner = next.owner
    next.grant()
  }

  const once = (work: () => void): Release => {
    let isDone = false
    return () => {
      if (isDone) return
      isDone = true
      work()
    }
  }

  return {
    request(key, owner) {
      const queue = queues.get(key)
      if (!queue) {
        const created = { owner, waiting: new Set<Waiter>() }
        queues.set(key, created)
        return { granted: null, release: once(() => passOn(key, created)) }
      }
      if (queue.waiting.size >= waitingMax || waitingTotal >= waitingMaxTotal) return null
      const { promise: granted, resolve: grant } = Promise.withResolvers<void>()
      const waiter = { owner, grant }
      queue.waiting.add(waiter)
      waitingTotal += 1
      return {
        granted,
        release: once(() => {
          if (!remove(queue, waiter)) passOn(key, queue)
        }),
      }
    },
    ownerOf: (key) => queues.get(key)?.owner ?? null,
    get size() {
      return queues.size
    },
  }
}
