/**
 * One WebSocket from its upgrade to its end: what every kind of conversation (subscriptions, rooms) needs of it. Owns
 * the form of messages, who is at the other end and for how long, the rate of what comes in and the bounds of what goes
 * out. What is said is the conversation's matter; `sockets` owns the set of them and the clock's ticks.
 *
 * States: pending (nobody has proved anything yet) → settled → closed. A failed first `auth`, a deadline or a broken
 * message closes; a failed later `auth` changes nothing.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Caller, UserCaller } from '../../access/caller.ts'
import type { Log } from '../../base/log.ts'
import { ApiError } from '../../errors.ts'
import {
  socketBacklogBytesMax,
  socketCloseMs,
  socketMessagesWaitingMax,
  socketPendingMessageBytesMax,
  socketPingMs,
  socketProgressBytes,
  socketSlowMs,
  socketStaleMs,
} from '../../limits/sockets.ts'
import { socketSlowBytes } from '../../limits/subscriptions.ts'
import type { JsonObject } from '../input/body.ts'
import type { Connection, Conversation, ErrorCodeOf } from './conversation.ts'
import { parseMessage } from './socket-message.ts'
import { type CloseCode, closeCodes, type SocketClientMessage, type SocketServerMessage } from './socket-protocol.ts'

/** The runtime's socket, as far as it is used. */
export interface Wire {
  sendText(text: string): number
  close(code: number, reason: string): void
  terminate(): void
  ping(): void
  subscribe(topic: string): void
  unsubscribe(topic: string): void
  getBufferedAmount(): number
}

/** The user a token proves. Rejects with a 401. */
export type Authenticate = (token: string) => UserCaller | Promise<UserCaller>

/** The caller with the role and the claims of now. Rejects with a 401 for one who may not be here any longer. */
export type Renew = (caller: UserCaller) => Promise<UserCaller>

export interface SocketDeps {
  readonly id: string
  /** Before any `auth`: anonymous, or a service key that the upgrade carried. */
  readonly caller: Caller
  /** Whether the key that the upgrade carried is still good. */
  readonly isKeyGood: () => boolean
  readonly authTimeoutMs: number
  readonly authenticate: Authenticate
  readonly renew: Renew
  readonly nowMs: () => number
  readonly log: Log
  /** Called once, when the socket stops being pending or ends. */
  readonly onSettled: () => void
  /** Called when the socket is closed because the other side does not read. */
  readonly onSlow: () => void
  /** Called when the other side has not read what was sent before. */
  readonly onBacklog: () => void
  /** Counts the socket as one of a user's; false where the user has too many. Called once, when the user is known. */
  readonly claimUser: (userId: string) => boolean
}

const nothing = Promise.resolve()

/** Messages that the socket itself processes, `ping` apart: it is answered even beyond the message rate. */
type OwnMessage = Exclude<SocketClientMessage['type'], 'ping'>
const ownMessages: Readonly<Record<OwnMessage, true>> = { auth: true }
const isSocketMessage = (type: string): type is OwnMessage => Object.hasOwn(ownMessages, type)

export class Socket implements Connection {
  readonly id: string
  private conversation: Conversation | null = null
  private wire: Wire | null = null
  private current: Caller
  private isPending = true
  private closing: { readonly code: number; readonly reason: string; readonly atMs: number } | null = null
  private lastHeardMs: number
  private lastPingMs = 0
  private readonly openedAtMs: number
  /** Since when it has been behind without getting on, and how far behind it was then. */
  private slowSinceMs: number | null = null
  private slowBytes = 0
  /** Messages are dealt with one after the other, so that what follows an `auth` is said by whom it proves. */
  private turn: Promise<void> | null = null
  private waiting = 0
  private allowance = 0
  private allowanceAtMs: number
  private hasAuthenticated = false
  private proving = false

  constructor(private readonly deps: SocketDeps) {
    const nowMs = deps.nowMs()
    this.id = deps.id
    this.current = deps.caller
    this.lastHeardMs = nowMs
    this.openedAtMs = nowMs
    this.allowanceAtMs = nowMs
  }

  get caller(): Caller {
    return this.current
  }

  /** Somebody is being asked about: what is heard of them meanwhile is to be asked again (`renew`). */
  get isProving(): boolean {
    return this.proving
  }

  get isOpen(): boolean {
    return this.wire !== null && !this.closing
  }

