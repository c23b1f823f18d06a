/**
 * Protocol version 2 on one socket: what its messages mean, and whether they may be said. The room decides what comes
 * of them, wherever it is, and answers over the same socket.
 */
import type { Auth } from '../../access/caller.ts'
import type { RoomNamespace } from '../../config/sections/rooms/rooms.ts'
import { EngineError } from '../../engines/sql/error.ts'
import type { JsonObject } from '../../http/input/body.ts'
import { type Connection, type Conversation, closeCodes } from '../../http/sockets/socket.ts'
import { roomNameCharsMax } from '../../limits/rooms.ts'
import { socketBacklogBytesMax } from '../../limits/sockets.ts'
import type { RoomAccessCheck } from './access.ts'
import type { Audience, RoomSocket } from './audience.ts'
import type { ResumePoint, RoomCommand, RoomKey } from './engine/ports.ts'
import type { Routes } from './routes.ts'

export interface SessionDeps {
  /** The room's namespace as it is configured now; null when it is not any longer. */
  readonly findNamespace: (name: string) => RoomNamespace | null
  readonly access: RoomAccessCheck
  readonly audience: Audience
  readonly routes: Routes
}

export interface Session extends Conversation {
  /** Asks the join rule again: the configuration has changed. */
  review(): Promise<void>
}

/** What a client may ask for in `auth.caps`. */
const capabilities = ['resume', 'multi'] as const
type Capability = (typeof capabilities)[number]

type Handle = (auth: Auth, message: JsonObject, bytes: number) => void | Promise<void>

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= roomNameCharsMax

const isVersion = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

/** Only what was said by the server before; states that clients send are never looked at. */
function findResumePoint({ epoch, lastSharedVersion, lastPlayerVersion }: JsonObject): ResumePoint | null {
  if (!isName(epoch) || !isVersion(lastSharedVersion) || !isVersion(lastPlayerVersion)) return null
  return { epoch, sharedVersion: lastSharedVersion, playerVersion: lastPlayerVersion }
}

type SignalCommand = Extract<RoomCommand, { type: 'signal' }>

/** What a `signal` says, or what is wrong with it. `memberId` is an older name of `to`. */
function readSignal(said: JsonObject): Omit<SignalCommand, 'type' | 'connectionId' | 'bytes'> | string {
  const { event, payload = null, memberId = null, to = memberId, includeSelf = false, requestId = null } = said
  if (!isName(event)) return `event must be text of 1 to ${roomNameCharsMax} characters`
  if (to !== null && typeof to !== 'string') return 'to must be the id of a member'
  if (typeof includeSelf !== 'boolean') return 'includeSelf must be true or false'
  if (requestId !== null && !isName(requestId)) return `requestId must be text of 1 to ${roomNameCharsMax} characters`
  return { event, payload, to, includeSelf, requestId }
}

