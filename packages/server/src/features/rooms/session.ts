/** Authorizes the messages of one socket (protocol version 2) and forwards them as commands to the room. */
import type { Auth } from '../../access/caller.ts'
import type { RoomNamespace } from '../../config/sections/rooms/rooms.ts'
import { EngineError } from '../../engines/sql/error.ts'
import type { JsonObject } from '../../http/input/body.ts'
import type { Connection, SocketHandler } from '../../http/sockets/socket-handler.ts'
import { closeCodes } from '../../http/sockets/socket-protocol.ts'
import { socketBacklogBytesMax } from '../../limits/sockets.ts'
import type { RoomAccessCheck } from './access.ts'
import type { RoomErrorCode } from './engine/messages.ts'
import type { RoomCommand, RoomKey } from './engine/ports.ts'
import type { LocalMembers, RoomSocket } from './local-members.ts'
import {
  type InvalidMessage,
  isName,
  parseClientMessage,
  type ReceivedJoin,
  type ReceivedMessage,
  type ReceivedSignal,
} from './parse-message.ts'
import type { RoomCapability, RoomServerMessage, SendMessage } from './protocol.ts'
import type { RoomLocator } from './room-locator.ts'

export interface SessionDeps {
  /** The room's namespace as it is configured now; null when it is not any longer. */
  readonly findNamespace: (name: string) => RoomNamespace | null
  readonly access: RoomAccessCheck
  readonly audience: LocalMembers
  readonly routes: RoomLocator
}

export interface Session extends SocketHandler<RoomServerMessage> {
  /** Evaluates the join rule again, after the configuration changed. */
  review(): Promise<void>
}

const notJoined = ['NOT_JOINED', 'Join the room first'] as const
const capabilities: readonly RoomCapability[] = ['resume', 'multi']

export function createSession(connection: Connection<RoomServerMessage>, key: RoomKey, deps: SessionDeps): Session {
  const { findNamespace, access, audience, routes } = deps
  const { id: connectionId } = connection
  const socket: RoomSocket = { connection, key, isMulti: false, isSlow: false }
  let asked: ReadonlySet<RoomCapability> = new Set()
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
   * Continues with a rule's result, synchronously where the rule is (most are), so that a message costs no tick of the
   * event loop. Later messages of the socket wait for an asynchronous rule. `unavailable` runs where it cannot decide.
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

  /** Whether the join rule permits the user. */
  function admit(auth: Auth): boolean | Promise<boolean> {
    const namespace = findNamespace(key.namespace)
    return namespace !== null && access.mayJoin(namespace, key.id, auth)
  }

  const join = (auth: Auth, { resume }: ReceivedJoin): void | Promise<void> =>
    decided(
      admit(auth),
      (isAllowed) => {
        if (!isAllowed) return turnAway()
        hasJoined = true
        tell({ type: 'join', connectionId, auth, resume: asked.has('resume') ? resume : null })
      },
      sayUnavailable,
    )

  /** `message` is the message as received: `actionType` is returned as it was sent. */
  function refuseAction(message: JsonObject, requestId: string, code: RoomErrorCode, text: string): void {
    connection.send({ type: 'action_error', requestId, actionType: message.actionType ?? null, code, message: text })
  }

  function act(auth: Auth, message: Required<SendMessage>, bytes: number): void | Promise<void> {
    const { actionType, payload, requestId } = message
    const refuse = (code: RoomErrorCode, text: string): void =>
      connection.send({ type: 'action_error', requestId, actionType, code, message: text })
    if (!hasJoined) return refuse('NOT_JOINED', 'Join the room first')
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

  /** A sender that gave a `requestId` waits for an answer to it. */
  function refuseSignal(requestId: unknown, code: RoomErrorCode, message: string): void {
    if (isName(requestId)) connection.send({ type: 'signal_error', requestId, code, message })
    else connection.error(code, message)
  }

  function signal(auth: Auth, message: ReceivedSignal, bytes: number): void | Promise<void> {
    const { type, event, payload, to, includeSelf, requestId } = message
    const refuse = (code: RoomErrorCode, text: string): void => refuseSignal(requestId, code, text)
    if (!hasJoined) return refuse('NOT_JOINED', 'Join the room first')
    const namespace = findNamespace(key.namespace)
    return decided(
      namespace !== null && access.maySignal(namespace, key.id, auth, event, payload),
      (isAllowed) => {
        if (!isAllowed) refuse('SIGNAL_DENIED', 'You may not send this signal')
        else if (!routes.tell(socket, { type, connectionId, event, payload, to, includeSelf, requestId, bytes }))
          refuse('RATE_LIMITED', 'Too much waits for the room')
      },
      () => refuse('UNAVAILABLE', 'Not available right now; try again later'),
    )
  }

  function refuseInvalid({ of, problem }: InvalidMessage, message: JsonObject): void {
    const { requestId } = message
    if (of === 'signal' && !hasJoined) refuseSignal(requestId, ...notJoined)
    else if (of === 'signal') refuseSignal(requestId, 'INVALID_SIGNAL', problem)
    else if (isName(requestId)) refuseAction(message, requestId, 'INVALID_ACTION', problem)
    else connection.error('INVALID_ACTION', problem)
  }

  function dispatch(auth: Auth, message: ReceivedMessage, received: JsonObject, bytes: number): void | Promise<void> {
    switch (message.type) {
      case 'join':
        return join(auth, message)
      case 'send':
        return act(auth, message, bytes)
      case 'leave':
        return hasJoined ? tell({ type: 'leave', connectionId }) : connection.error(...notJoined)
      case 'member_state': {
        const { type, state } = message
        return hasJoined ? tell({ type, connectionId, state, bytes }) : connection.error(...notJoined)
      }
      case 'signal':
        return signal(auth, message, bytes)
      case 'invalid':
        return refuseInvalid(message, received)
      default:
        message satisfies never
    }
  }

  function review(): void | Promise<void> {
    const { caller } = connection
    if (!hasJoined || caller.kind !== 'user') return
    return decided(
      admit(caller.auth),
      (isAllowed) => {
        if (!isAllowed) turnAway()
      },
      // Without a decision the user must leave.
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
    review: () => connection.enqueue(review),
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
    onMessage(type, received, chars) {
      const message = parseClientMessage(type, received)
      const { caller } = connection
      if (!message) connection.error('UNKNOWN_TYPE', 'There is no message of this type')
      else if (caller.kind === 'user') return dispatch(caller.auth, message, received, chars)
      else if (caller.kind === 'service') connection.error('UNAUTHENTICATED', 'A room is for users')
      else {
        connection.error('NOT_AUTHENTICATED', 'Authenticate first')
        connection.close(closeCodes.badMessage, 'NOT_AUTHENTICATED')
      }
    },
    onRateLimited(type, message) {
      // A client that sent a request waits for its answer.
      const { requestId } = message
      if (!isName(requestId)) return
      if (type === 'send') refuseAction(message, requestId, 'RATE_LIMITED', 'Too many messages')
      if (type === 'signal') refuseSignal(requestId, 'RATE_LIMITED', 'Too many messages')
    },
    onDrain() {
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
