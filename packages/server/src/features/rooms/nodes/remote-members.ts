/** Sockets of other nodes that are in rooms on this node, and the nodes that follow each room. */
import { type RoomKey, roomName } from '../engine/ports.ts'

/** A socket of another node. */
export interface RemoteMember {
  readonly node: string
  readonly key: RoomKey
}

export interface RemoteMembers {
  find(connectionId: string): RemoteMember | undefined
  add(connectionId: string, member: RemoteMember): void
  remove(connectionId: string): void
  /** The sockets of a node, or of all nodes for null. */
  of(node: string | null): readonly (readonly [connectionId: string, RemoteMember])[]
  inRoom(key: RoomKey): readonly (readonly [connectionId: string, RemoteMember])[]
  follow(connectionId: string, member: RemoteMember): void
  unfollow(connectionId: string, member: RemoteMember): void
  /** Nodes with at least one socket that follows the room. */
  nodesFollowing(key: RoomKey): Iterable<string>
}

export function createRemoteMembers(): RemoteMembers {
  const byConnection = new Map<string, RemoteMember>()
  const rooms = new Map<string, Map<string, RemoteMember>>()
  /** Connection ids of following sockets, by room and node. */
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
    const member = byConnection.get(connectionId)
    if (!member) return
    unfollow(connectionId, member)
    byConnection.delete(connectionId)
    const name = roomName(member.key)
    const room = rooms.get(name)
    room?.delete(connectionId)
    if (room?.size === 0) rooms.delete(name)
  }

  return {
    find: (connectionId) => byConnection.get(connectionId),
    add(connectionId, member) {
      remove(connectionId)
      byConnection.set(connectionId, member)
      const name = roomName(member.key)
      const room = rooms.get(name)
      if (room) room.set(connectionId, member)
      else rooms.set(name, new Map([[connectionId, member]]))
    },
    remove,
    of: (node) => [...byConnection].filter(([, member]) => node === null || member.node === node),
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
