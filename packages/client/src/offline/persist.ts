/** The feature `persist`: optimistic writes wait on the device for the server, and live lists start with rows. */
import type { SessionKeeper } from '../auth/session.ts'
import type { Core } from '../core/core.ts'
import { failure } from '../core/error.ts'
import type { Feature } from '../core/feature.ts'
import { createListeners } from '../core/listeners.ts'
import { pageLifecycle } from '../core/socket.ts'
import type { LiveParts } from '../live/live.ts'
import type { LiveQuery } from '../live/live-query.ts'
import type { RecordWrite, WriteQueue } from '../live/optimistic.ts'
import type { PersistOptions } from '../types/offline.ts'
import { createLists } from './list-cache.ts'
import { UserQueue } from './queue.ts'
import { openStore } from './store.ts'

/** What is kept for one user. */
interface Scope {
  readonly user: string
  readonly queue: UserQueue
  readonly lists: ReturnType<typeof createLists>
}

type Show = (write: RecordWrite, answer: Promise<unknown>) => void

/** What optimistic writes use. */
const createQueue = (scope: () => Promise<Scope>, show: Show): WriteQueue => ({
  add(write, options = {}) {
    const adding = scope().then(({ queue }) => queue.add(write, options))
    show(
      write,
      adding.then(({ answer }) => answer.promise),
    )
    const { operation, id, data } = write
    return new Promise((resolve, reject) => {
      adding.then(({ accepted, answer }) => {
        accepted.promise.then(() => resolve(operation === 'delete' ? undefined : { id, ...data }))
        answer.promise.then(resolve, reject)
      }, reject)
    })
  },
})

function installPersist(core: Core, { onReject, userId }: PersistOptions): object {
  const { getToken, lifecycle = pageLifecycle } = core.options
  if (getToken && !userId) throw failure('invalid-input', '`persist` needs `userId` beside `getToken`')
  const listeners = createListeners()
  const opening = openStore(core)
  let current: Scope | undefined
  let isClosed = false
  let pending = 0
  const keeper = () => (core.credentials ?? {}) as Partial<SessionKeeper>
  const userOf = (): string => (userId ? userId() : keeper().session?.user.id) ?? ''
  const changed = (): void => {
    const size = current?.queue.size ?? 0
    if (size === pending) return
    pending = size
    listeners.emit()
  }
  const leave = (): void => {
    current?.queue.leave()
    current?.lists.leave()
    current = undefined
    changed()
  }
  const flush = (): void => void current?.queue.flush().catch(() => undefined)
  /** Shows a write in the live lists until it is answered. */
  const show: Show = (write, answer) => {
    core
      .part<LiveParts>('live')
      .show(write, answer)
      .catch(() => undefined)
  }
  // To the other tabs: what is stored has changed.
  const { BroadcastChannel: Channel } = globalThis as Partial<typeof globalThis>
  const channel = Channel && new Channel(`plinth:${core.url}:offline`)
  if (channel) channel.onmessage = () => void current?.queue.change().then(flush, () => undefined)

  const openScope = async (): Promise<Scope> => {
    const store = await opening
    await keeper().ready
    if (isClosed) throw failure('aborted')
    const user = userOf()
    if (current?.user === user) return current
    leave()
    const queue = new UserQueue(core, store, user, {
      show,
      // What it throws is the application's, and does not concern the queue.
      reject: (write) => queueMicrotask(() => onReject?.(write)),
      changed,
      stored: () => channel?.postMessage(null),
      isCurrent: () => !isClosed && userOf() === user,
    })
    current = { user, queue, lists: createLists(store, user) }
    const scope = current
    await queue.change().catch(() => undefined)
    flush()
    return scope
  }
  // The other features are installed by then.
  let scope = Promise.resolve().then(openScope)
  scope.catch(() => undefined)

  /** Gives a live list the rows of the last visit, and keeps those that it has. */
  const cache = async (list: LiveQuery): Promise<void> => {
    // Not in the moment in which the user changes.
    await undefined
    const { lists } = await scope
    if (lists === current?.lists) await lists.keep(list)
  }
  Object.assign(core.parts, {
    queue: createQueue(() => scope, show),
    cache: (list: LiveQuery) => void cache(list).catch(() => undefined),
  })

  core.identity.add(() => {
    if (current && current.user !== userOf()) leave()
    scope = scope.then(openScope, openScope)
    scope.catch(() => undefined)
  })
  const stopLifecycle = lifecycle((event) => event === 'wake' && flush())
  core.closing.add(() => {
    stopLifecycle()
    isClosed = true
    leave()
    channel?.close()
  })
  return {
    offline: {
      get pending() {
        return pending
      },
      subscribe: listeners.add,
      flush: async () => (await scope).queue.flush(),
      discard: async () => (await scope).queue.discard(),
    },
  }
}

/**
 * Keeps optimistic writes on the device until the server has answered them, also across restarts, and shows live lists
 * with the rows of the last visit. Needs `records` and `live`.
 */
export const persist =
  (options: PersistOptions = {}): Feature =>
  (core) =>
    installPersist(core, options)
