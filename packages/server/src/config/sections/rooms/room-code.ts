/** Types of the handlers in `rooms.<namespace>` of the configuration, and of the objects that they receive. */
import type { Auth } from '../../../access/auth.ts'

/**
 * State that a handler reads and changes by plain assignment. It contains only JSON; a key that is set to null or
 * undefined is deleted. Usable until the handler has ended.
 */
// biome-ignore lint/suspicious/noExplicitAny: the application's own JSON; handlers index into it freely.
export type RoomState = Record<string, any>

/** A user in a room, on any number of sockets. */
export interface RoomPlayer {
  readonly id: string
  /** As of the latest authentication of one of the player's sockets. */
  readonly auth: Auth
  /** False during the reconnect grace. */
  readonly isConnected: boolean
  /** Sent to this player only. */
  state: RoomState
  /** Sends a message to all sockets of the player after the handler has succeeded. */
  send(messageType: string, data?: unknown): void
  /** Removes the player and closes its sockets after the handler has succeeded. */
  kick(): void
}

export interface RoomPlayers extends Iterable<RoomPlayer> {
  readonly size: number
  get(userId: string): RoomPlayer | undefined
}

/**
 * Opens the tables of a namespace, `shared` by default, or of one of its instances: `db('shared').posts`. What it
 * returns is what `db` of the package `plinth-client` returns.
 */
// biome-ignore lint/suspicious/noExplicitAny: handlers name the type of their tables in `Room<…>`.
export type OpenTables = (namespace?: string, instanceId?: string) => any

/** Single records by the name of their table: `namespace.table`, or `namespace:instanceId.table`. */
export interface RoomRecords {
  list(table: string, query?: Readonly<Record<string, unknown>>): Promise<unknown>
  get(table: string, id: string): Promise<unknown>
  insert(table: string, data: Readonly<Record<string, unknown>>): Promise<unknown>
  update(table: string, id: string, data: Readonly<Record<string, unknown>>): Promise<unknown>
  delete(table: string, id: string): Promise<unknown>
}

/** Access to records with the permissions of a service key. */
export type RoomDatabase<Open = OpenTables> = Open & RoomRecords

export interface RoomPush {
  send(userId: string, message: Readonly<Record<string, unknown>>): Promise<unknown>
}

/** The `AbortSignal` of the types in use, or its members where a project has neither DOM nor Node.js types. */
type PlatformAbortSignal = typeof globalThis extends { readonly AbortSignal: { readonly prototype: infer Signal } }
  ? Signal
  : { readonly aborted: boolean; readonly reason: unknown; throwIfAborted(): void }

/**
 * A room during one handler. All effects are applied after the handler has succeeded, or not at all. `Open` is the type
 * of `db`: `Room<Client<typeof config>['db']>` with the type `Client` of `plinth-client`.
 */
export interface Room<Open = OpenTables> {
  readonly id: string
  readonly namespace: string
  /** Sent to all players. */
  shared: RoomState
  /** Visible to room code only. */
  server: RoomState
  /** Readable over HTTP where `access.metadata` or `public.metadata` allows it. */
  metadata: RoomState
  readonly players: RoomPlayers
  /** Calls take effect at once and are not rolled back if the handler fails. */
  readonly db: RoomDatabase<Open>
  readonly push: RoomPush
  /** Aborted when the handler times out. */
  readonly signal: PlatformAbortSignal
  /** Sends a message to all joined sockets except those of the players in `except`. */
  broadcast(messageType: string, data?: unknown, options?: { readonly except?: string | readonly string[] }): void
  /** Replaces the metadata. */
  setMetadata(metadata: Readonly<RoomState>): void
  /** Runs `timers[name]` with `data` after at least `ms` milliseconds, also after hibernation or a restart. */
  after(ms: number, name: string, data?: unknown): void
}

type Handler<Args extends unknown[], Result = void> = (room: Room, ...args: Args) => Result | Promise<Result>

/** The handlers of a room. A handler that throws or times out has no effect. */
export interface RoomCode {
  /** The room is created: it has never existed, or its state has expired. */
  readonly onCreate?: Handler<[]>
  /** A player joins. Not called for another socket of a player, or for a reconnect within the grace. */
  readonly onJoin?: Handler<[player: RoomPlayer]>
  readonly onLeave?: Handler<[player: RoomPlayer, reason: RoomLeaveReason]>
  /** The state is about to be deleted because it has expired. */
  readonly onDestroy?: Handler<[]>
  /** By `actionType`. The returned value is sent as `action_result`. */
  // biome-ignore lint/suspicious/noExplicitAny: the client's payload; the handler validates it.
  readonly actions?: { readonly [actionType: string]: Handler<[player: RoomPlayer, payload: any], unknown> }
  // biome-ignore lint/suspicious/noExplicitAny: the data passed to `after`.
  readonly timers?: { readonly [name: string]: Handler<[data: any]> }
}

/** `left`: the client sent `leave`; `disconnected`: the reconnect grace has passed. */
export type RoomLeaveReason = 'left' | 'disconnected' | 'kicked'
