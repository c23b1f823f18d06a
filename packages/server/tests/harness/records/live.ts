/** Subscriptions for tests: opens a socket, authenticates and subscribes in one call. */
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
  /** The `subscribed` response of the first subscription; undefined without one. */
  readonly subscribed: Message
}

/** Opens a socket for a channel, authenticates, and subscribes. */
export async function watch(serverUrl: string, options: WatchOptions = {}): Promise<Watching> {
  const { channel = itemsChannel, token, key, subscribe = {} } = options
  const headers = key === undefined ? {} : { 'x-platform-service-key': key }
  const socket = await openSocket(serverUrl, `/api/db/subscribe${query({ channel })}`, headers)
  let subscribed: Message
  if (token !== undefined) {
    socket.send({ type: 'auth', token })
    await socket.expect('auth_success')
  }
  // The server subscribes to the channel of the URL after authentication.
  if (token !== undefined || key !== undefined) subscribed = await socket.expect('subscribed')
  const needsSubscribe = subscribe !== null && (subscribed === undefined || Object.keys(subscribe).length > 0)
  if (needsSubscribe) {
    socket.send({ type: 'subscribe', channel, ...subscribe })
    subscribed = await socket.expect('subscribed')
  }
  return Object.assign(socket, { subscribed })
}

/** The members of a change message that tests compare. */
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
