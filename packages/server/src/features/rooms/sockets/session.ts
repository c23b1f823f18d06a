/** Parses and authorizes the messages of one socket (protocol version 2) and forwards them as commands to its room. */
import type { Auth, UserCaller } from '../../../access/caller.ts'
import type { RoomNamespace } from '../../../config/sections/rooms/rooms.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import { badRequest } from '../../../errors.ts'
import type { JsonObject } from '../../../http/input/body.ts'
import type { Connection, SocketHandler } from '../../../http/sockets/socket-handler.ts'
import { closeCodes } from '../../../http/sockets/socket-protocol.ts'
import { socketBacklogBytesMax } from '../../../limits/sockets.ts'
import { actionDenied, type RoomAccessCheck, rulesUnavailable } from '../access.ts'
import type { RoomErrorCode } from '../engine/messages/messages.ts'
import { type RoomCommand, type RoomKey, roomName } from '../engine/ports.ts'
import type { LocalMembers, RoomSocket } from '../nodes/local-members.ts'
import type { RoomLocator } from '../nodes/room-locator.ts'
import type { RoomCapability, RoomEncoding, RoomServerMessage, SendMessage } from '../protocol.ts'
import {
  type InvalidMessage,
  isName,
  parseClientMessage,
  parsePacked,
  type ReceivedJoin,
  type ReceivedMessage,
  type ReceivedSignal,
} from './parse-message.ts'

export interface SessionDeps {
  /** The namespace of the room as currently configured; null if it is not configured any more. */
  readonly findNamespace: (name: string) => RoomNamespace | null
  readonly access: RoomAccessCheck
  readonly localMembers: LocalMembers
  readonly locator: RoomLocator
}

/** A command that an access rule must allow. */
type RuledCommand = Extract<RoomCommand, { type: 'act' | 'signal' }>

const notJoined = ['NOT_JOINED', 'Join the room first'] as const
const overloaded = ['RATE_LIMITED', 'The room is overloaded; retry later'] as const
const denials = { act: actionDenied, signal: ['SIGNAL_DENIED', 'The access rule denies this signal'] } as const
const capabilities: readonly RoomCapability[] = ['resume', 'multi', 'batch']
const encodings: readonly RoomEncoding[] = ['json', 'msgpack']

export class RoomSession implements SocketHandler<RoomServerMessage> {
  private readonly socket: RoomSocket
  private granted: ReadonlySet<RoomCapability> = new Set()
  private hasJoined = false

  constructor(
    private readonly connection: Connection<RoomServerMessage>,
    private readonly key: RoomKey,
    private readonly deps: SessionDeps,
  ) {
    this.socket = {
      connection,
      key,
      roomName: roomName(key),
      delivery: 'plain',
      answers: null,
      located: null,
      isSlow: false,
    }
    deps.localMembers.enter(this.socket)
  }

  get messageRate(): number {
    return this.findNamespace()?.messageRate ?? 0
  }

  /** A `sync` can be as large as two states. */
  get backlogBytesMax(): number {
    return socketBacklogBytesMax + 2 * (this.findNamespace()?.maxStateBytes ?? 0)
  }

  /** Evaluates the join rule again, after the configuration changed. */
  review(): Promise<void> {
    return this.connection.enqueue(() => this.checkJoinRule())
  }

  onOpen(): void {}

  onAuth(
    _: UserCaller,
    isRefresh: boolean,
    { caps, encoding }: JsonObject,
  ): { connectionId: string; caps?: readonly RoomCapability[]; encoding?: RoomEncoding } {
    const connectionId = this.connection.id
    if (isRefresh) return { connectionId }
    const isPacked = encoding === 'msgpack'
    const grantable = isPacked ? capabilities.filter((name) => name !== 'multi') : capabilities
    this.granted = new Set(grantable.filter((name) => Array.isArray(caps) && caps.includes(name)))
    this.socket.delivery = isPacked ? 'packed' : this.granted.has('multi') ? 'multi' : 'plain'
    if (this.granted.has('batch')) this.deps.localMembers.batch(this.socket)
    const granted = this.granted.size > 0 ? { caps: [...this.granted] } : {}
    return { connectionId, ...granted, ...(isPacked ? { encoding } : {}) }
  }