export function createSession(connection: Connection, key: RoomKey, deps: SessionDeps): Session {
  const { findNamespace, access, audience, routes } = deps
  const { id: connectionId } = connection
  const socket: RoomSocket = { connection, key, isMulti: false, isSlow: false }
  let asked: ReadonlySet<Capability> = new Set()
  let hasJoined = false
  audience.enter(socket)

  function tell(command: RoomCommand): void {
    if (!routes.tell(socket, command)) connection.error('RATE_LIMITED', 'Too much waits for the room')
  }

  function turnAway(): void {
    connection.error('JOIN_DENIED', 'You may not join this room')
    connection.close(closeCodes.joinDenied, 'JOIN_DENIED')
  }

  /**
   * Goes on with what a rule says, at once where it asks nothing, as most do: a message then costs no turn
   * of the event loop. While a rule asks, the socket's later messages wait. Says so where the answer is not to be had.
   */
  function decided(
    allowed: boolean | Promise<boolean>,
    proceed: (isAllowed: boolean) => void,
    unavailable: () => void,
  ): void | Promise<void> {
    if (!(allowed instanceof Promise)) return proceed(allowed)
    return allowed.then(
      (isAllowed) => {
        if (connection.isOpen) proceed(isAllowed)
      },
      (error: unknown) => {
        if (!(error instanceof EngineError)) throw error
        if (connection.isOpen) unavailable()
      },
    )
  }

  const sayUnavailable = (): void => connection.error('UNAVAILABLE', 'Not available right now; try again later')

  /** Whether the join rule lets the user in. */
  function admit(auth: Auth): boolean | Promise<boolean> {
    const namespace = findNamespace(key.namespace)
    return namespace !== null && access.mayJoin(namespace, key.id, auth)
  }

  const join = (auth: Auth, message: JsonObject): void | Promise<void> =>
    decided(
      admit(auth),
      (isAllowed) => {
        if (!isAllowed) return turnAway()
        hasJoined = true
        tell({ type: 'join', connectionId, auth, resume: asked.has('resume') ? findResumePoint(message) : null })
      },
      sayUnavailable,
    )

  const refuseAction = ({ actionType = null, requestId }: JsonObject, code: string, message: string): void =>
    connection.send({ type: 'action_error', requestId, actionType, code, message })

  function send(auth: Auth, said: JsonObject, bytes: number): void | Promise<void> {
    const { actionType, payload = {}, requestId } = said
    if (!isName(requestId)) {
      connection.error('INVALID_ACTION', `requestId must be text of 1 to ${roomNameCharsMax} characters`)
      return
    }
    const refuse = (code: string, message: string): void => refuseAction(said, code, message)
    if (!isName(actionType)) refuse('INVALID_ACTION', `actionType must be text of 1 to ${roomNameCharsMax} characters`)
    else if (!hasJoined) refuse('NOT_JOINED', 'Join the room first')
    else {
      const namespace = findNamespace(key.namespace)
      return decided(
        namespace !== null && access.mayAct(namespace, key.id, auth, actionType, payload),
        (isAllowed) => {
          if (!isAllowed) refuse('ACTION_DENIED', 'You may not do this')
          else if (!routes.tell(socket, { type: 'act', connectionId, actionType, payload, requestId, bytes }))
            refuse('RATE_LIMITED', 'Too much waits for the room')
        },
        () => refuse('UNAVAILABLE', 'Not available right now; try again later'),
      )
    }
  }

  /** A sender who gave a `requestId` waits for an answer to it. */
  function refuseSignal({ requestId }: JsonObject, code: string, message: string): void {
    if (isName(requestId)) connection.send({ type: 'signal_error', requestId, code, message })
    else connection.error(code, message)
  }

  function signal(auth: Auth, said: JsonObject, bytes: number): void | Promise<void> {
    const refuse = (code: string, message: string): void => refuseSignal(said, code, message)
    if (!hasJoined) return refuse('NOT_JOINED', 'Join the room first')
    const read = readSignal(said)
    if (typeof read === 'string') return refuse('INVALID_SIGNAL', read)
    const { event, payload } = read
    const namespace = findNamespace(key.namespace)
    return decided(
      namespace !== null && access.maySignal(namespace, key.id, auth, event, payload),
      (isAllowed) => {
        if (!isAllowed) refuse('SIGNAL_DENIED', 'You may not send this signal')
        else if (!routes.tell(socket, { type: 'signal', connectionId, ...read, bytes }))
          refuse('RATE_LIMITED', 'Too much waits for the room')
      },
      () => refuse('UNAVAILABLE', 'Not available right now; try again later'),
    )
  }

  /** Messages that only somebody who has joined may send, without an answer of their own. */
  const asMember =
    (handle: Handle): Handle =>
    (auth, message, bytes) =>
      hasJoined ? handle(auth, message, bytes) : connection.error('NOT_JOINED', 'Join the room first')

  const handlers: Readonly<Record<string, Handle>> = {
    join,
    send,
    leave: asMember(() => tell({ type: 'leave', connectionId })),
    member_state: asMember((_, { state = null }, bytes) => tell({ type: 'member_state', connectionId, state, bytes })),
    signal,
  }

  function review(): void | Promise<void> {
    const { caller } = connection
    if (!hasJoined || caller.kind !== 'user') return
    return decided(
      admit(caller.auth),
      (isAllowed) => {
        if (!isAllowed) turnAway()
      },
      // Whatever keeps it from being decided, nobody stays who might not be allowed to.
      turnAway,
    )
  }

  return {
    get messageRate() {
      return findNamespace(key.namespace)?.messageRate ?? 0
    },
    // A `sync` may be as large as two states.
    get backlogBytesMax() {
      return socketBacklogBytesMax + 2 * (findNamespace(key.namespace)?.maxStateBytes ?? 0)
    },
    review: () => connection.perform(review),
    onOpen() {},
    onAuth(_, isRefresh, { caps }) {
      if (isRefresh) return { connectionId }
      asked = new Set(capabilities.filter((name) => Array.isArray(caps) && caps.includes(name)))
      socket.isMulti = asked.has('multi')
      return asked.size > 0 ? { connectionId, caps: [...asked] } : { connectionId }
    },
    async afterAuth(isRefresh) {
      const { caller } = connection
      if (!isRefresh || !hasJoined || caller.kind !== 'user') return
      await review()
      if (connection.isOpen) tell({ type: 'auth', connectionId, auth: caller.auth })
    },
    onMessage(type, message, chars) {
      const handle = Object.hasOwn(handlers, type) ? handlers[type] : undefined
      const { caller } = connection
      if (!handle) connection.error('UNKNOWN_TYPE', 'There is no message of this type')
      else if (caller.kind === 'user') return handle(caller.auth, message, chars)
      else if (caller.kind === 'service') connection.error('UNAUTHENTICATED', 'A room is for users')
      else {
        connection.error('NOT_AUTHENTICATED', 'Authenticate first')
        connection.close(closeCodes.badMessage, 'NOT_AUTHENTICATED')
      }
    },
    onExcess(type, message) {
      // Whoever waits for the answer to a request is to have one.
      if (!isName(message.requestId)) return
      if (type === 'send') refuseAction(message, 'RATE_LIMITED', 'Too many messages')
      if (type === 'signal') refuseSignal(message, 'RATE_LIMITED', 'Too many messages')
    },
    onDrained() {
      if (!socket.isSlow) return
      socket.isSlow = false
      tell({ type: 'drained', connectionId })
    },
    onClose() {
      routes.leave(socket)
      audience.leave(socket)
    },
  }
}
