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
  readonly filters: readonly Tuple[]
  readonly orFilters: readonly Tuple[]
  /** Subscribed from here on. If not `recovered`, the list has to be read again. */
  onSubscribed(recovered: boolean): void
  onChanges(changes: readonly Change[]): void
  /** More changed than is reported: the list has to be read again. */
  onResync(): void
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
  cursor: string | null
  isSubscribed: boolean
}

class LiveSocket {
  readonly entries = new Map<string, Entry>()
  readonly #socket: ReconnectingSocket

  constructor(core: Core) {
    this.#socket = new ReconnectingSocket(core, '/api/db/subscribe', {
      onReady: () => {
        for (const channel of this.entries.keys()) this.#subscribe(channel)
      },
      onMessage: (message) => this.#receive(message),
      onDown: () => this.#onDown(),
    })
  }

  add(subscription: Subscription): void {
    const { channel } = subscription
    const entry = this.entries.get(channel)
    if (entry) {
      entry.subscriptions.add(subscription)
      if (entry.isSubscribed) subscription.onSubscribed(false)
      return
    }
    this.entries.set(channel, { subscriptions: new Set([subscription]), cursor: null, isSubscribed: false })
    this.#socket.start()
    if (this.#socket.isReady) this.#subscribe(channel)
  }

  remove(subscription: Subscription): void {
    const { channel } = subscription
    const entry = this.entries.get(channel)
    if (!entry?.subscriptions.delete(subscription) || entry.subscriptions.size > 0) return
    this.entries.delete(channel)
    if (this.entries.size === 0) this.#socket.stop()
    else this.#socket.send({ type: 'unsubscribe', channel })
  }

  /** Connects as another user; what the previous one has received is not resumed. */
  restart(): void {
    for (const entry of this.entries.values()) Object.assign(entry, { cursor: null, isSubscribed: false })
    this.#socket.restart()
  }

  stop(): void {
    this.entries.clear()
    this.#socket.stop()
  }

  #onDown(): void {
    for (const entry of this.entries.values()) {
      entry.isSubscribed = false
      for (const { onDown } of entry.subscriptions) onDown()
    }
  }

  #subscribe(channel: string): void {
    const entry = this.entries.get(channel)
    if (!entry) return
    const { filters, orFilters } = [...entry.subscriptions][0] as Subscription
    this.#socket.send({ type: 'subscribe', channel, filters, orFilters, since: entry.cursor ?? undefined })
  }

  #receive(message: Message): void {
    for (const channel of (message.revokedChannels ?? []) as string[]) this.#refuse(channel, 'CHANNEL_ACCESS_DENIED')
    for (const channel of (message.changedChannels ?? []) as string[])
      for (const { onResync } of this.entries.get(channel)?.subscriptions ?? []) onResync()
    const channel = message.channel as string
    const entry = this.entries.get(channel)
    if (!entry) return
    if (message.type === 'error') this.#onError(channel, String(message.code), String(message.message))
    if (typeof message.cursor === 'string') entry.cursor = message.cursor
    if (message.type === 'subscribed') entry.isSubscribed = true
    for (const subscription of entry.subscriptions) deliver(subscription, message)
  }

  #onError(channel: string, code: string, text: string): void {
    if (code === 'RATE_LIMITED' || code === 'UNAVAILABLE') setTimeout(() => this.#subscribe(channel), rateLimitWaitMs)
    else this.#refuse(channel, code, text)
  }

  #refuse(channel: string, code: string, message = 'Access denied'): void {
    const [status, slug] = refusals[code] ?? [400, 'invalid-input']
    for (const subscription of this.entries.get(channel)?.subscriptions ?? []) {
      this.remove(subscription)
      subscription.onRefused(new PlinthError({ status, slug, message }))
    }
  }
}

function deliver(subscription: Subscription, message: Message): void {
  if (message.type === 'subscribed') subscription.onSubscribed(message.recovered === true)
  if (message.type === 'db_change') subscription.onChanges([message as Change])
  if (message.type === 'batch_changes') subscription.onChanges(message.changes as Change[])
  if (message.type === 'resync') subscription.onResync()
}

export class Subscriptions {
  readonly #core: Core
  readonly #sockets: LiveSocket[] = []

  constructor(core: Core) {
    this.#core = core
    core.identity.add(() => {
      for (const socket of this.#sockets) socket.restart()
    })
    core.cleanups.push(() => {
      for (const socket of this.#sockets) socket.stop()
    })
  }

  add(subscription: Subscription): void {
    const { channel } = subscription
    let socket =
      this.#sockets.find(({ entries }) => entries.has(channel)) ??
      this.#sockets.find(({ entries }) => entries.size < channelsPerSocket)
    if (!socket) {
      socket = new LiveSocket(this.#core)
      this.#sockets.push(socket)
    }
    socket.add(subscription)
  }

  remove(subscription: Subscription): void {
    for (const socket of this.#sockets) socket.remove(subscription)
  }
}
