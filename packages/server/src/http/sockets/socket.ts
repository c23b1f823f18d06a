/**
 * One WebSocket from upgrade to close, for any protocol (subscriptions, rooms): parses frames, authenticates and
 * reauthenticates the caller, limits the rate of incoming messages and the backlog of outgoing ones, and checks
 * keep-alive. The `SocketHandler` processes the protocol's messages; `sockets` owns the set of sockets and the timer.
 *
 * States: pending (neither authenticated nor subscribed) → active → closed. A failed first `auth`, a missed deadline or
 * a malformed message closes the socket; a failed later `auth` changes nothing.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Caller, UserCaller } from '../../access/caller.ts'
import type { Clock } from '../../base/clock.ts'
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
import type { Connection, ErrorCodeOf, SocketHandler } from './socket-handler.ts'
import { parseMessage } from './socket-message.ts'
import { type CloseCode, closeCodes, type SocketClientMessage, type SocketServerMessage } from './socket-protocol.ts'

/** The part of the runtime's WebSocket that is used here. */
export interface RuntimeSocket {
  sendText(text: string): number
  sendBinary(bytes: Uint8Array<ArrayBuffer>): number
  close(code: number, reason: string): void
  terminate(): void
  ping(): void
  subscribe(topic: string): void
  unsubscribe(topic: string): void
  getBufferedAmount(): number
}

/** Verifies an access token. Throws or rejects with 401. */
export type Authenticate = (token: string) => UserCaller | Promise<UserCaller>

/** Loads the caller's current role and claims. Rejects with 401 if the session has ended. */
export type RefreshClaims = (caller: UserCaller) => Promise<UserCaller>

export interface SocketDeps {
  readonly id: string
  /** The caller before any `auth`: anonymous, or the service key of the upgrade request. */
  readonly caller: Caller
  /** Whether the service key of the upgrade request is still valid. */
  readonly isKeyValid: () => boolean
  readonly authTimeoutMs: number
  readonly authenticate: Authenticate
  readonly renew: RefreshClaims
  /** Shared by all sockets: a function of each would be one more object to load for each message. */
  readonly clock: Clock
  readonly log: Log
  /** Called once, when the socket is no longer pending: it is active or closed. */
  readonly onActive: () => void
  /** Called when the socket is closed as a slow consumer. */
  readonly onSlow: () => void
  /** Called when a message was buffered because the client has not read earlier ones. */
  readonly onBacklog: () => void
  /** Counts the socket against the user's limit; false if the user has too many. Called once, at authentication. */
  readonly claimUser: (userId: string) => boolean
}

const resolved = Promise.resolve()

/** Messages that the socket processes itself, except `ping`, which is answered even beyond the rate limit. */
type OwnMessage = Exclude<SocketClientMessage['type'], 'ping'>
const ownMessages: Readonly<Record<OwnMessage, true>> = { auth: true }
const isSocketMessage = (type: string): type is OwnMessage => Object.hasOwn(ownMessages, type)

export class Socket implements Connection {
  readonly id: string
  private readonly clock: Clock
  private handler: SocketHandler | null = null
  private runtimeSocket: RuntimeSocket | null = null
  private current: Caller
  private isPending = true
  private closing: { readonly code: number; readonly reason: string; readonly atMs: number } | null = null
  private lastReceivedMs: number
  private lastPingMs = 0
  private readonly openedAtMs: number
  /** Since when the client has not made progress on its backlog, and the size of the backlog then. */
  private slowSinceMs: number | null = null
  private slowBytes = 0
  /** The last task of the queue. Messages are processed in order, so those after an `auth` have its caller. */
  private queueTail: Promise<void> | null = null
  private queued = 0
  private allowance = 0
  private allowanceAtMs: number
  private hasAuthenticated = false
  private authenticating = false

  constructor(private readonly deps: SocketDeps) {
    const nowMs = deps.clock.now()
    this.clock = deps.clock
    this.id = deps.id
    this.current = deps.caller
    this.lastReceivedMs = nowMs
    this.openedAtMs = nowMs
    this.allowanceAtMs = nowMs
  }

  get caller(): Caller {
    return this.current
  }

  /** Whether a token is being verified: claims that change meanwhile must be loaded again afterwards. */
  get isAuthenticating(): boolean {
    return this.authenticating
  }

  get isOpen(): boolean {
    return this.runtimeSocket !== null && !this.closing
  }

  get buffered(): number {
    return this.runtimeSocket?.getBufferedAmount() ?? 0
  }

  /** The upgrade is complete. */
  onOpen(runtimeSocket: RuntimeSocket, createHandler: (connection: Connection) => SocketHandler): void {
    this.runtimeSocket = runtimeSocket
    this.handler = createHandler(this)
    this.allowance = this.handler.messageRate
    if (this.current.kind !== 'anonymous') this.markActive()
    // The server began to drain during the upgrade.
    if (this.closing) runtimeSocket.close(this.closing.code, this.closing.reason)
    else void this.enqueue(() => this.handler?.onOpen())
  }

