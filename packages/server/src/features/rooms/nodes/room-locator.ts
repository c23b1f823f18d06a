/**
 * Locates the rooms of this node's sockets (here, on another node, or unknown) and forwards commands to them in order.
 * Commands wait while the location is unknown. When a room has moved, all of its sockets join again without help of
 * the clients: each receives a `sync`.
 */
import type { Connection } from '../../../http/sockets/socket-handler.ts'
import { closeCodes } from '../../../http/sockets/socket-protocol.ts'
import {
  roomCommandsWaitingMax,
  roomFindRetriesMax,
  roomFindRetryMaxMs,
  roomFindRetryMinMs,
} from '../../../limits/rooms.ts'
import { type RoomCommand, type RoomKey, roomName } from '../engine/ports.ts'
import type { RoomServerMessage } from '../protocol.ts'

export interface RoomLocatorDeps {
  /** Delivers a command to the room on this node. */
  readonly receive: (key: RoomKey, command: RoomCommand) => void
  /** Sends a command to the room on another node. False without a connection to it. */
  readonly forward: (node: string, key: RoomKey, command: RoomCommand) => boolean
  /** The node that owned the room when this one last tried to claim it; cleared by the call. */
  readonly takeOwner: (key: RoomKey) => string | null
  /** Stops delivery of messages that the room publishes until its sockets follow it again. */
  readonly unfollowAll: (key: RoomKey) => void
}

/** `here`, a node, `leaving` during a hand-over, or null while the owner is being determined. */
type RoomLocation = 'here' | { readonly node: string } | 'leaving' | null

/** A socket and the room that it was opened for. */
export interface LocatedSocket {
  readonly connection: Connection<RoomServerMessage>
  readonly key: RoomKey
  /** Its room once it has sent a command, so that it is not looked up for each command. */
  located: LocatedRoom | null
  /** Whether the room was notified that the socket is slow, and not yet that it has drained. */
  isSlow: boolean
}

/** A room with sockets of this node. */
interface LocatedRoom {
  readonly key: RoomKey
  readonly sockets: Map<string, LocatedSocket>
  location: RoomLocation
  /** Commands received since the location was last known. */
  waiting: RoomCommand[]
  /** Attempts to locate the room since it last confirmed its location. */
  attempts: number
  retry: ReturnType<typeof setTimeout> | null
}

/** A join of a socket that has joined before. */
function rejoin(socket: LocatedSocket): RoomCommand[] {
  const { id, caller } = socket.connection
  // The new owner checks again whether the socket reads too slowly.
  socket.isSlow = false
  return caller.kind === 'user' ? [{ type: 'join', connectionId: id, auth: caller.auth, resume: null }] : []
}

/** Whether a location is `where`: `here` (also while leaving), or the node of that name. */
const isAt = (location: RoomLocation, where: string): boolean =>
  typeof location === 'object' ? location?.node === where : where === 'here' && location !== null

export class RoomLocator {
  private readonly entries = new Map<string, LocatedRoom>()
  private hasStopped = false

  constructor(private readonly deps: RoomLocatorDeps) {}

  /** Forwards a command of a socket to its room. False when too many commands wait for the room's location. */
  send(socket: LocatedSocket, command: RoomCommand): boolean {
    socket.located ??= this.enter(socket)
    if (socket.located.waiting.length >= roomCommandsWaitingMax) return false
    this.dispatch(socket.located, command)
    return true
  }

  /** The socket was closed. */
  leave(socket: LocatedSocket): void {
    const { connection, located: entry } = socket
    socket.located = null
    if (!entry?.sockets.delete(connection.id)) return
    this.dispatch(entry, { type: 'disconnect', connectionId: connection.id })
    if (entry.sockets.size === 0) this.drop(entry)
  }

  /** The room is leaving this node; commands for it wait until `moved` follows. */
  leaving(key: RoomKey): void {
    const entry = this.entries.get(roomName(key))
    if (entry?.location !== 'here') return
    this.deps.unfollowAll(key)
    entry.location = 'leaving'
  }