  get buffered(): number {
    return this.wire?.getBufferedAmount() ?? 0
  }

  /** The runtime has opened the socket. */
  opened(wire: Wire, begin: (connection: Connection) => Conversation): void {
    this.wire = wire
    this.conversation = begin(this)
    this.allowance = this.conversation.messageRate
    if (this.current.kind !== 'anonymous') this.settle()
    // The server began to drain while the upgrade was on its way.
    if (this.closing) wire.close(this.closing.code, this.closing.reason)
    else void this.perform(() => this.conversation?.onOpen())
  }

  send(message: SocketServerMessage | string): void {
    if (!this.wire || this.closing) return
    const sent = this.wire.sendText(typeof message === 'string' ? message : JSON.stringify(message))
    // The runtime says by a negative number that it had to keep the message.
    if (sent < 0) this.deps.onBacklog()
  }

  error(code: ErrorCodeOf<SocketServerMessage>, message: string): void {
    this.send({ type: 'error', code, message })
  }

  close(code: CloseCode, reason: string): void {
    if (this.closing) return
    this.closing = { code, reason, atMs: this.deps.nowMs() }
    this.wire?.close(code, reason)
  }

  /** Ends the socket at once, with everything that was not read: it takes memory that others need. */
  cut(): void {
    this.close(closeCodes.slowConsumer, 'SLOW_CONSUMER')
    this.wire?.terminate()
  }

  settle(): void {
    if (!this.isPending) return
    this.isPending = false
    this.deps.onSettled()
  }

  listen(topic: string): void {
    if (this.isOpen) this.wire?.subscribe(topic)
  }

  unlisten(topic: string): void {
    this.wire?.unsubscribe(topic)
  }

  /** The runtime has received a frame. */
  heard(data: string | Uint8Array, bytesMax: number): void {
    this.lastHeardMs = this.deps.nowMs()
    if (this.closing) return
    const message = parseMessage(data, this.isPending ? Math.min(bytesMax, socketPendingMessageBytesMax) : bytesMax)
    if (message) this.deal(typeof message.type === 'string' ? message.type : '', message, data.length)
    else this.fault(closeCodes.badMessage, 'INVALID_JSON', 'A message must be a JSON object of a bearable size')
  }

  private deal(messageType: string, message: JsonObject, chars: number): void {
    if (messageType === 'ping') {
      this.send('{"type":"pong"}')
      return
    }
    if (!this.mayBeDealtWith(messageType)) {
      this.error('RATE_LIMITED', 'Too many messages')
      this.conversation?.onExcess?.(messageType, message)
      return
    }
    if (!isSocketMessage(messageType)) {
      void this.perform(() => this.conversation?.onMessage(messageType, message, chars))
      return
    }
    switch (messageType) {
      case 'auth':
        void this.perform(() => this.authenticate(message))
        break
      default:
        messageType satisfies never
    }
  }

  /** Says what is wrong and closes. */
  private fault(code: CloseCode, reason: ErrorCodeOf<SocketServerMessage>, message: string): void {
    this.error(reason, message)
    this.close(code, reason)
  }

  /** The other side has answered a ping. */
  answered(): void {
    this.lastHeardMs = this.deps.nowMs()
  }

  /** The runtime could send everything. */
  drained(): void {
    if (this.buffered > 0) return
    this.slowSinceMs = null
    this.conversation?.onDrained()
  }

  /** The socket is gone. */
  ended(): void {
    this.closing ??= { code: 1006, reason: '', atMs: 0 }
    this.wire = null
    this.settle()
    this.conversation?.onClose()
    this.conversation = null
  }

  /** Looks at every deadline; to be called a few times a second. */
  tick(nowMs: number): void {
    if (this.closing) {
      // A close that is not answered: whoever it is does not read.
      if (nowMs - this.closing.atMs >= socketCloseMs) this.wire?.terminate()
      return
    }
    if (this.isPending && nowMs - this.openedAtMs >= this.deps.authTimeoutMs)
      this.fault(closeCodes.authTimeout, 'AUTH_TIMEOUT', 'Authentication did not come in time')
    if (this.current.kind === 'user' && nowMs >= this.current.expiresAtMs) this.end('Token expired')
    if (this.current.kind === 'service' && !this.deps.isKeyGood()) this.end('Invalid service key')
    this.checkSilence(nowMs - this.lastHeardMs, nowMs)
    this.checkBacklog(nowMs)
  }

