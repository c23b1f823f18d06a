/**
 * The ports of the room engine: what it needs, and what it provides. The engine does no I/O of its own: store,
 * network, ownership, time and randomness come in through these types, so that a simulation can be all of them.
 */
import type { Auth } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { RoomCode, RoomDatabase, RoomPush } from '../../../config/sections/rooms/room-code.ts'
import type { CloseCode } from '../../../http/sockets/socket-protocol.ts'
import type { RoomText } from './messages.ts'

export interface RoomKey {
  readonly namespace: string
  readonly id: string
}

/** One text per room, for maps; a namespace holds no slash. */
export const roomName = ({ namespace, id }: RoomKey): string => `${namespace}/${id}`

/** A namespace of rooms, as configured: times in milliseconds, sizes in bytes. */
export interface RoomDefinition {
  readonly code: RoomCode
  readonly maxPlayers: number
  /** Of the shared state, of the server's, and of each player's, as JSON. */
  readonly maxStateBytes: number
  readonly actionTimeoutMs: number
  readonly reconnectGraceMs: number
  readonly hibernateAfterMs: number
  readonly saveIntervalMs: number
  readonly stateTtlMs: number
  /** `tick`: what was acknowledged is saved with the next tick. `interval`: every `saveIntervalMs`. */
  readonly durability: 'tick' | 'interval'
}

/** The right to run a room, for as long as it is renewed. */
export interface RoomLease {
  /** Rises with every new owner; the store refuses lower ones than it has seen. */
  readonly fence: number
  /** Decided without I/O, by this node's monotonic clock: false as soon as another node might be the owner. */
  isHeld(): boolean
}

export interface RoomOwnership {
  /** Takes the room for this node, or keeps it; null while another node has it. Rejects when it cannot be known. */
  claim(key: RoomKey): Promise<RoomLease | null>
  /** The engine has let go of the room, saved or lost. */
  release(key: RoomKey, lease: RoomLease): void
}

/** What the store keeps of a room. The texts are the engine's own. */
export interface SavedRoom {
  /** Null when the room has never been saved. */
  readonly snapshot: string | null
  /** Entries since the snapshot, in the order of their `seq`. */
  readonly journal: readonly string[]
  /** The bound of versions as it was before this load; 0 for a room that was never loaded. */
  readonly versionBound: number
  /** As of the last save, or of the first load. */
  readonly expiresAtMs: number
}

/** One save of one room: a snapshot replaces all that was, an entry is added to the journal. */
export interface RoomSave {
  readonly key: RoomKey
  readonly fence: number
  readonly snapshot: string | null
  /** Null beside a snapshot, or when only the columns below are to be kept. */
  readonly entry: string | null
  /**
   * The place of the entry in the journal; one that is there already is replaced (a save is repeated when its
   * outcome is unknown). The first save under a fence is a snapshot.
   */
  readonly seq: number
  /** Versions up to this one may have been seen by clients. Never lower than before. */
  readonly versionBound: number
  /** JSON of the metadata, to be read without waking the room. */
  readonly metadata: string
  /** When the room's next timer is due, in milliseconds since 1970; null without timers. */
  readonly wakeAtMs: number | null
  readonly savedAtMs: number
  readonly expiresAtMs: number
}

/** Where rooms outlive their owners. Every write is fenced: it does nothing where a higher fence has been seen. */
export interface RoomStore {
  /**
   * In one step: makes `fence` the highest seen, raises the bound of versions by `versions`, and reads the room (an
   * empty row is made where there is none, expiring at `expiresAtMs`). From then on saves with lower fences are
   * refused. Null when a higher fence has been seen.
   */
  load(key: RoomKey, fence: number, versions: number, expiresAtMs: number): Promise<SavedRoom | null>
  /**
   * All of them in one transaction; gives the rooms that were refused because a higher fence has been seen (the others
   * are saved). Rejects when nothing was saved or the outcome is unknown; repeating the save must be harmless.
   */
  save(saves: readonly RoomSave[]): Promise<readonly RoomKey[]>
  /** Deletes the room, if no higher fence has been seen. */
  remove(key: RoomKey, fence: number): Promise<void>
  /** Rooms of declared namespaces whose `wakeAtMs` has come, the earliest first. */
  findDue(nowMs: number, limit: number): Promise<readonly RoomKey[]>
  /** Rooms whose `expiresAtMs` has come. */
  findExpired(nowMs: number, limit: number): Promise<readonly RoomKey[]>
}

/**
 * The way to the sockets, wherever they are. Messages to one socket arrive in the order of these calls; none of them
 * fails or waits, and all of them ignore sockets that are gone. A text is one message in JSON; several given at once
 * may go out in one frame.
 */
