/** The feature `persist`: optimistic writes wait on the device for the server, and live lists start with rows. */
import type { SessionKeeper } from '../auth/session.ts'
import type { Core } from '../core/core.ts'
import { deferred } from '../core/deferred.ts'
import { failure } from '../core/error.ts'
import type { Feature } from '../core/feature.ts'
import { createListeners } from '../core/listeners.ts'
import { pageLifecycle } from '../core/socket.ts'
import type { LiveParts } from '../live/live.ts'
import type { RecordWrite, WriteQueue } from '../live/optimistic.ts'
import type { Row } from '../records/query.ts'
import type { PersistOptions } from '../types/offline.ts'
import { type ListCache, UserLists } from './list-cache.ts'
import { UserQueue } from './queue.ts'
import { openStore, type Store } from './store.ts'

/** What is kept for one user. */
interface Scope {
  readonly user: string
  readonly queue: UserQueue
  readonly lists: UserLists
}

/** Shows a write in the live lists until it is answered. */
function show(core: Core, write: RecordWrite, answer: Promise<unknown>): void {
  core
    .part<LiveParts>('live')
    .show(write, answer)
    .catch(() => undefined)
}

/** What live lists and optimistic writes use. */
function offerParts(core: Core, user: { scope(): Promise<Scope>; current(): Scope | undefined }): void {
  const queue: WriteQueue = {
    async add(write: RecordWrite, options = {}) {
      const waiter = { answer: deferred<Row | undefined>(), accepted: deferred<unknown>() }
      waiter.answer.promise.catch(waiter.accepted.reject)
      show(core, write, waiter.answer.promise)
      const { queue } = await user.scope()
      queue.add(write, options, waiter)
      return waiter.accepted.promise
    },
  }
  const cache: ListCache = {
    async get(key) {
      // Not in the moment in which the user changes.
      await undefined
      const { lists } = await user.scope()
      return lists === user.current()?.lists ? lists.get(key) : undefined
    },
    save: (key, take) => user.current()?.lists.save(key, take),
    remove: (key) => user.current()?.lists.remove(key),
  }
  Object.assign(core.parts, { queue, cache })
}

function installPersist(core: Core, { onReject, userId }: PersistOptions): object {
  const { getToken, lifecycle = pageLifecycle } = core.options
  if (getToken && !userId) throw failure('invalid-input', '`persist` needs `userId` beside `getToken`')
  const listeners = createListeners()
  const opening: Promise<Store> = openStore(core)
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
  // To the other tabs: what is stored has changed.
  const { BroadcastChannel: Channel } = globalThis as Partial<typeof globalThis>
  const channel = Channel && new Channel(`plinth:${core.url}:offline`)
  if (channel) channel.onmessage = () => void current?.queue.load().then(flush, () => undefined)

  const openScope = async (): Promise<Scope> => {
    const store = await opening
    await keeper().ready
    if (isClosed) throw failure('aborted')
    const user = userOf()
    if (current?.user === user) return current
    leave()
    const queue = new UserQueue(core, store, user, {
      show: (write, answer) => show(core, write, answer),
      // What it throws is the application's, and does not concern the queue.
      reject: (write) => queueMicrotask(() => onReject?.(write)),
      changed(isStored) {
        if (isStored) channel?.postMessage(null)
        changed()
      },
      isCurrent: () => !isClosed && userOf() === user,
    })
    current = { user, queue, lists: new UserLists(store, user) }
    const scope = current
    await Promise.allSettled([queue.load(), scope.lists.load()])
    flush()
    return scope
  }
  // The other features are installed by then.
  let scope = Promise.resolve().then(openScope)
  scope.catch(() => undefined)

  offerParts(core, {
    scope: () => scope,
    current: () => current,
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
    opening.then((store) => store.close())
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
