/**
 * The ports of the room engine: what it requires and what it provides. The engine does no I/O: store, network,
 * ownership and time are passed in, so that a simulation can implement them.
 */
import type { Auth } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { RoomCode, RoomDatabase, RoomPush } from '../../../config/sections/rooms/room-code.ts'
import type { CloseCode } from '../../../http/sockets/socket-protocol.ts'
import type { RoomText } from './messages/messages.ts'

export interface RoomKey {
  readonly namespace: string
  readonly id: string
}

/** A unique name of a room, for maps. A namespace contains no slash. */
export const roomName = ({ namespace, id }: RoomKey): string => `${namespace}/${id}`

/** A namespace of rooms, as configured: times in milliseconds, sizes in bytes. */
export interface RoomDefinition {
  readonly code: RoomCode
  readonly maxPlayers: number
  /** Of the shared state, the server state, and the state of each player, as JSON. */
  readonly maxStateBytes: number
  readonly actionTimeoutMs: number
  readonly reconnectGraceMs: number
  readonly hibernateAfterMs: number
  readonly saveIntervalMs: number
  readonly stateTtlMs: number
  /** `tick`: changes are saved with the next tick. `interval`: every `saveIntervalMs`. */
  readonly durability: 'tick' | 'interval'
}

/** The exclusive right to run a room, while it is renewed. */
export interface RoomLease {
  /** Fencing token: increases with every owner; the store refuses lower ones than it has seen. */
  readonly fence: number
  /** Decided without I/O by this node's monotonic clock: false as soon as another node may be the owner. */
  isValid(): boolean
}

export interface RoomOwnership {
  /** Claims the room for this node, or keeps it. Null while another node owns it. Rejects if that is unknown. */
  claim(key: RoomKey): Promise<RoomLease | null>
  /** The engine has dropped the room, saved or lost. */
  release(key: RoomKey, lease: RoomLease): void
}

/** A stored room. The engine defines the format of the texts. */
export interface SavedRoom {
  /** Null when the room has never been saved. */
  readonly snapshot: string | null
  /** Entries since the snapshot, in the order of their `seq`. */
  readonly journal: readonly string[]
  /** The bound of versions before this load; 0 for a room that was never loaded. */
  readonly versionBound: number
  /** As of the last save, or of the first load. */
  readonly expiresAtMs: number
}

/** One save of one room: a snapshot replaces everything before it, an entry is appended to the journal. */
export interface RoomSave {
  readonly key: RoomKey
  readonly fence: number
  readonly snapshot: string | null
  /** Null with a snapshot, or if only the columns below are updated. */
  readonly entry: string | null
  /**
   * The position of the entry in the journal. An existing entry is replaced, since a save with an unknown outcome is
   * repeated. The first save under a fence is a snapshot.
   */
  readonly seq: number
  /** Clients may have seen versions up to this one. Never decreases. */
  readonly versionBound: number
  /** JSON of the metadata, readable without waking the room. */
  readonly metadata: string
  /** When the room's next timer is due, in milliseconds since 1970; null without timers. */
  readonly wakeAtMs: number | null
  readonly savedAtMs: number
  readonly expiresAtMs: number
}

/** Persistent storage of rooms. Every write is fenced: it has no effect if a higher fence has been seen. */
export interface RoomStore {
  /**
   * Atomically makes `fence` the highest one, raises the bound of versions by `versions`, and reads the room; creates
   * an empty row that expires at `expiresAtMs` where none exists. Saves with lower fences are refused afterwards. Null
   * if a higher fence has been seen.
   */
  load(key: RoomKey, fence: number, versions: number, expiresAtMs: number): Promise<SavedRoom | null>
  /**
   * Saves all of them in one transaction. Resolves with the rooms that were refused because a higher fence has been
   * seen; the others are saved. Rejects if nothing was saved or the outcome is unknown; saves are idempotent.
   */
  save(saves: readonly RoomSave[]): Promise<readonly RoomKey[]>
  /** Deletes the room unless a higher fence has been seen. */
  remove(key: RoomKey, fence: number): Promise<void>
  /** Rooms of configured namespaces whose `wakeAtMs` has passed, earliest first. */
  findDue(nowMs: number, limit: number): Promise<readonly RoomKey[]>
  /** Rooms whose `expiresAtMs` has passed. */
  findExpired(nowMs: number, limit: number): Promise<readonly RoomKey[]>
}