  checkAuth({ encoding }: JsonObject): void {
    if (encoding !== undefined && !encodings.some((name) => name === encoding))
      throw badRequest(`encoding must be one of ${encodings.join(', ')}`)
  }

  parseBytes(bytes: Uint8Array): JsonObject | null {
    return this.socket.delivery === 'packed' ? parsePacked(bytes) : null
  }

  async afterAuth(isRefresh: boolean): Promise<void> {
    const { caller, id: connectionId } = this.connection
    if (!isRefresh || !this.hasJoined || caller.kind !== 'user') return
    await this.checkJoinRule()
    if (this.connection.isOpen) this.forward({ type: 'auth', connectionId, auth: caller.auth })
  }

  onMessage(type: string, received: JsonObject, chars: number): void | Promise<void> {
    const { connection } = this
    const { caller } = connection
    const message = parseClientMessage(type, received)
    if (!message) connection.error('UNKNOWN_TYPE', `Unknown message type "${type.slice(0, 50)}"`)
    else if (caller.kind === 'user') return this.dispatch(caller.auth, message, received, chars)
    else if (caller.kind === 'service')
      connection.error('UNAUTHENTICATED', 'Service keys cannot join rooms; authenticate with the token of a user')
    else {
      connection.error('NOT_AUTHENTICATED', 'Authenticate first')
      connection.close(closeCodes.badMessage, 'NOT_AUTHENTICATED')
    }
  }

  /** Answers a dropped request, since its sender waits for a response. */
  onRateLimited(type: string, message: JsonObject): void {
    const { requestId } = message
    if (!isName(requestId)) return
    if (type === 'send') this.rejectAction(message, requestId, 'RATE_LIMITED', 'Too many messages')
    if (type === 'signal') this.rejectSignal(requestId, 'RATE_LIMITED', 'Too many messages')
  }

  onDrain(): void {
    if (!this.socket.isSlow) return
    this.socket.isSlow = false
    this.forward({ type: 'drained', connectionId: this.connection.id })
  }

  onClose(): void {
    this.deps.locator.leave(this.socket)
    this.deps.localMembers.leave(this.socket)
  }

  private findNamespace(): RoomNamespace | null {
    return this.deps.findNamespace(this.key.namespace)
  }

  private dispatch(auth: Auth, message: ReceivedMessage, received: JsonObject, bytes: number): void | Promise<void> {
    const connectionId = this.connection.id
    switch (message.type) {
      case 'join':
        return this.join(auth, message)
      case 'send':
        return this.act(auth, message, bytes)
      case 'leave':
        return this.forwardJoined({ type: 'leave', connectionId })
      case 'member_state': {
        const { type, state } = message
        return this.forwardJoined({ type, connectionId, state, bytes })
      }
      case 'signal':
        return this.signal(auth, message, bytes)
      case 'invalid':
        return this.rejectInvalid(message, received)
      default:
        message satisfies never
    }
  }

  private join(auth: Auth, { resume }: ReceivedJoin): void | Promise<void> {
    const { connection } = this
    return this.decide(
      this.mayJoin(auth),
      (isAllowed) => {
        if (!isAllowed) return this.rejectJoin()
        this.hasJoined = true
        const position = this.granted.has('resume') ? resume : null
        this.forward({ type: 'join', connectionId: connection.id, auth, resume: position })
      },
      () => connection.error(...rulesUnavailable),
    )
  }

  private act(auth: Auth, message: Required<SendMessage>, bytes: number): void | Promise<void> {
    const { actionType, payload, requestId } = message
    const command = { type: 'act', connectionId: this.connection.id, actionType, payload, requestId, bytes } as const
    if (!this.hasJoined) return this.reject(command, notJoined)
    const namespace = this.findNamespace()
    const { access } = this.deps
    return this.forwardIfAllowed(
      command,
      namespace !== null && access.mayAct(namespace, this.key.id, auth, actionType, payload),
    )
  }

  private signal(auth: Auth, message: ReceivedSignal, bytes: number): void | Promise<void> {
    const { event, payload } = message
    const command = { ...message, connectionId: this.connection.id, bytes }
    if (!this.hasJoined) return this.reject(command, notJoined)
    const namespace = this.findNamespace()
    const { access } = this.deps
    return this.forwardIfAllowed(
      command,
      namespace !== null && access.maySignal(namespace, this.key.id, auth, event, payload),
    )
  }

