/**
 * The subscriptions of a client, spread over as few sockets as the server's limit per socket permits. Each resumes with
 * its last cursor after a disconnect, so that it misses no change.
 */
import type { Core } from '../core/core.ts'
import { type ErrorDetails, PlinthError } from '../core/error.ts'
import { type Message, ReconnectingSocket } from '../core/socket.ts'
import type { QueryParts } from '../records/query.ts'

/** Channels that the server allows on one socket. */
const channelsPerSocket = 100
/** How long a rejected `subscribe` waits where the server is busy, in milliseconds. */
const busyWaitMs = 1_000

/** A change of a row in the subscribed view. */
export interface Change extends Message {
  readonly docId: string
  /** Null for a row that has left the view. */
  readonly data: (Record<string, unknown> & { readonly id: string }) | null
  readonly version?: number
}

export interface Subscriber {
  /** With a tag, so that a socket can subscribe to a table several times. */
  readonly channel: string
  readonly parts: QueryParts
  /**
   * `subscribed`, `db_change`, `batch_changes`, `resync`: more changed than is reported, or `down`: the connection was
   * lost.
   */
  receive(message: Message): void
  /** The server refuses the subscription. */
  refuse(error: PlinthError): void
}

/** A channel of one socket, which queries with the same conditions share. */
interface Channel {
  readonly subscribers: Set<Subscriber>
  /** The message that subscribes to it, which resumes after the last cursor. */
  readonly request: { since?: unknown; readonly [member: string]: unknown }
}

function createLiveSocket(core: Core) {
  const channels = new Map<string, Channel>()
  const socket = new ReconnectingSocket(core, '/api/db/subscribe', {
    onReady() {
      for (const name of channels.keys()) subscribe(name)
    },
    onMessage(message) {
      // The answer to another attempt has the reason.
      for (const name of (message.revokedChannels ?? []) as string[]) subscribe(name)
      for (const name of (message.changedChannels ?? []) as string[]) deliver(name, { type: 'resync' })
      deliver(message.channel as string, message)
    },
    onDown() {
      for (const name of channels.keys()) deliver(name, { type: 'down' })
    },
  })

  function subscribe(name: string): void {
    const channel = channels.get(name)
    if (channel) socket.send(channel.request)
  }

  function deliver(name: string, message: Message): void {
    const channel = channels.get(name)
    if (!channel) return
    const { subscribers, request } = channel
    const { type, cursor = request.since } = message
    request.since = cursor
    const error = type === 'error' ? new PlinthError(message as Message & ErrorDetails) : undefined
    if (error?.retryable) setTimeout(() => subscribe(name), busyWaitMs)
    else
      for (const subscriber of subscribers)
        if (error) subscriber.refuse(error)
        else subscriber.receive(message)
  }

  return {
    channels,
    /** Returns the function that ends the subscription. Throws if the runtime has no WebSocket. */
    add(subscriber: Subscriber): () => void {
      socket.start()
      const { channel: name, parts } = subscriber
      const channel = channels.get(name) ?? {
        subscribers: new Set(),
        request: { type: 'subscribe', channel: name, filters: parts.filter, orFilters: parts.orFilter },
      }
      const { subscribers } = channel
      channels.set(name, channel)
      subscribers.add(subscriber)
      // Also where others share the channel: from the answer on, this one receives changes.
      subscribe(name)
      return () => {
        subscribers.delete(subscriber)
        if (subscribers.size > 0) return
        channels.delete(name)
        if (channels.size > 0) socket.send({ type: 'unsubscribe', channel: name })
        else socket.stop()
      }
    },
  }
}

type LiveSocket = ReturnType<typeof createLiveSocket>

/** Adds a subscription; returns the function that ends it. */
export type Subscribe = (subscriber: Subscriber) => () => void

export function createSubscribe(core: Core): Subscribe {
  const sockets: LiveSocket[] = []
  return (subscriber) => {
    const isOpen = ({ channels }: LiveSocket) => channels.has(subscriber.channel) || channels.size < channelsPerSocket
    if (!sockets.some(isOpen)) sockets.push(createLiveSocket(core))
    return (sockets.find(isOpen) as LiveSocket).add(subscriber)
  }
}
