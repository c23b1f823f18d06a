/** The players of a room and their sockets. Occupancy is derived from them. */
import type { Auth } from '../../../access/caller.ts'
import { playerHistoryBytesMax, playerHistoryEntriesMax, roomHistoryAgeMs } from '../../../limits/rooms.ts'
import type { RoomOccupancy } from './ports.ts'
import { History } from './state/history.ts'
import type { LiveState } from './state/state.ts'

/** Versions that a slow socket had when it was paused. */
export interface PausedVersions {
  readonly sharedVersion: number
  readonly playerVersion: number
}

export interface Connection {
  readonly id: string
  readonly player: Player
  /** Null for a socket that is not paused. */
  paused: PausedVersions | null
}

const historyBounds = {
  entriesMax: playerHistoryEntriesMax,
  bytesMax: playerHistoryBytesMax,
  ageMs: roomHistoryAgeMs,
}

export class Player {
  readonly connections = new Map<string, Connection>()
  readonly history = new History(historyBounds)
  /** Presence, as JSON. */
  memberState = '{}'
  /** Has a seat, but `onJoin` has not completed: neither saved nor shown to members. */
  isJoining = false
  /** Has left the room. */
  isGone = false
  /** The reconnect grace has ended, and the task to leave is queued. */
  isLeaving = false

  constructor(
    readonly userId: string,
    public auth: Auth,
    readonly state: LiveState,
  ) {}
}

export class Players {
  private readonly byId = new Map<string, Player>()
  private readonly byConnection = new Map<string, Connection>()
  /** Players without a socket and when their last socket closed, longest absent first. */
  private readonly absent = new Map<Player, number>()
  /** Sockets paused for backpressure. */
  readonly paused = new Set<Connection>()

  get size(): number {
    return this.byId.size
  }

  /** Players with a socket. */
  get present(): number {
    return this.byId.size - this.absent.size
  }

  get occupancy(): RoomOccupancy {
    return { activeMembers: this.present, activeConnections: this.byConnection.size }
  }

  [Symbol.iterator](): IterableIterator<Player> {
    return this.byId.values()
  }

  find(userId: string): Player | undefined {
    return this.byId.get(userId)
  }

  findConnection(connectionId: string): Connection | undefined {
    return this.byConnection.get(connectionId)
  }

  /** Gives a player a seat. Must be followed by `connect`, or by `awaitReturn` for a player without a socket. */
  add(player: Player): void {
    this.byId.set(player.userId, player)
  }

  awaitReturn(player: Player, nowMs: number): void {
    this.absent.set(player, nowMs)
  }

  connect(player: Player, connectionId: string): Connection {
    const connection: Connection = { id: connectionId, player, paused: null }
    player.connections.set(connectionId, connection)
    this.byConnection.set(connectionId, connection)
    this.absent.delete(player)
    player.isLeaving = false
    return connection
  }

  disconnect(connection: Connection, nowMs: number): void {
    const { player } = connection
    this.forget(connection)
    if (player.connections.size === 0) this.absent.set(player, nowMs)
  }

  remove(player: Player): void {
    for (const connection of player.connections.values()) this.forget(connection)
    this.absent.delete(player)
    this.byId.delete(player.userId)
    player.isGone = true
  }

  /** The player without a socket for the longest time, and since when. */
  longestAbsent(): readonly [Player, number] | null {
    return this.absent.entries().next().value ?? null
  }

  /** Ids of all sockets of these players. */
  connectionsOf(userIds: Iterable<string>): string[] {
    const ids: string[] = []
    for (const userId of userIds) ids.push(...(this.byId.get(userId)?.connections.keys() ?? []))
    return ids
  }

  /** Ids of the paused sockets. */
  pausedConnections(): string[] {
    return [...this.paused].map(({ id }) => id)
  }

  private forget(connection: Connection): void {
    connection.player.connections.delete(connection.id)
    this.byConnection.delete(connection.id)
    this.paused.delete(connection)
  }
}
