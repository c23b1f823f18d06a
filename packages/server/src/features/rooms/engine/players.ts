/** Who is in a room, and on which sockets. Occupancy is always counted from these, never kept beside them. */
import type { Auth } from '../../../access/caller.ts'
import { playerHistoryBytesMax, playerHistoryEntriesMax, roomHistoryAgeMs } from '../../../limits/rooms.ts'
import { History } from './history.ts'
import type { RoomOccupancy } from './ports.ts'
import type { LiveState } from './state.ts'

/** Versions that a slow socket had when it was paused. */
export interface PausedVersions {
  readonly sharedVersion: number
  readonly playerVersion: number
}

export interface Connection {
  readonly id: string
  readonly player: Player
  /** Null for a socket that keeps up. */
  setAside: PausedVersions | null
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
  /** Has a seat, but `onJoin` has not agreed yet: neither saved nor shown. */
  isJoining = false
  /** Has no seat any more. */
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
  /** Players without a socket, with the moment the last one went; the one who waits longest comes first. */
  private readonly absent = new Map<Player, number>()
  readonly slow = new Set<Connection>()

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

  /** Gives a player a seat; a socket follows at once (`connect`), or is awaited from now on (`awaitReturn`). */
  add(player: Player): void {
    this.byId.set(player.userId, player)
  }

  awaitReturn(player: Player, nowMs: number): void {
    this.absent.set(player, nowMs)
  }

  connect(player: Player, connectionId: string): Connection {
    const connection: Connection = { id: connectionId, player, setAside: null }
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

  /** The player who has been without a socket for longest, and since when. */
  longestAbsent(): readonly [Player, number] | null {
    return this.absent.entries().next().value ?? null
  }

  /** Ids of all sockets of these players. */
  connectionsOf(userIds: Iterable<string>): string[] {
    const ids: string[] = []
    for (const userId of userIds) ids.push(...(this.byId.get(userId)?.connections.keys() ?? []))
    return ids
  }

  /** Ids of the sockets that were set aside. */
  slowConnections(): string[] {
    return [...this.slow].map(({ id }) => id)
  }

  private forget(connection: Connection): void {
    connection.player.connections.delete(connection.id)
    this.byConnection.delete(connection.id)
    this.slow.delete(connection)
  }
}