  send(message: SocketServerMessage | string): void {
    if (!this.runtimeSocket || this.closing) return
    this.noteSent(this.runtimeSocket.sendText(typeof message === 'string' ? message : JSON.stringify(message)))
  }

  sendBytes(bytes: Uint8Array): void {
    if (!this.runtimeSocket || this.closing) return
    this.noteSent(this.runtimeSocket.sendBinary(bytes as Uint8Array<ArrayBuffer>))
  }

  /** The runtime returns a negative number if it buffered the message. */
  private noteSent(sent: number): void {
    if (sent < 0) this.deps.onBacklog()
  }

  error(code: ErrorCodeOf<SocketServerMessage>, message: string): void {
    this.send({ type: 'error', code, message })
  }

  close(code: CloseCode, reason: string): void {
    if (this.closing) return
    this.closing = { code, reason, atMs: this.clock.now() }
    this.runtimeSocket?.close(code, reason)
  }

  /** Closes the socket at once and discards its unread messages to free memory. */
  terminate(): void {
    this.close(closeCodes.slowConsumer, 'SLOW_CONSUMER')
    this.runtimeSocket?.terminate()
  }

  markActive(): void {
    if (!this.isPending) return
    this.isPending = false
    this.deps.onActive()
  }

  subscribe(topic: string): void {
    if (this.isOpen) this.runtimeSocket?.subscribe(topic)
  }

  unsubscribe(topic: string): void {
    this.runtimeSocket?.unsubscribe(topic)
  }

  /** Processes a received frame. */
  onFrame(data: string | Uint8Array, bytesMax: number): void {
    this.lastReceivedMs = this.clock.now()
    if (this.closing) return
    const most = this.isPending ? Math.min(bytesMax, socketPendingMessageBytesMax) : bytesMax
    const message = typeof data === 'string' ? parseMessage(data, most) : this.parseBytes(data, most)
    if (message) this.dispatch(typeof message.type === 'string' ? message.type : '', message, data.length)
    else
      this.rejectAndClose(
        closeCodes.badMessage,
        'INVALID_JSON',
        `Message must be a JSON object of at most ${most} bytes`,
      )
  }

  private dispatch(messageType: string, message: JsonObject, chars: number): void {
    if (messageType === 'ping') {
      this.send('{"type":"pong"}')
      return
    }
    if (!this.takeFromRateLimit(messageType)) {
      this.error('RATE_LIMITED', 'Too many messages')
      this.handler?.onRateLimited?.(messageType, message)
      return
    }
    if (!isSocketMessage(messageType)) {
      if (this.queueTail) this.enqueueMessage(messageType, message, chars)
      else this.processMessage(messageType, message, chars)
      return
    }
    messageType satisfies 'auth'
    void this.enqueue(() => this.authenticate(message))
  }

  private parseBytes(bytes: Uint8Array, bytesMax: number): JsonObject | null {
    return bytes.length > bytesMax ? null : (this.handler?.parseBytes?.(bytes) ?? null)
  }

  /** Sends an error and closes. */
  private rejectAndClose(code: CloseCode, reason: ErrorCodeOf<SocketServerMessage>, message: string): void {
    this.error(reason, message)
    this.close(code, reason)
  }

  /** A ping or pong was received. */
  onPong(): void {
    this.lastReceivedMs = this.clock.now()
  }

  /** The runtime has flushed its buffer. */
  onDrain(): void {
    if (this.buffered > 0) return
    this.slowSinceMs = null
    this.handler?.onDrain()
  }

  /** The socket is closed. */
  onClose(): void {
    this.closing ??= { code: 1006, reason: '', atMs: 0 }
    this.runtimeSocket = null
    this.markActive()
    this.handler?.onClose()
    this.handler = null
  }

  /** Checks every deadline; called a few times per second. */
  tick(nowMs: number): void {
    if (this.closing) {
      // The client does not answer the close frame.
      if (nowMs - this.closing.atMs >= socketCloseMs) this.runtimeSocket?.terminate()
      return
    }
    if (this.isPending && nowMs - this.openedAtMs >= this.deps.authTimeoutMs)
      this.rejectAndClose(closeCodes.authTimeout, 'AUTH_TIMEOUT', 'Authentication timed out')
    if (this.current.kind === 'user' && nowMs >= this.current.expiresAtMs) this.revoke('Token expired')
    if (this.current.kind === 'service' && !this.deps.isKeyValid()) this.revoke('Invalid service key')
    this.checkSilence(nowMs - this.lastReceivedMs, nowMs)
    this.checkBacklog(nowMs)
  }