  /** Forwards a command of a joined socket if its rule allows it. */
  private forwardIfAllowed(command: RuledCommand, allowed: boolean | Promise<boolean>): void | Promise<void> {
    return allowed instanceof Promise ? this.forwardLater(command, allowed) : this.forwardRuled(command, allowed)
  }

  private forwardLater(command: RuledCommand, allowed: Promise<boolean>): void | Promise<void> {
    return this.decide(
      allowed,
      (isAllowed) => this.forwardRuled(command, isAllowed),
      () => this.reject(command, rulesUnavailable),
    )
  }

  private forwardRuled(command: RuledCommand, isAllowed: boolean): void {
    if (!isAllowed) this.reject(command, denials[command.type])
    else if (!this.deps.locator.send(this.socket, command)) this.reject(command, overloaded)
  }

  /**
   * Continues with the result of a rule: synchronously where the rule is synchronous, as most are, so that a message
   * costs no tick of the event loop. Later messages of the socket wait for an asynchronous rule. `onUnavailable` runs
   * if the rule cannot be evaluated.
   */
  private decide(
    allowed: boolean | Promise<boolean>,
    proceed: (isAllowed: boolean) => void,
    onUnavailable: () => void,
  ): void | Promise<void> {
    if (!(allowed instanceof Promise)) return proceed(allowed)
    return allowed.then(
      (isAllowed) => {
        if (this.connection.isOpen) proceed(isAllowed)
      },
      (error: unknown) => {
        if (!(error instanceof EngineError)) throw error
        if (this.connection.isOpen) onUnavailable()
      },
    )
  }

  private mayJoin(auth: Auth): boolean | Promise<boolean> {
    const namespace = this.findNamespace()
    return namespace !== null && this.deps.access.mayJoin(namespace, this.key.id, auth)
  }

  /** Disconnects a joined user whom the join rule does not allow any more, or for whom it cannot be evaluated. */
  private checkJoinRule(): void | Promise<void> {
    const { caller } = this.connection
    if (!this.hasJoined || caller.kind !== 'user') return
    return this.decide(
      this.mayJoin(caller.auth),
      (isAllowed) => {
        if (!isAllowed) this.rejectJoin()
      },
      () => this.rejectJoin(),
    )
  }

  private forward(command: RoomCommand): void {
    if (!this.deps.locator.send(this.socket, command)) this.connection.error(...overloaded)
  }

  private forwardJoined(command: RoomCommand): void {
    if (this.hasJoined) this.forward(command)
    else this.connection.error(...notJoined)
  }

  private rejectJoin(): void {
    this.connection.error('JOIN_DENIED', 'The access rule denies joining this room')
    this.connection.close(closeCodes.joinDenied, 'JOIN_DENIED')
  }

  private rejectInvalid({ of, problem }: InvalidMessage, message: JsonObject): void {
    const { requestId } = message
    if (of === 'signal' && !this.hasJoined) this.rejectSignal(requestId, ...notJoined)
    else if (of === 'signal') this.rejectSignal(requestId, 'INVALID_SIGNAL', problem)
    else if (isName(requestId)) this.rejectAction(message, requestId, 'INVALID_ACTION', problem)
    else this.connection.error('INVALID_ACTION', problem)
  }

  private reject(command: RuledCommand, [code, text]: readonly [RoomErrorCode, string]): void {
    if (command.type === 'signal') this.rejectSignal(command.requestId, code, text)
    else this.rejectAction(command, command.requestId, code, text)
  }

  /** `message` is the message as received: its `actionType` is returned as it was sent. */
  private rejectAction(
    message: { readonly actionType?: unknown },
    requestId: string,
    code: RoomErrorCode,
    text: string,
  ): void {
    const actionType = message.actionType ?? null
    this.connection.send({ type: 'action_error', requestId, actionType, code, message: text })
  }

  /** Sends `signal_error` to a sender that gave a `requestId`, otherwise `error`. */
  private rejectSignal(requestId: unknown, code: RoomErrorCode, message: string): void {
    if (isName(requestId)) this.connection.send({ type: 'signal_error', requestId, code, message })
    else this.connection.error(code, message)
  }
}
