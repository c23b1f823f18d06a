/**
 * What users write the section `rooms` with, beside the functions of a room (`room-code`). Whether it makes sense is
 * asked again at start, by `rooms`.
 */
import type { Auth } from '../../../access/caller.ts'
import type { DecisionResult } from '../../../access/definition.ts'
import type { RoomCode } from './room-code.ts'

/**
 * Who may do something in a room: `true`, `false`, or a function. It gives one of them, a promise of one, or a filter
 * over the room's `id`, whose `exists` ask tables of the namespace `shared`. Anything falsy denies.
 */
type RoomRule<Args extends unknown[]> =
  | boolean
  | ((auth: Auth | null, roomId: string, ...args: Args) => DecisionResult<'id'>)

/** Rules of the rooms of a namespace. */
export interface RoomAccessConfig {
  /** Who may join; left out, nobody. Asked anew at each `join` and when a member's token is renewed. */
  readonly join?: RoomRule<[]>
  /** Which actions a member may send; left out, all. */
  readonly action?: RoomRule<[actionType: string, payload: unknown]>
  /** Which signals a member may send to the others; left out, none. */
  readonly signal?: RoomRule<[event: string, payload: unknown]>
  /** Who may see metadata and summaries over HTTP; left out, nobody but the service key in release mode. */
  readonly metadata?: RoomRule<[]>
}

/** Rooms of one kind. Durations are `'5s'`, `'2m'`, `'24h'`. */
export interface RoomConfig extends RoomCode {
  readonly access?: RoomAccessConfig
  /** `metadata: true` shows metadata and summaries to everybody. */
  readonly public?: { readonly metadata?: boolean }
  /** Players, whatever the number of their sockets; default 100. */
  readonly maxPlayers?: number
  /** Of the shared state and of each player's, as JSON: `'1mb'` (the default) to `'10mb'`, or bytes. */
  readonly maxStateSize?: string | number
  /** How long a socket may take to authenticate; default `'5s'`. */
  readonly authTimeout?: string
  /** How long a handler may take; default `'5s'`. */
  readonly actionTimeout?: string
  /** How long a player who has lost the connection keeps the seat; default `'30s'`, 0 for not at all. */
  readonly reconnectGrace?: string | 0
  /** How long a room without sockets stays in memory; default `'5m'`. */
  readonly hibernateAfter?: string
  /** With `durability: 'interval'`: how often the state is saved; default `'1m'`. */
  readonly saveInterval?: string
  /** How long the state is kept after it was last saved; default `'24h'`. */
  readonly stateTtl?: string
  /** Messages a second from one socket; default 10. */
  readonly messageRate?: number
  /** `tick` (the default) saves what has changed 20 times a second, `interval` every `saveInterval`. */
  readonly durability?: 'tick' | 'interval'
}
