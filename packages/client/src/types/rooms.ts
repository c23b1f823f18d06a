/** Rooms. Actions are typed by their handlers in the configuration: payload and result. */
import type { RoomActions, Untyped } from './config-shape.ts'
import type { Call } from './options.ts'

/** A value after JSON: what a handler returns, as the client receives it. */
export type Json<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null
    ? T
    : T extends void
      ? null
      : T extends { toJSON(): infer Text }
        ? Text
        : T extends readonly unknown[]
          ? { [Index in keyof T]: Json<T[Index]> }
          : T extends object
            ? { [Name in keyof T]: undefined extends T[Name] ? Json<NonNullable<T[Name]>> | undefined : Json<T[Name]> }
            : never

type Handler = (room: never, player: never, payload: never) => unknown

/** What an action's handler takes as its third parameter; `undefined` if it has none. */
export type ActionPayload<Actions, Name> = unknown extends Actions
  ? Untyped
  : Name extends keyof Actions
    ? Actions[Name] extends (...args: infer Args) => unknown
      ? Args extends [unknown, unknown, ...infer Rest]
        ? Rest[0]
        : undefined
      : never
    : never

/** What an action's handler returns. */
export type ActionResult<Actions, Name> = unknown extends Actions
  ? Untyped
  : Name extends keyof Actions
    ? Actions[Name] extends Handler
      ? Json<Awaited<ReturnType<Actions[Name]>>>
      : never
    : never

export type ActionName<Actions> = unknown extends Actions ? string : keyof Actions & string

type SendArguments<Payload> = undefined extends Payload
  ? [payload?: Payload, options?: Call]
  : [payload: Payload, options?: Call]

/** State that the server sends. `current` is frozen; unchanged parts keep their identity. */
export interface StateView {
  readonly current: Untyped
  subscribe(listener: () => void): () => void
  /** Called when the value at a path such as `a.b` has changed. */
  on(path: string, listener: (value: Untyped) => void): () => void
}

/** A member of a room: the id of its user, and its presence. */
export interface RoomMember {
  readonly memberId: string
  readonly state: Untyped
}

export interface RoomMembers {
  readonly current: readonly RoomMember[]
  subscribe(listener: () => void): () => void
}

/** Where a signal comes from. */
export interface SignalSender {
  readonly memberId: string
  readonly userId: string
  readonly connectionId: string
  /** RFC 3339 in UTC with milliseconds. */
  readonly sentAt: string
  /** Whether a server sent it instead of a member. */
  readonly serverSent: boolean
}

/** How a client uses a room. Those of its first call of `room` count. */
export interface RoomOptions {
  /** Receives the answers to actions with the next change, up to 50 ms later: for games with many actions a second. */
  batch?: boolean
}

export type RoomStatus = 'closed' | 'joining' | 'joined' | 'reconnecting'

export interface Room<Actions = Untyped> {
  join(options?: Call): Promise<void>
  leave(): Promise<void>
  readonly status: RoomStatus
  readonly me: { readonly id: string } | null
  readonly shared: StateView
  readonly player: StateView
  readonly members: RoomMembers
  /** Runs an action on the server and resolves with what its handler returned; sent again after a reconnect. */
  send<const Name extends ActionName<Actions>>(
    action: Name,
    ...args: SendArguments<ActionPayload<Actions, Name>>
  ): Promise<ActionResult<Actions, Name>>
  /** Messages that the room's code sends or broadcasts. */
  on(event: string, listener: (payload: Untyped) => void): () => void
  signal(event: string, payload?: unknown, options?: { to?: string }): void
  /** Signals of other members. `meta` names the sender and its socket. */
  onSignal(event: string, listener: (payload: Untyped, meta: SignalSender) => void): () => void
  /** Sets what the other members see of this one in `members`; any JSON of at most 4,096 bytes. */
  setPresence(state: unknown): void
  /** Disconnects without leaving: the seat is kept for the reconnect grace of the room, and other tabs stay. */
  disconnect(): void
  /**
   * Keeps the room joined, also as each user who signs in, until the returned function is called. A second after the
   * last of them it disconnects.
   */
  retain(): () => void
  /** Applies an action to the shared state at once, until the server has answered. */
  predict<const Name extends ActionName<Actions>>(
    action: Name,
    apply: (shared: Untyped, me: string, payload: ActionPayload<Actions, Name>) => void,
  ): void
  /** Called when `status` has changed. */
  subscribe(listener: () => void): () => void
}

/** A room of a configuration. */
export type RoomOf<Config, Namespace> = Room<RoomActions<Config, Namespace>>
