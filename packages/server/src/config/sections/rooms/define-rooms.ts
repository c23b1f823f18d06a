/** Types of the configuration section `rooms`, except the handlers (`room-code`). `rooms` validates it at start. */
import type { Auth } from '../../../access/auth.ts'
import type { DecisionResult } from '../../../access/definition.ts'
import type { RoomCode } from './room-code.ts'

/**
 * An access rule: `true`, `false`, or a function. The function returns one of them, a promise of one, or a filter on
 * the room's `id`, in which `exists` queries tables of the namespace `shared`. Any falsy result denies.
 */
type RoomRule<Args extends unknown[]> =
  | boolean
  | ((auth: Auth | null, roomId: string, ...args: Args) => DecisionResult<'id'>)

/** Access rules of the rooms of a namespace. */
export interface RoomAccessConfig {
  /** Who can join; no user by default. Evaluated at each `join` and whenever a member's token is renewed. */
  readonly join?: RoomRule<[]>
  /** Which actions a member can send; all by default. */
  readonly action?: RoomRule<[actionType: string, payload: unknown]>
  /** Which signals a member can send to others; none by default. */
  readonly signal?: RoomRule<[event: string, payload: unknown]>
  /** Who can read metadata and summaries over HTTP; in release mode only service keys by default. */
  readonly metadata?: RoomRule<[]>
}

/** A namespace of rooms. Durations are written `'5s'`, `'2m'`, `'24h'`. */
export interface RoomConfig extends RoomCode {
  readonly access?: RoomAccessConfig
  /** `metadata: true` makes metadata and summaries public. */
  readonly public?: { readonly metadata?: boolean }
  /** Players in a room, whatever the number of their sockets; default 100. */
  readonly maxPlayers?: number
  /** Size of the shared state and of each player's state as JSON: `'1mb'` (the default) to `'10mb'`, or bytes. */
  readonly maxStateSize?: string | number
  /** How long a socket may take to authenticate; default `'5s'`. */
  readonly authTimeout?: string
  /** How long a handler may take; default `'5s'`. */
  readonly actionTimeout?: string
  /** How long a player without a socket keeps the seat; default `'30s'`; 0 frees it at once. */
  readonly reconnectGrace?: string | 0
  /** How long a room without sockets stays in memory; default `'5m'`. */
  readonly hibernateAfter?: string
  /** How often the state is saved with `durability: 'interval'`; default `'1m'`. */
  readonly saveInterval?: string
  /** How long the state is kept after the last save; default `'24h'`. */
  readonly stateTtl?: string
  /** Messages per second from one socket; default 10. */
  readonly messageRate?: number
  /** `tick` (the default) saves changes 20 times a second, `interval` every `saveInterval`. */
  readonly durability?: 'tick' | 'interval'
}
