/** Room sockets for tests over WebSockets, and the state as a client keeps it. */
import { type Client, type HeaderList, query } from '../client.ts'
import { type Message, openSocket, type TestSocket } from '../socket.ts'

/** A server in this process or in another. */
export interface RoomServer {
  readonly url: string
  token(userId: string): Promise<string>
}

export interface JoinOptions {
  readonly namespace?: string
  readonly id?: string
  readonly headers?: HeaderList
  /** Members of `auth` besides the token. */
  readonly auth?: Readonly<Record<string, unknown>>
  /** Members of the `join`. */
  readonly join?: Readonly<Record<string, unknown>>
}

export interface RoomClient extends TestSocket {
  readonly connectionId: string
  /** The `sync` or `resumed` that answered the join, and the `members_sync` after it. */
  readonly sync: Message
  readonly members: Message
  /** Runs an action; resolves with its response. Earlier messages are in `passed`. */
  act(actionType: string, payload?: unknown, requestId?: string): Promise<Message>
  /** Sends an action without waiting; returns its `requestId`. */
  begin(actionType: string, payload?: unknown, requestId?: string): string
  /** The next message of a type. Earlier messages are in `passed`. */
  nextOf(type: string): Promise<Message>
  /** Messages that were skipped. */
  readonly passed: Message[]
}

/** Headers of an upgrade, for requests that are expected to be rejected. */
export const upgrade = { connection: 'Upgrade', upgrade: 'websocket' }

export const roomPath = (namespace: string, id: string): string => `/api/room${query({ namespace, id })}`

let requests = 0

/** Opens a room socket and authenticates, without joining. */
export async function enter(server: RoomServer, userId: string, options: JoinOptions = {}): Promise<RoomClient> {
  const { namespace = 'game', id = 'one', auth = {}, headers = {} } = options
  const socket = await openSocket(server.url, roomPath(namespace, id), headers)
  const passed: Message[] = []
  socket.send({ type: 'auth', token: await server.token(userId), ...auth })
  const { connectionId } = await socket.expect('auth_success')
  async function until(isLast: (message: Message) => boolean): Promise<Message> {
    const messages = await socket.until(isLast)
    passed.push(...messages.slice(0, -1))
    return messages.at(-1)
  }
  const begin = (actionType: string, payload?: unknown, requestId = `r${++requests}`): string => {
    socket.send({ type: 'send', actionType, payload, requestId })
    return requestId
  }
  return Object.assign(socket, {
    connectionId,
    passed,
    sync: undefined,
    members: undefined,
    begin,
    act(actionType: string, payload?: unknown, requestId?: string) {
      const sent = begin(actionType, payload, requestId)
      return until((message) => message.requestId === sent)
    },
    nextOf: (type: string) => until((message) => message.type === type),
  })
}

/** Opens a room socket and joins; rejects if the join is denied. */
export async function join(server: RoomServer, userId: string, options: JoinOptions = {}): Promise<RoomClient> {
  const client = await enter(server, userId, options)
  client.send({ type: 'join', ...options.join })
  const sync = await client.next()
  if (sync.type !== 'sync' && sync.type !== 'resumed') throw new Error(`the join was denied: ${JSON.stringify(sync)}`)
  return Object.assign(client, { sync, members: await client.nextOf('members_sync') })
}

/** Applies a delta to a state: dot paths to values, null deletes. */
// biome-ignore lint/suspicious/noExplicitAny: states are arbitrary JSON.
export function applyDelta(state: any, delta: Readonly<Record<string, unknown>>): any {
  for (const [path, value] of Object.entries(delta)) {
    const keys = path.split('.')
    const last = keys.pop() as string
    let at = state
    for (const key of keys) at = at[key] ??= {}
    if (value === null) delete at[last]
    else at[last] = value
  }
  return state
}

/** The shared state of a client, from `sync` and the deltas in `passed`. */
export function stateOf({ sync, passed }: RoomClient): unknown {
  const state = structuredClone(sync.sharedState)
  for (const message of passed) if (message.type === 'shared_delta') applyDelta(state, message.delta)
  return state
}

let rooms = 0

/** The id of a room that no other test uses. */
export const newRoomId = (): string => `room-${rooms++}`

/** Repeats an action until it succeeds, as a client does without a response. Returns the result. */
export async function insist(client: RoomClient, actionType: string, requestId: string): Promise<unknown> {
  for (let tries = 0; tries < 200; tries++) {
    client.begin(actionType, {}, requestId)
    const response = client.until((message) => message.requestId === requestId)
    const answer = await Promise.race([response, new Promise<null>((resolve) => setTimeout(resolve, 250, null))])
    const last = answer?.at(-1)
    if (last?.type === 'action_result') return last.result
  }
  throw new Error('the action never succeeded')
}

/** Acts until all earlier acknowledged actions are saved: until a save has started after another one completed. */
export async function untilSaved(owner: { readonly service: Client }, act: () => Promise<unknown>): Promise<void> {
  const saves = async (): Promise<number> => {
    const { text } = await owner.service.get('/metrics')
    const [, count] = /rooms_saves_total (\d+)$/m.exec(text) ?? []
    if (count === undefined) throw new Error('the metric rooms_saves_total is missing')
    return Number(count)
  }
  const before = await saves()
  while ((await saves()) < before + 2) await act()
}
