/**
 * The sockets of this node that are in rooms on any node. Delivers messages to one of them, or to all that follow a
 * room; the room decides which sockets follow it.
 */
import { slowCheckChars, socketSlowBytes } from '../../../limits/subscriptions.ts'
import type { RoomText } from '../engine/messages/messages.ts'
import { type RoomKey, roomName } from '../engine/ports.ts'
import { type Frame, PackedDeltas } from './packed-deltas.ts'
import type { LocatedSocket } from './room-locator.ts'
import { type AnsweredSocket, WaitingAnswers } from './waiting-answers.ts'

/** How a socket receives messages: one in a frame, several in a frame as an array, or shared deltas in MessagePack. */
export type Delivery = 'plain' | 'multi' | 'packed'

/** A socket and the room that it was opened for. */
export interface RoomSocket extends AnsweredSocket, LocatedSocket {
  delivery: Delivery
}

export interface LocalMembers {
  enter(socket: RoomSocket): void
  /** Lets the answers to actions of a socket wait for the next tick. */
  batch(socket: RoomSocket): void
  leave(socket: RoomSocket): void
  find(connectionId: string): RoomSocket | null
  send(socket: RoomSocket, texts: readonly RoomText[]): void
  follow(key: RoomKey, socket: RoomSocket): void
  unfollow(key: RoomKey, socket: RoomSocket): void
  /** Sends to all sockets that follow the room except those in `except`. */
  publish(key: RoomKey, texts: readonly RoomText[], except?: readonly string[]): void
  /** Sends the answers that wait. Called before each tick: the runtime writes them together with its deltas. */
  sendAnswers(): void
  /** Removes all followers of the room. */
  unfollowAll(key: RoomKey): void
}

export interface LocalMembersDeps {
  /** Sends one frame to all sockets that listen to a topic. */
  readonly publish: (topic: string, frame: Frame) => void
  /** The socket's client reads too slowly. */
  readonly onSlow: (socket: RoomSocket) => void
}

/** Local followers of one room. */
interface Followers {
  readonly sockets: Readonly<Record<Delivery, Set<RoomSocket>>>
  /** For the packed ones; null as long as there are none. */
  deltas: PackedDeltas | null
  /** Characters published since the followers' backlogs were last checked. */
  unchecked: number
}

const topicOf = (key: RoomKey, { delivery }: RoomSocket): string => `room-${delivery}:${roomName(key)}`

/** Of the answers of one socket. */
const ownTopicOf = ({ connection }: RoomSocket): string => `room-socket:${connection.id}`

const allOf = ({ sockets: { plain, multi, packed } }: Followers): RoomSocket[] => [...plain, ...multi, ...packed]

/** One frame with all of the messages, for clients with the capability `multi`. */
const asFrame = (texts: readonly RoomText[]): RoomText =>
  texts.length === 1 ? (texts[0] as RoomText) : (`[${texts.join()}]` as RoomText)

/** How to send a frame to all sockets of a group; null for an empty group. */
function publisherOf(
  key: RoomKey,
  group: ReadonlySet<RoomSocket>,
  publish: LocalMembersDeps['publish'],
): ((frame: Frame) => void) | null {
  const [only] = group
  if (!only) return null
  if (group.size === 1)
    return (frame) => (typeof frame === 'string' ? only.connection.send(frame) : only.connection.sendBytes(frame))
  const topic = topicOf(key, only)
  return (frame) => publish(topic, frame)
}

export function createLocalMembers({ publish, onSlow }: LocalMembersDeps): LocalMembers {
  const sockets = new Map<string, RoomSocket>()
  const rooms = new Map<string, Followers>()
  const waiting = new WaitingAnswers<RoomSocket>((socket, answers) => {
    const topic = ownTopicOf(socket)
    // What is published in one turn of the event loop is written at once, in order.
    if (socket.delivery === 'multi') publish(topic, asFrame(answers))
    else for (const text of answers) publish(topic, text)
  })

  function checkBacklog(socket: RoomSocket): void {
    if (socket.isSlow || socket.connection.buffered <= socketSlowBytes) return
    socket.isSlow = true
    onSlow(socket)
  }

  function send(socket: RoomSocket, texts: readonly RoomText[]): void {
    const [first] = texts
    if (first === undefined) return
    if (socket.answers) {
      if (waiting.add(socket, socket.answers, first)) return
      waiting.sendOf(socket)
    }
    if (socket.delivery === 'multi') socket.connection.send(asFrame(texts))
    else for (const text of texts) socket.connection.send(text)
    checkBacklog(socket)
  }

  function publishToAll(key: RoomKey, followers: Followers, texts: readonly RoomText[]): void {
    const { sockets: groups, deltas } = followers
    const toPlain = publisherOf(key, groups.plain, publish)
    if (toPlain) for (const text of texts) toPlain(text)
    publisherOf(key, groups.multi, publish)?.(asFrame(texts))
    const toPacked = publisherOf(key, groups.packed, publish)
    if (toPacked) for (const text of texts) deltas?.send(text, toPacked)
  }

  function unfollow(key: RoomKey, socket: RoomSocket): void {
    waiting.sendOf(socket)
    const name = roomName(key)
    const followers = rooms.get(name)
    if (!followers) return
    if (!followers.sockets[socket.delivery].delete(socket)) return
    socket.connection.unsubscribe(topicOf(key, socket))
    if (followers.sockets.packed.size === 0) followers.deltas = null
    if (Object.values(followers.sockets).every(({ size }) => size === 0)) rooms.delete(name)
  }

  return {
    enter: (socket) => void sockets.set(socket.connection.id, socket),
    batch(socket) {
      socket.answers = []
      socket.connection.subscribe(ownTopicOf(socket))
    },
    leave(socket) {
      unfollow(socket.key, socket)
      sockets.delete(socket.connection.id)
    },
    find: (connectionId) => sockets.get(connectionId) ?? null,
    send,
    follow(key, socket) {
      const name = roomName(key)
      let followers = rooms.get(name)
      if (!followers) {
        const groups = { plain: new Set<RoomSocket>(), multi: new Set<RoomSocket>(), packed: new Set<RoomSocket>() }
        followers = { sockets: groups, deltas: null, unchecked: 0 }
        rooms.set(name, followers)
      }
      followers.sockets[socket.delivery].add(socket)
      if (socket.delivery === 'packed') {
        followers.deltas ??= new PackedDeltas()
        socket.connection.sendBytes(followers.deltas.table())
      }
      socket.connection.subscribe(topicOf(key, socket))
    },
    unfollow,
    publish(key, texts, except = []) {
      const name = roomName(key)
      const followers = rooms.get(name)
      if (!followers || texts.length === 0) return
      waiting.sendOfRoom(name)
      if (except.length > 0) {
        const left = new Set(except)
        for (const socket of allOf(followers)) if (!left.has(socket.connection.id)) send(socket, texts)
        return
      }
      publishToAll(key, followers, texts)
      for (const text of texts) followers.unchecked += text.length
      if (followers.unchecked < slowCheckChars) return
      followers.unchecked = 0
      for (const socket of allOf(followers)) checkBacklog(socket)
    },
    sendAnswers: () => waiting.sendAll(),
    unfollowAll(key) {
      const followers = rooms.get(roomName(key))
      if (!followers) return
      for (const socket of allOf(followers)) unfollow(key, socket)
    },
  }
}
