/**
 * The sockets of this node that are in rooms on any node. Delivers messages to one of them, or to all that follow a
 * room; the room decides which sockets follow it.
 */
import type { Connection } from '../../../http/sockets/socket-handler.ts'
import { slowCheckChars, socketSlowBytes } from '../../../limits/subscriptions.ts'
import type { RoomText } from '../engine/messages/messages.ts'
import { type RoomKey, roomName } from '../engine/ports.ts'
import type { RoomServerMessage } from '../protocol.ts'

/** A socket and the room that it was opened for. */
export interface RoomSocket {
  readonly connection: Connection<RoomServerMessage>
  readonly key: RoomKey
  /** Whether several messages may be sent in one frame, as an array. */
  isMulti: boolean
  /** Whether the room was notified that the socket is slow, and not yet that it has drained. */
  isSlow: boolean
}

export interface LocalMembers {
  enter(socket: RoomSocket): void
  leave(socket: RoomSocket): void
  find(connectionId: string): RoomSocket | null
  send(socket: RoomSocket, texts: readonly RoomText[]): void
  follow(key: RoomKey, socket: RoomSocket): void
  unfollow(key: RoomKey, socket: RoomSocket): void
  /** Sends to all sockets that follow the room except those in `except`. */
  publish(key: RoomKey, texts: readonly RoomText[], except?: readonly string[]): void
  /** Removes all followers of the room. */
  unfollowAll(key: RoomKey): void
}

export interface LocalMembersDeps {
  /** Sends one text to all sockets that listen to a topic. */
  readonly publish: (topic: string, text: RoomText) => void
  /** The socket's client reads too slowly. */
  readonly onSlow: (socket: RoomSocket) => void
}

/** Local followers of one room, by capability. */
interface Followers {
  readonly plain: Set<RoomSocket>
  readonly multi: Set<RoomSocket>
  /** Characters published since the followers' backlogs were last checked. */
  unchecked: number
}

const topicOf = (key: RoomKey, { isMulti }: { isMulti: boolean }): string =>
  `${isMulti ? 'rooms' : 'room'}:${roomName(key)}`

/** One frame with all of the messages, for clients with the capability `multi`. */
const asFrame = (texts: readonly RoomText[]): RoomText =>
  texts.length === 1 ? (texts[0] as RoomText) : (`[${texts.join()}]` as RoomText)

export function createLocalMembers({ publish, onSlow }: LocalMembersDeps): LocalMembers {
  const sockets = new Map<string, RoomSocket>()
  const rooms = new Map<string, Followers>()

  function checkBacklog(socket: RoomSocket): void {
    if (socket.isSlow || socket.connection.buffered <= socketSlowBytes) return
    socket.isSlow = true
    onSlow(socket)
  }

  function send(socket: RoomSocket, texts: readonly RoomText[]): void {
    if (texts.length === 0) return
    let isBuffered = false
    if (socket.isMulti) isBuffered = socket.connection.send(asFrame(texts))
    else for (const text of texts) isBuffered = socket.connection.send(text)
    if (isBuffered) checkBacklog(socket)
  }

  function publishTo(key: RoomKey, group: ReadonlySet<RoomSocket>, frames: readonly RoomText[]): void {
    const [only] = group
    if (!only) return
    if (group.size === 1) return void frames.map((frame) => only.connection.send(frame))
    const topic = topicOf(key, only)
    for (const frame of frames) publish(topic, frame)
  }

  function unfollow(key: RoomKey, socket: RoomSocket): void {
    const name = roomName(key)
    const followers = rooms.get(name)
    if (!followers) return
    const group = socket.isMulti ? followers.multi : followers.plain
    if (!group.delete(socket)) return
    socket.connection.unsubscribe(topicOf(key, socket))
    if (followers.plain.size + followers.multi.size === 0) rooms.delete(name)
  }

  return {
    enter: (socket) => void sockets.set(socket.connection.id, socket),
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
        followers = { plain: new Set(), multi: new Set(), unchecked: 0 }
        rooms.set(name, followers)
      }
      const group = socket.isMulti ? followers.multi : followers.plain
      group.add(socket)
      socket.connection.subscribe(topicOf(key, socket))
    },
    unfollow,
    publish(key, texts, except = []) {
      const followers = rooms.get(roomName(key))
      if (!followers || texts.length === 0) return
      const { plain, multi } = followers
      if (except.length > 0) {
        const left = new Set(except)
        for (const socket of [...plain, ...multi]) if (!left.has(socket.connection.id)) send(socket, texts)
        return
      }
      publishTo(key, plain, texts)
      publishTo(key, multi, [asFrame(texts)])
      for (const text of texts) followers.unchecked += text.length
      if (followers.unchecked < slowCheckChars) return
      followers.unchecked = 0
      for (const socket of [...plain, ...multi]) checkBacklog(socket)
    },
    unfollowAll(key) {
      const followers = rooms.get(roomName(key))
      if (!followers) return
      for (const socket of [...followers.plain, ...followers.multi]) unfollow(key, socket)
    },
  }
}
