/** Sockets of other nodes in rooms on this one: the node of each, and the nodes that follow a room. */
import { type RoomKey, roomName } from './engine/ports.ts'

/** A socket of another node. */
export interface RemoteMember {
  readonly node: string
  readonly key: RoomKey
}

export interface RemoteMembers {
  find(connectionId: string): RemoteMember | undefined
  add(connectionId: string, visitor: RemoteMember): void
  remove(connectionId: string): void
  /** Those of a node, or all. */
  of(node: string | null): readonly (readonly [connectionId: string, RemoteMember])[]
  inRoom(key: RoomKey): readonly (readonly [connectionId: string, RemoteMember])[]
  follow(connectionId: string, visitor: RemoteMember): void
  unfollow(connectionId: string, visitor: RemoteMember): void
  /** Nodes that have a socket which follows the room. */
  nodesFollowing(key: RoomKey): Iterable<string>
}

export function createRemoteMembers(): RemoteMembers {
  const byConnection = new Map<string, RemoteMember>()
  const rooms = new Map<string, Map<string, RemoteMember>>()
  /** Room to node to those of its sockets that follow. */
  const followers = new Map<string, Map<string, Set<string>>>()

  function unfollow(connectionId: string, { key, node }: RemoteMember): void {
    const name = roomName(key)
    const nodes = followers.get(name)
    const following = nodes?.get(node)
    if (!nodes || !following?.delete(connectionId)) return
    if (following.size === 0) nodes.delete(node)
    if (nodes.size === 0) followers.delete(name)
  }

  function remove(connectionId: string): void {
    const visitor = byConnection.get(connectionId)
    if (!visitor) return
    unfollow(connectionId, visitor)
    byConnection.delete(connectionId)
    const name = roomName(visitor.key)
    const room = rooms.get(name)
    room?.delete(connectionId)
    if (room?.size === 0) rooms.delete(name)
  }

  return {
    find: (connectionId) => byConnection.get(connectionId),
    add(connectionId, visitor) {
      remove(connectionId)
      byConnection.set(connectionId, visitor)
      const name = roomName(visitor.key)
      const room = rooms.get(name)
      if (room) room.set(connectionId, visitor)
      else rooms.set(name, new Map([[connectionId, visitor]]))
    },
    remove,
    of: (node) => [...byConnection].filter(([, visitor]) => node === null || visitor.node === node),
    inRoom: (key) => [...(rooms.get(roomName(key)) ?? [])],
    follow(connectionId, { key, node }) {
      const name = roomName(key)
      const nodes = followers.get(name) ?? new Map<string, Set<string>>()
      followers.set(name, nodes)
      const following = nodes.get(node)
      if (following) following.add(connectionId)
      else nodes.set(node, new Set([connectionId]))
    },
    unfollow,
    nodesFollowing: (key) => followers.get(roomName(key))?.keys() ?? [],
  }
}
