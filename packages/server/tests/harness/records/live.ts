/** Subscriptions as tests use them: sockets of one table, authenticated and subscribed in a line. */
import { query } from '../client.ts'
import { type Message, openSocket, type TestSocket } from '../socket.ts'

export interface WatchOptions {
  /** The table of the URL; default `items` in `shared`. */
  readonly channel?: string
  readonly token?: string
  readonly key?: string
  /** Members of a `subscribe`, which is sent unless this is null; then only the socket is opened. */
  readonly subscribe?: Readonly<Record<string, unknown>> | null
}

export const itemsChannel = 'dblive:shared:items'

export interface Watching extends TestSocket {
  /** The `subscribed` of the first subscription; undefined where none was asked for. */
  readonly subscribed: Message
}

/** Opens a socket of a channel, says who is there, and subscribes. */
export async function watch(serverUrl: string, options: WatchOptions = {}): Promise<Watching> {
  const { channel = itemsChannel, token, key, subscribe = {} } = options
  const headers = key === undefined ? {} : { 'x-platform-service-key': key }
  const socket = await openSocket(serverUrl, `/api/db/subscribe${query({ channel })}`, headers)
  let subscribed: Message
  if (token !== undefined) {
    socket.send({ type: 'auth', token })
    await socket.expect('auth_success')
  }
  // The channel of the URL is subscribed to by itself once it is known who is there.
  if (token !== undefined || key !== undefined) subscribed = await socket.expect('subscribed')
  const isAsked = subscribe !== null && (subscribed === undefined || Object.keys(subscribe).length > 0)
  if (isAsked) {
    socket.send({ type: 'subscribe', channel, ...subscribe })
    subscribed = await socket.expect('subscribed')
  }
  return Object.assign(socket, { subscribed })
}

/** The parts of change messages that tests compare: what it was, to which record, and what it is now. */
export const changeOf = ({ changeType, docId, data }: Message): unknown[] => [changeType, docId, data]

/** Every change in messages, batches included, in order. */
export const changesIn = (messages: readonly Message[]): Message[] =>
  messages.flatMap((message) =>
    message.type === 'batch_changes' ? message.changes : message.type === 'db_change' ? [message] : [],
  )

/** Applies changes to a view as a client keeps it. */
export function applyChanges(view: Map<string, Message>, messages: readonly Message[]): void {
  for (const { changeType, docId, data } of changesIn(messages))
    if (changeType === 'removed') view.delete(docId)
    else view.set(docId, data)
}