  private checkSilence(silentMs: number, nowMs: number): void {
    if (silentMs >= socketStaleMs) this.close(closeCodes.stale, 'STALE')
    if (silentMs < socketStaleMs / 2 || nowMs - this.lastPingMs < socketPingMs || !this.isOpen) return
    this.lastPingMs = nowMs
    this.runtimeSocket?.ping()
  }

  /** Closes the socket because the caller's session or key has ended. */
  revoke(reason: string): void {
    this.send({ type: 'auth_error', message: reason })
    this.rejectAndClose(closeCodes.authFailed, 'AUTH_FAILED', reason)
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
    const most = Math.max(socketBacklogBytesMax, this.handler?.backlogBytesMax ?? 0)
    if (buffered <= most && nowMs - this.slowSinceMs < socketSlowMs) return
    this.deps.onSlow()
    this.close(closeCodes.slowConsumer, 'SLOW_CONSUMER')
  }

  /** A token bucket with the capacity of one second. */
  private takeFromRateLimit(type: string): boolean {
    if (this.queued >= socketMessagesWaitingMax) return false
    const rate = this.handler?.messageRate ?? 0
    // The message was received just now.
    const nowMs = this.lastReceivedMs
    const elapsedMs = Math.max(0, nowMs - this.allowanceAtMs)
    this.allowance = Math.min(rate, this.allowance + (elapsedMs * rate) / 1000)
    this.allowanceAtMs = nowMs
    if (type === 'auth') return true
    if (this.allowance < 1) return false
    this.allowance -= 1
    return true
  }

  /** Processes a message of the protocol at once, as most are. It creates no closure, unlike `enqueue`. */
  private processMessage(type: string, message: JsonObject, chars: number): void {
    try {
      const done = this.handler?.onMessage(type, message, chars)
      if (done instanceof Promise) void this.track(done)
    } catch (error) {
      this.fail(error)
    }
  }

  private enqueueMessage(type: string, message: JsonObject, chars: number): void {
    void this.enqueue(() => this.handler?.onMessage(type, message, chars))
  }

  enqueue(task: () => void | Promise<void>): Promise<void> {
    const attempt = (): void | Promise<void> => {
      try {
        return task()
      } catch (error) {
        this.fail(error)
      }
    }
    const done = this.queueTail ? this.queueTail.then(attempt) : attempt()
    return done instanceof Promise ? this.track(done) : resolved
  }

  /** Later tasks wait until this one is done. */
  private track(done: Promise<void>): Promise<void> {
    this.queued += 1
    const tail = done
      .catch((error) => this.fail(error))
      .then(() => {
        this.queued -= 1
        if (this.queueTail === tail) this.queueTail = null
      })
    this.queueTail = tail
    return tail
  }

  private fail(error: unknown): void {
    this.deps.log.error('socket.failed', { socketId: this.id, error })
    this.close(closeCodes.internal, 'INTERNAL')
  }

  private async authenticate(message: JsonObject): Promise<void> {
    const { token } = message
    this.authenticating = true
    try {
      if (!this.hasAuthenticated) this.handler?.checkAuth?.(message)
      const caller = await this.deps.authenticate(typeof token === 'string' ? token : '')
      if (!this.isOpen || !this.handler) return
      const before = this.current
      if (before.kind === 'service' || (before.kind === 'user' && before.auth.id !== caller.auth.id))
        return this.error('AUTH_REFRESH_FAILED', 'This socket is authenticated as another user')
      await this.applyCaller(caller, this.handler, message)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (this.current.kind === 'anonymous') this.revoke(error.message)
      else this.error('AUTH_REFRESH_FAILED', error.message)
    } finally {
      this.authenticating = false
    }
  }

  private async applyCaller(caller: UserCaller, handler: SocketHandler, message: JsonObject): Promise<void> {
    const isRefresh = this.hasAuthenticated
    if (!isRefresh && !this.deps.claimUser(caller.auth.id))
      return this.rejectAndClose(closeCodes.tooMany, 'TOO_MANY_SOCKETS', 'Too many open sockets for this user')
    this.hasAuthenticated = true
    this.current = caller
    this.markActive()
    const more = await handler.onAuth(caller, isRefresh, message)
    this.send({ type: isRefresh ? 'auth_refreshed' : 'auth_success', userId: caller.auth.id, ...more })
    await this.handler?.afterAuth(isRefresh)
  }

  /** Loads the user's role and claims again, and applies them as a new `auth` would. */
  refreshClaims(): Promise<void> {
    return this.enqueue(async () => {
      const before = this.current
      if (before.kind !== 'user') return
      try {
        const caller = await this.deps.renew(before)
        if (this.isOpen && this.handler && !isDeepStrictEqual(caller, before))
          await this.applyCaller(caller, this.handler, {})
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        this.revoke(error.message)
      }
    })
  }
}