export interface RoomNetwork {
  send(connectionId: string, texts: readonly RoomText[]): void
  /** To every socket that follows the room, but for those in `except`. */
  publish(key: RoomKey, texts: readonly RoomText[], except?: readonly string[]): void
  /** From now on the socket receives what is published. Before it, the socket was sent `sync` or `resumed`. */
  follow(key: RoomKey, connectionId: string): void
  unfollow(key: RoomKey, connectionId: string): void
  close(connectionId: string, code: CloseCode, reason: string): void
  /**
   * The room is not here any longer (handed over, or its lease was lost): its followers must join again, with
   * resume, wherever it is now. `waiting` are commands that were not done, for its next owner.
   */
  moved(key: RoomKey, waiting: readonly RoomCommand[]): void
}

/** Where a client believes to be. Used only to spare it a `sync`. */
export interface ResumePoint {
  readonly epoch: string
  readonly sharedVersion: number
  readonly playerVersion: number
}

/**
 * What happens to a room from outside: plain JSON, so that it can be relayed. All answers go through the network to
 * the socket. Access rules, rates and the form of messages have been checked before. `bytes` is the length of the
 * message it came in.
 */
export type RoomCommand =
  | { type: 'join'; connectionId: string; auth: Auth; resume: ResumePoint | null }
  | { type: 'act'; connectionId: string; actionType: string; payload: unknown; requestId: string; bytes: number }
  /** The client's `leave`: the player goes at once, without a grace, with all of its sockets (4005). */
  | { type: 'leave'; connectionId: string }
  /** The socket is gone. Harmless for one that never joined. */
  | { type: 'disconnect'; connectionId: string }
  /** The token was renewed; the same user. */
  | { type: 'auth'; connectionId: string; auth: Auth }
  /** Presence of this member, for the others to see. */
  | { type: 'member_state'; connectionId: string; state: unknown; bytes: number }
  | {
      type: 'signal'
      connectionId: string
      event: string
      payload: unknown
      /** The one member it is for; null: all others. */
      to: string | null
      /** Whether the sending socket receives it too. */
      includeSelf: boolean
      /** Null for a sender that requests no answer. */
      requestId: string | null
      bytes: number
    }
  /** The client reads too slowly: no more deltas until it has drained. */
  | { type: 'slow'; connectionId: string }
  | { type: 'drained'; connectionId: string }
  /** By an administrator. */
  | { type: 'kick'; userId: string }

export interface RoomsDeps {
  readonly store: RoomStore
  readonly network: RoomNetwork
  readonly ownership: RoomOwnership
  /** Null for a namespace that is not declared. */
  readonly findDefinition: (namespace: string) => RoomDefinition | null
  /** `room.db` and `room.push`. */
  readonly services: { readonly db: RoomDatabase; readonly push: RoomPush }
  /** Wall time, for what is saved: timers and expiry. */
  readonly clock: Clock
  /** Monotonic milliseconds, for timeouts, grace and idleness. */
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
  /** In order of the user's id. */
  readonly players: readonly { userId: string; connections: number; state: string; version: number }[]
  /** Whether players are left out behind the last of them. */
  readonly isCut: boolean
  /** The last ones, oldest first. */
  readonly actions: readonly RecentAction[]
}

/** Which players a view shows. */
export interface ViewPage {
  /** The user after whose id they begin; null for the first page. */
  readonly after: string | null
  /** Bytes of the states together; one player's state is shown whatever its size. */
  readonly bytesMax: number
}

export interface RecentAction {
  readonly atMs: number
  readonly userId: string
  readonly actionType: string
  readonly durationMs: number
  /** Null for one that succeeded. */
  readonly error: string | null
}

/** All rooms of this node (`createRoomEngine` in `rooms.ts`). */
export interface RoomEngine {
  /** Puts a command in the room's inbox. A `join` has the room claimed and loaded where it is not in memory. */
  receive(key: RoomKey, command: RoomCommand): void
  /** To be called every 50 ms: deltas, messages, timers, timeouts, saves. */
  tick(): void
  /** To be called every few seconds: revives rooms with due timers, and ends expired ones. */
  sweep(): Promise<void>
  find(key: RoomKey, page: ViewPage): RoomView | null
  findOccupancy(key: RoomKey): RoomOccupancy | null
  /** Current metadata of a room in memory. */
  findMetadata(key: RoomKey): object | null
  /** True when all seats are taken by players with an open socket; false when the room is not here. */
  isFull(key: RoomKey): boolean
  list(): readonly RoomKey[]
  /** Saves the room and drops it from memory; its sockets join again (`moved`). */
  release(key: RoomKey): Promise<void>
  /** Releases all rooms, no longer than `withinMs`, and takes no more. */
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
