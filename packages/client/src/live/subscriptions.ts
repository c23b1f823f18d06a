/**
 * The subscriptions of a client, spread over as few sockets as the server's limit per socket permits. Each resumes with
 * its last cursor after a disconnect, so that it misses no change.
 */
import type { Core } from '../core/core.ts'
import { type ErrorDetails, PlinthError } from '../core/error.ts'
import { type Message, ReconnectingSocket } from '../core/socket.ts'

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
  /** Its `subscribe`, which resumes after the last cursor. */
  readonly request: { readonly channel: string; since?: unknown; readonly [member: string]: unknown }
  /**
   * `subscribed`, `db_change`, `batch_changes`, `resync`: more changed than is reported, or `down`: the connection was
   * lost.
   */
  receive(message: Message): void
  /** The server refuses the subscription. */
  reset(error: PlinthError): void
}

function createLiveSocket(core: Core) {
  const channels = new Map<unknown, Subscriber>()
  const socket = new ReconnectingSocket(core, '/api/db/subscribe', {
    onReady() {
      for (const { request } of channels.values()) socket.send(request)
    },
    onMessage(message) {
      // The answer to another attempt has the reason.
      for (const channel of (message.revokedChannels ?? []) as string[]) subscribe(channel)
      for (const channel of (message.changedChannels ?? []) as string[]) deliver({ channel, type: 'resync' })
      deliver(message)
    },
    onDown() {
      for (const subscriber of channels.values()) subscriber.receive({ type: 'down' })
    },
  })

  function subscribe(channel: unknown): void {
    const subscriber = channels.get(channel)
    if (subscriber) socket.send(subscriber.request)
  }

  function deliver(message: Message): void {
    const { channel, type } = message
    const subscriber = channels.get(channel)
    if (!subscriber) return
    if (message.cursor) subscriber.request.since = message.cursor
    const error = type === 'error' && new PlinthError(message as Message & ErrorDetails)
    if (!error) subscriber.receive(message)
    else if (error.retryable) setTimeout(subscribe, busyWaitMs, channel)
    else subscriber.reset(error)
  }

  return {
    channels,
    /** Returns the function that ends the subscription. Throws if the runtime has no WebSocket. */
    add(subscriber: Subscriber): () => void {
      socket.start()
      const { channel } = subscriber.request
      channels.set(channel, subscriber)
      subscribe(channel)
      return () => {
        channels.delete(channel)
        if (channels.size > 0) socket.send({ type: 'unsubscribe', channel })
        else socket.stop()
      }
    },
  }
}

type LiveSocket = ReturnType<typeof createLiveSocket>

/** Adds a subscription; returns the function that ends it. */
export type Subscribe = (subscriber: Subscriber) => () => void

export function createSubscribe(core: Core): Subscribe {
  const sockets = new Set<LiveSocket>()
  return (subscriber) => {
    // A socket has each channel once.
    const isFree = ({ channels }: LiveSocket) =>
      channels.size < channelsPerSocket && !channels.has(subscriber.request.channel)
    const socket = [...sockets].find(isFree) ?? createLiveSocket(core)
    sockets.add(socket)
    return socket.add(subscriber)
  }
}