/**
 * Delivery to sockets on any node. Messages to one socket arrive in the order of these calls. No call throws or blocks,
 * and all of them ignore closed sockets. A text is one JSON message; several in one call may be sent in one frame.
 */
export interface RoomNetwork {
  send(connectionId: string, texts: readonly RoomText[]): void
  /** Sends to every socket that follows the room except those in `except`. */
  publish(key: RoomKey, texts: readonly RoomText[], except?: readonly string[]): void
  /** Subscribes the socket to published messages. It has been sent `sync` or `resumed` before. */
  follow(key: RoomKey, connectionId: string): void
  unfollow(key: RoomKey, connectionId: string): void
  close(connectionId: string, code: CloseCode, reason: string): void
  /**
   * The room has left this node (handed over, or its lease was lost): its followers join again wherever it is.
   * `waiting` are unprocessed commands for its next owner.
   */
  moved(key: RoomKey, waiting: readonly RoomCommand[]): void
}

/** The position that a client reports. Used only to avoid a `sync`. */
export interface ResumePoint {
  readonly epoch: string
  readonly sharedVersion: number
  readonly playerVersion: number
}

/** Who acts in the name of which player. */
export interface ActingAdministrator {
  readonly userId: string
  /** The service key or administrator. */
  readonly by: string
}

/**
 * A command to a room: plain JSON, so that it can be sent to another node. Responses are sent to the socket through the
 * network. Access rules, rate limits and the format of messages have been checked. `bytes` is the length of the message
 * that the command was received in.
 */
export type RoomCommand =
  | { type: 'join'; connectionId: string; auth: Auth; resume: ResumePoint | null }
  | {
      type: 'act'
      /** The socket; of an action of an administrator, where the response is awaited. */
      connectionId: string
      actionType: string
      payload: unknown
      requestId: string
      bytes: number
      /** In the name of this player, whose rule has been evaluated; absent for the player of the socket. */
      as?: ActingAdministrator
    }
  /** The client's `leave`: the player leaves at once, without a reconnect grace; all its sockets close with 4005. */
  | { type: 'leave'; connectionId: string }
  /** The socket was closed. No effect for one that never joined. */
  | { type: 'disconnect'; connectionId: string }
  /** The token of the same user was renewed. */
  | { type: 'auth'; connectionId: string; auth: Auth }
  /** Presence of this member, shown to the others. */
  | { type: 'member_state'; connectionId: string; state: unknown; bytes: number }
  | {
      type: 'signal'
      connectionId: string
      event: string
      payload: unknown
      /** The receiving member; null for all others. */
      to: string | null
      /** Whether the sending socket receives it too. */
      includeSelf: boolean
      /** Null if the sender requests no response. */
      requestId: string | null
      bytes: number
    }
  /** The client reads too slowly: deltas are paused until `drained`. */
  | { type: 'slow'; connectionId: string }
  | { type: 'drained'; connectionId: string }
  /** Sent by an administrator. */
  | { type: 'kick'; userId: string }

/** A handler that runs. */
export interface LiveHandler {
  /** Throws once the handler has ended. */
  checkLive(): void
}

export interface RoomServices {
  /** Creates the `room.db` of a handler, which throws once the handler has ended. */
  readonly openDatabase: (handler: LiveHandler) => RoomDatabase
  readonly push: RoomPush
}