  private checkSilence(silentMs: number, nowMs: number): void {
    if (silentMs >= socketStaleMs) this.close(closeCodes.stale, 'STALE')
    if (silentMs < socketStaleMs / 2 || nowMs - this.lastPingMs < socketPingMs || !this.isOpen) return
    this.lastPingMs = nowMs
    this.wire?.ping()
  }

  /** The caller may not be here any longer. */
  end(reason: string): void {
    this.send({ type: 'auth_error', message: reason })
    this.fault(closeCodes.authFailed, 'AUTH_FAILED', reason)
  }

  private checkBacklog(nowMs: number): void {
    const { buffered } = this
    if (!this.isOpen) return
    if (buffered <= socketSlowBytes) {
      this.slowSinceMs = null
      return
    }
    if (this.slowSinceMs === null || buffered <= this.slowBytes - socketProgressBytes) {
      this.slowSinceMs = nowMs
      this.slowBytes = buffered
    }
    const most = Math.max(socketBacklogBytesMax, this.conversation?.backlogBytesMax ?? 0)
    if (buffered <= most && nowMs - this.slowSinceMs < socketSlowMs) return
    this.deps.onSlow()
    this.close(closeCodes.slowConsumer, 'SLOW_CONSUMER')
  }

  /** A bucket that holds a second's messages and fills at their rate. */
  private mayBeDealtWith(type: string): boolean {
    if (this.waiting >= socketMessagesWaitingMax) return false
    const rate = this.conversation?.messageRate ?? 0
    const nowMs = this.deps.nowMs()
    const elapsedMs = Math.max(0, nowMs - this.allowanceAtMs)
    this.allowance = Math.min(rate, this.allowance + (elapsedMs * rate) / 1000)
    this.allowanceAtMs = nowMs
    if (type === 'auth') return true
    if (this.allowance < 1) return false
    this.allowance -= 1
    return true
  }

  perform(task: () => void | Promise<void>): Promise<void> {
    const attempt = (): void | Promise<void> => {
      try {
        return task()
      } catch (error) {
        this.fail(error)
      }
    }
    const done = this.turn ? this.turn.then(attempt) : attempt()
    if (!(done instanceof Promise)) return nothing
    this.waiting += 1
    const turn = done
      .catch((error) => this.fail(error))
      .then(() => {
        this.waiting -= 1
        if (this.turn === turn) this.turn = null
      })
    this.turn = turn
    return turn
  }

  private fail(error: unknown): void {
    this.deps.log.error('socket.failed', { socketId: this.id, error })
    this.close(closeCodes.internal, 'INTERNAL')
  }

  private async authenticate(message: JsonObject): Promise<void> {
    const { token } = message
    this.proving = true
    try {
      const caller = await this.deps.authenticate(typeof token === 'string' ? token : '')
      if (!this.isOpen || !this.conversation) return
      const before = this.current
      if (before.kind === 'service' || (before.kind === 'user' && before.auth.id !== caller.auth.id))
        return this.error('AUTH_REFRESH_FAILED', 'The socket belongs to another user')
      await this.become(caller, this.conversation, message)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (this.current.kind === 'anonymous') this.end(error.message)
      else this.error('AUTH_REFRESH_FAILED', error.message)
    } finally {
      this.proving = false
    }
  }

  private async become(caller: UserCaller, conversation: Conversation, message: JsonObject): Promise<void> {
    const isRefresh = this.hasAuthenticated
    if (!isRefresh && !this.deps.claimUser(caller.auth.id))
      return this.fault(closeCodes.tooMany, 'TOO_MANY_SOCKETS', 'The user has too many open sockets')
    this.hasAuthenticated = true
    this.current = caller
    this.settle()
    const more = await conversation.onAuth(caller, isRefresh, message)
    this.send({ type: isRefresh ? 'auth_refreshed' : 'auth_success', userId: caller.auth.id, ...more })
    await this.conversation?.afterAuth(isRefresh)
  }

  /** Role or claims of the user may be others: as if it had authenticated anew, with a token of now. */
  renew(): Promise<void> {
    return this.perform(async () => {
      const before = this.current
      if (before.kind !== 'user') return
      try {
        const caller = await this.deps.renew(before)
        if (this.isOpen && this.conversation && !isDeepStrictEqual(caller, before))
          await this.become(caller, this.conversation, {})
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        this.end(error.message)
      }
    })
  }
}
