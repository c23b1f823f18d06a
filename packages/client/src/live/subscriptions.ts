/**
 * The subscriptions of a client, spread over as few sockets as the server's limit per socket permits. Each resumes with
 * its last cursor after a disconnect, so that it misses no change.
 */
import type { Core } from '../core/core.ts'
import { PlinthError } from '../core/error.ts'
import { type Message, ReconnectingSocket } from '../core/socket.ts'
import type { Tuple } from '../records/query.ts'

/** Channels that the server allows on one socket. */
const channelsPerSocket = 100
/** How long a rejected `subscribe` waits after a rate limit, in milliseconds. */
const rateLimitWaitMs = 1_000

/** A change of a row in the subscribed view. */
export interface Change extends Message {
  readonly changeType: 'added' | 'modified' | 'removed'
  readonly docId: string
  readonly data: (Record<string, unknown> & { readonly id: string }) | null
  readonly version?: number
}

export interface Subscription {
  /** With a tag, so that a socket can subscribe to a table several times. */
  readonly channel: string
  readonly conditions: { readonly filters: readonly Tuple[]; readonly orFilters: readonly Tuple[] }
  /** `subscribed`, `db_change`, `batch_changes`, or `resync`: more changed than is reported. */
  onMessage(message: Message): void
  /** The connection was lost. */
  onDown(): void
  /** The server refuses the subscription. */
  onRefused(error: PlinthError): void
}

/** HTTP statuses and slugs of the socket's error codes. */
const refusals: Readonly<Record<string, readonly [status: number, slug: string]>> = {
  NOT_AUTHENTICATED: [401, 'authentication-required'],
  CHANNEL_ACCESS_DENIED: [403, 'access-denied'],
  INVALID_CHANNEL: [404, 'not-found'],
}

/** A channel of one socket, which queries with the same conditions share. */
interface Entry {
  readonly subscriptions: Set<Subscription>
  cursor?: unknown
  isSubscribed?: boolean
}

type LiveSocket = ReturnType<typeof createLiveSocket>

function createLiveSocket(core: Core) {
  const entries = new Map<string, Entry>()
  const socket = new ReconnectingSocket(core, '/api/db/subscribe', {
    onReady() {
      for (const channel of entries.keys()) subscribe(channel)
    },
    onMessage(message) {
      for (const channel of (message.revokedChannels ?? []) as string[]) refuse(channel, 'CHANNEL_ACCESS_DENIED')
      for (const channel of (message.changedChannels ?? []) as string[]) deliver(channel, { type: 'resync' })
      deliver(message.channel as string, message)
    },
    onDown() {
      for (const entry of entries.values()) {
        entry.isSubscribed = false
        for (const { onDown } of entry.subscriptions) onDown()
      }
    },
  })

  function subscribe(channel: string): void {
    const { subscriptions, cursor } = entries.get(channel) ?? {}
    const [first] = subscriptions ?? []
    if (first) socket.send({ type: 'subscribe', channel, ...first.conditions, since: cursor })
  }

  function deliver(channel: string, message: Message): void {
    const { type, cursor, code } = message
    const entry = entries.get(channel)
    if (!entry) return
    if (type === 'error') {
      if (code === 'RATE_LIMITED' || code === 'UNAVAILABLE') setTimeout(() => subscribe(channel), rateLimitWaitMs)
      else refuse(channel, code as string, message.message as string)
      return
    }
    entry.cursor = cursor ?? entry.cursor
    entry.isSubscribed ||= type === 'subscribed'
    for (const { onMessage } of entry.subscriptions) onMessage(message)
  }

  function refuse(channel: string, code: string, message = 'Access denied'): void {
    const [status, slug] = refusals[code] ?? [400, 'invalid-input']
    for (const subscription of entries.get(channel)?.subscriptions ?? []) {
      remove(subscription)
      subscription.onRefused(new PlinthError({ status, slug, message }))
    }
  }

  function remove(subscription: Subscription): void {
    const { channel } = subscription
    const subscriptions = entries.get(channel)?.subscriptions
    if (!subscriptions?.delete(subscription) || subscriptions.size > 0) return
    entries.delete(channel)
    if (entries.size > 0) socket.send({ type: 'unsubscribe', channel })
    else socket.stop()
  }

  return {
    entries,
    socket,
    remove,
    add(subscription: Subscription): void {
      const { channel, onMessage } = subscription
      const entry = entries.get(channel)
      if (entry) {
        entry.subscriptions.add(subscription)
        if (entry.isSubscribed) onMessage({ type: 'subscribed' })
        return
      }
      entries.set(channel, { subscriptions: new Set([subscription]) })
      try {
        socket.start()
      } catch (error) {
        remove(subscription)
        subscription.onRefused(error as PlinthError)
      }
      subscribe(channel)
    },
  }
}

export type Subscriptions = ReturnType<typeof createSubscriptions>

export function createSubscriptions(core: Core) {
  const sockets: LiveSocket[] = []
  core.identity.add(() => {
    for (const { entries, socket } of sockets) {
      // What the previous user has received is not resumed.
      for (const entry of entries.values()) delete entry.cursor
      socket.restart()
    }
  })
  core.cleanups.push(() => {
    for (const { socket } of sockets) socket.stop()
  })
  return {
    add(subscription: Subscription): void {
      let found =
        sockets.find(({ entries }) => entries.has(subscription.channel)) ??
        sockets.find(({ entries }) => entries.size < channelsPerSocket)
      if (!found) {
        found = createLiveSocket(core)
        sockets.push(found)
      }
      found.add(subscription)
    },
    remove(subscription: Subscription): void {
      for (const { remove } of sockets) remove(subscription)
    },
  }
}