  /** The room has left `from`, which is `here` or a node; `waiting` are its unprocessed commands. */
  moved(key: RoomKey, from: string, waiting: readonly RoomCommand[]): void {
    const entry = this.entries.get(roomName(key))
    if (this.hasStopped) return
    if (entry && isAt(entry.location, from)) {
      this.locate(entry, waiting)
      return
    }
    // The room has been located elsewhere: its sockets have joined there, or are about to.
    this.deps.takeOwner(key)
    if (entry) for (const command of waiting) if (command.type !== 'join') this.dispatch(entry, command)
  }

  /** Messages to or from the node may be lost: the sockets of every room there join again. */
  lost(node: string): void {
    if (this.hasStopped) return
    for (const entry of [...this.entries.values()]) if (isAt(entry.location, node)) this.locate(entry, [])
  }

  /** The room has answered, which confirms its location. */
  confirm(key: RoomKey): void {
    const entry = this.entries.get(roomName(key))
    if (entry) entry.attempts = 0
  }

  /** Nodes on which rooms are located. */
  nodes(): ReadonlySet<string> {
    const found = new Set<string>()
    for (const { location } of this.entries.values())
      if (typeof location === 'object' && location) found.add(location.node)
    return found
  }

  stop(): void {
    this.hasStopped = true
    for (const entry of this.entries.values()) this.drop(entry)
  }

  private enter(socket: LocatedSocket): LocatedRoom {
    const { key, connection } = socket
    const name = roomName(key)
    let entry = this.entries.get(name)
    if (!entry) {
      entry = { key, sockets: new Map(), location: 'here', waiting: [], attempts: 0, retry: null }
      this.entries.set(name, entry)
    }
    entry.sockets.set(connection.id, socket)
    return entry
  }

  private dispatch(entry: LocatedRoom, command: RoomCommand): void {
    const { key, location } = entry
    if (location === 'here') this.deps.receive(key, command)
    else if (location === null || location === 'leaving') entry.waiting.push(command)
    else if (!this.deps.forward(location.node, key, command)) this.locate(entry, [command])
  }

  private resolveLocation(entry: LocatedRoom, location: RoomLocation): void {
    entry.retry = null
    entry.location = location
    for (const command of entry.waiting.splice(0)) this.dispatch(entry, command)
  }

  /** Locates the room again. Every socket joins there before any other command is forwarded. */
  private locate(entry: LocatedRoom, waiting: readonly RoomCommand[]): void {
    if (entry.location === null) {
      entry.waiting.push(...waiting)
      return
    }
    const { key, sockets } = entry
    entry.location = null
    this.deps.unfollowAll(key)
    const commands = [...waiting, ...entry.waiting]
    const joining = new Set(commands.flatMap((command) => (command.type === 'join' ? [command.connectionId] : [])))
    const others = [...sockets.values()].filter(({ connection }) => !joining.has(connection.id))
    entry.waiting = [...others.flatMap(rejoin), ...commands]
    entry.attempts += 1
    if (entry.attempts > roomFindRetriesMax) giveUp(entry)
    else this.scheduleAttempt(entry)
  }

  /** Retries with exponential backoff. The first attempt is immediate. */
  private scheduleAttempt(entry: LocatedRoom): void {
    const owner = this.deps.takeOwner(entry.key)
    // Without a known owner this node tries to claim the room.
    const location: RoomLocation = owner === null ? 'here' : { node: owner }
    if (entry.attempts === 1) {
      queueMicrotask(() => this.resolveLocation(entry, location))
      return
    }
    const pauseMs = Math.min(roomFindRetryMinMs * 2 ** (entry.attempts - 2), roomFindRetryMaxMs)
    entry.retry = setTimeout(() => this.resolveLocation(entry, location), pauseMs)
  }

  private drop(entry: LocatedRoom): void {
    if (entry.retry) clearTimeout(entry.retry)
    for (const socket of entry.sockets.values()) socket.located = null
    this.entries.delete(roomName(entry.key))
  }
}

function giveUp({ sockets }: LocatedRoom): void {
  for (const { connection } of [...sockets.values()]) connection.close(closeCodes.restarting, 'UNAVAILABLE')
}