export interface RoomsDeps {
  readonly store: RoomStore
  readonly network: RoomNetwork
  readonly ownership: RoomOwnership
  /** Null for a namespace that is not configured. */
  readonly findDefinition: (namespace: string) => RoomDefinition | null
  /** `room.db` and `room.push`. */
  readonly services: RoomServices
  /** Wall time, for timers and expiry, which are saved. */
  readonly clock: Clock
  /** Monotonic milliseconds, for timeouts, reconnect graces and idle times. */
  readonly elapsedMs: () => number
  readonly log: Log
}

export interface RoomOccupancy {
  readonly activeMembers: number
  readonly activeConnections: number
}

/** A view of a room that is in memory. */
export interface RoomView {
  readonly key: RoomKey
  readonly epoch: string
  readonly sharedVersion: number
  /** States as JSON. */
  readonly shared: string
  readonly server: string
  readonly metadata: string
  readonly occupancy: RoomOccupancy
  /** Ordered by user id. */
  readonly players: readonly { userId: string; connections: number; state: string; version: number }[]
  /** Whether more players follow. */
  readonly isTruncated: boolean
  /** The latest actions, oldest first. */
  readonly actions: readonly RecentAction[]
  readonly load: RoomLoadReport
  /** States of which a preview is shown: `shared`, `server`, `metadata`, or the user id of a player after `player:`. */
  readonly previews: readonly string[]
}

/** The load of a room over the last seconds. */
export interface RoomLoadReport {
  /** Actions, signals and presence that it has received. */
  readonly messagesPerSecond: number
  /** Mean duration of the ticks in which it had something to send. */
  readonly tickMs: number
  /** Of all its states together, as JSON. */
  readonly stateBytes: number
}

/** A page of the players in a view. */
export interface ViewPage {
  /** The last user id of the previous page; null for the first page. */
  readonly after: string | null
  /** Limit of the bytes of all states together; one player is always shown. */
  readonly bytesMax: number
  /** Larger states are shown as previews of about this size; null to show them completely. */
  readonly previewBytes: number | null
}

export interface RecentAction {
  readonly atMs: number
  readonly userId: string
  readonly actionType: string
  /** As JSON, with secrets hidden and cut where it is long; null where it is absent or too large to be kept. */
  readonly payload: string | null
  readonly durationMs: number
  /** Null if the action succeeded. */
  readonly error: string | null
  /** The service key or administrator that acted in the name of the user; null for the user. */
  readonly sentBy: string | null
}

/** All rooms of this node (`createRoomEngine` in `rooms.ts`). */
export interface RoomEngine {
  /** Queues a command for a room. A `join` claims and loads a room that is not in memory. */
  receive(key: RoomKey, command: RoomCommand): void
  /** Runs timers and timeouts, sends deltas and messages, starts saves. Called every 50 ms. */
  tick(): void
  /** Loads rooms with due timers and destroys expired ones. Called every few seconds. */
  sweep(): Promise<void>
  find(key: RoomKey, page: ViewPage): RoomView | null
  findOccupancy(key: RoomKey): RoomOccupancy | null
  findLoad(key: RoomKey): RoomLoadReport | null
  /** A player with a seat, as the user was when last authenticated; null without such a player or room in memory. */
  findPlayer(key: RoomKey, userId: string): Auth | null
  /** Current metadata of a room in memory. */
  findMetadata(key: RoomKey): object | null
  /** Whether players with an open socket occupy all seats; false for a room that is not in memory. */
  isFull(key: RoomKey): boolean
  list(): readonly RoomKey[]
  /** Saves the room and drops it from memory; its sockets join again (`RoomNetwork.moved`). */
  release(key: RoomKey): Promise<void>
  /** Releases all rooms within `withinMs`, and loads no more. */
  drain(withinMs: number): Promise<void>
  readonly stats: RoomEngineStats
}

export interface RoomEngineStats {
  readonly rooms: number
  readonly players: number
  readonly connections: number
  readonly actions: number
  readonly deltas: number
  readonly deltaBytes: number
  readonly saves: number
  readonly savedBytes: number
  readonly failedSaves: number
  readonly fencedSaves: number
}
