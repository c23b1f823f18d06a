/**
 * What the code of a room sees and may do: the types of the handlers in `rooms.<namespace>` of the configuration. What
 * they promise is kept by `features/rooms/engine`.
 */
import type { Auth } from '../../../access/caller.ts'

/**
 * State that a handler reads and changes by plain assignment. It takes JSON and nothing else; a key that is set to null
 * or undefined is deleted. Usable only until its handler has ended.
 */
// biome-ignore lint/suspicious/noExplicitAny: the application's own JSON; handlers index into it freely.
export type RoomState = Record<string, any>

/** A user in a room, on any number of sockets. */
export interface RoomPlayer {
  readonly id: string
  /** As of the last message from one of the player's sockets. */
  readonly auth: Auth
  /** False within the grace for coming back. */
  readonly isConnected: boolean
  /** Only this player sees it. */
  state: RoomState
  /** Sends to all of the player's sockets, once the handler has succeeded. */
  send(messageType: string, data?: unknown): void
  /** Has the player leave and closes its sockets, once the handler has succeeded. */
  kick(): void
}

export interface RoomPlayers extends Iterable<RoomPlayer> {
  readonly size: number
  get(userId: string): RoomPlayer | undefined
}

/** Records, as a caller with the service key reaches them. */
export interface RoomDatabase {
  /** `table` is `namespace.table`, or `namespace:instanceId.table` in a dynamic namespace. */
  list(table: string, query?: Readonly<Record<string, unknown>>): Promise<unknown>
  get(table: string, id: string): Promise<unknown>
  insert(table: string, data: Readonly<Record<string, unknown>>): Promise<unknown>
  update(table: string, id: string, data: Readonly<Record<string, unknown>>): Promise<unknown>
  delete(table: string, id: string): Promise<unknown>
}

export interface RoomPush {
  send(userId: string, message: Readonly<Record<string, unknown>>): Promise<unknown>
}

/** A room, for the time of one handler. Whatever it is told to do happens only if the handler succeeds. */
export interface Room {
  readonly id: string
  readonly namespace: string
  /** All players see it. */
  shared: RoomState
  /** Nobody outside the room's code sees it. */
  server: RoomState
  /** Shown over HTTP where `access.metadata` or `public.metadata` allow. */
  metadata: RoomState
  readonly players: RoomPlayers
  /** Calls are made at once and are not undone when the handler fails. */
  readonly db: RoomDatabase
  readonly push: RoomPush
  /** Aborted when the handler runs out of time. */
  readonly signal: AbortSignal
  /** Sends to every joined socket but those of the players named in `except`. */
  broadcast(messageType: string, data?: unknown, options?: { readonly except?: string | readonly string[] }): void
  /** Replaces the metadata. */
  setMetadata(metadata: Readonly<RoomState>): void
  /** Runs `timers[name]` with `data`, not before `ms` have passed, also after hibernation or a restart. */
  after(ms: number, name: string, data?: unknown): void
}

type Handler<Args extends unknown[], Result = void> = (room: Room, ...args: Args) => Result | Promise<Result>

/** The functions of a room. A handler that throws or takes too long has changed nothing. */
export interface RoomCode {
  /** The room has never been, or its state has expired. */
  readonly onCreate?: Handler<[]>
  /** A player enters: not another socket of one that is there, nor one that comes back within the grace. */
  readonly onJoin?: Handler<[player: RoomPlayer]>
  readonly onLeave?: Handler<[player: RoomPlayer, reason: RoomLeaveReason]>
  /** The state expires: the last look at it. */
  readonly onDestroy?: Handler<[]>
  /** By `actionType`. What it returns is the `action_result`. */
  // biome-ignore lint/suspicious/noExplicitAny: a payload is whatever the client sent; the handler checks it.
  readonly actions?: { readonly [actionType: string]: Handler<[player: RoomPlayer, payload: any], unknown> }
  // biome-ignore lint/suspicious/noExplicitAny: what `after` was given.
  readonly timers?: { readonly [name: string]: Handler<[data: any]> }
}

/** `left`: by its own message; `disconnected`: the grace has passed. */
export type RoomLeaveReason = 'left' | 'disconnected' | 'kicked'
