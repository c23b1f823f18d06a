/**
 * A WebSocket that authenticates, renews its authentication, detects dead connections, and reconnects with backoff
 * until it is stopped. Live lists and rooms define what their messages mean.
 */
import type { Core } from './core.ts'
import { failure } from './error.ts'
import { backoffMs } from './transport.ts'

export type Message = { readonly type?: unknown; readonly [member: string]: unknown }

export interface SocketEvents {
  /** Members added to the first `auth`. */
  readonly auth?: object
  /** The socket is open, and authenticated unless the user is signed out. */
  onReady(): void
  onMessage(message: Message): void
  /** The connection was lost; another attempt follows. */
  onDown(): void
  /** The server ended the connection for good; no other attempt follows. */
  onEnd(code: number, reason: string): void
}

/** Interval of pings, and how long an answer may take, in milliseconds. The server closes sockets silent for 45 s. */
const pingIntervalMs = 25_000
const pongWaitMs = 10_000

/** Close codes after which another attempt would have the same result. */
const finalCodes = [4000, 4003, 4004, 4005]
const authFailedCode = 4002

type SocketConstructor = new (url: string, options?: unknown) => WebSocket

export class ReconnectingSocket {
  readonly #core: Core
  readonly #path: string
  readonly #events: SocketEvents
  readonly #cleanups: (() => void)[] = []
  #socket: WebSocket | null = null
  #retry: ReturnType<typeof setTimeout> | undefined
  #ping: ReturnType<typeof setInterval> | undefined
  #pong: ReturnType<typeof setTimeout> | undefined
  #attempts = 0
  #token: string | null = null
  #isReady = false
  #isStopped = true

  /** `path` begins with a slash. */
  constructor(core: Core, path: string, events: SocketEvents) {
    this.#core = core
    this.#path = path
    this.#events = events
  }

  get isReady(): boolean {
    return this.#isReady
  }

  start(): void {
    if (!this.#isStopped) return
    this.#isStopped = false
    this.#cleanups.push(
      this.#core.token.add(() => void this.#renewAuth()),
      (this.#core.options.lifecycle ?? pageLifecycle)((event) => (event === 'wake' ? this.#wake() : this.#sleep())),
    )
    void this.#connect()
  }

  stop(): void {
    this.#isStopped = true
    for (const cleanUp of this.#cleanups.splice(0)) cleanUp()
    this.#drop()
  }

  /** Connects again, with the current credentials. */
  restart(): void {
    if (this.#isStopped) return
    this.#drop()
    this.#attempts = 0
    void this.#connect()
  }

  /** Sends a message. Does nothing while the socket is not ready: `onReady` sends again what still matters. */
  send(message: object): void {
    if (this.#isReady) this.#write(message)
  }

  async #connect(): Promise<void> {
    clearTimeout(this.#retry)
    const { url, options, transport } = this.#core
    const Constructor = (options.WebSocket ?? globalThis.WebSocket) as SocketConstructor | undefined
    if (!Constructor) throw failure('feature-not-loaded', 'This runtime has no WebSocket; pass one as `WebSocket`')
    const attempt = {}
    this.#current = attempt
    let token: string | null = null
    try {
      if (!options.serviceKey) token = (await transport.credentials?.token()) ?? null
    } catch {
      // The token could not be refreshed, because the server is away.
      if (this.#current === attempt) this.#reconnect()
      return
    }
    if (this.#current !== attempt || this.#isStopped) return
    this.#token = token
    const headers = options.serviceKey ? { headers: { 'X-Platform-Service-Key': options.serviceKey } } : undefined
    const socket = new Constructor(url.replace(/^http/, 'ws') + this.#path, headers)
    this.#socket = socket
    socket.onopen = () => {
      if (token === null) this.#ready()
      else this.#write({ type: 'auth', token, ...this.#events.auth })
    }
    socket.onmessage = ({ data }) => this.#receive(data)
    socket.onclose = ({ code, reason }) => void this.#onClose(socket, code, reason)
    socket.onerror = () => undefined
  }

  /** Identifies the attempt in progress; an older one has no effect any more. */
  #current: object | null = null

  #ready(): void {
    this.#isReady = true
    this.#attempts = 0
    this.#ping = setInterval(() => this.#checkAlive(), pingIntervalMs)
    this.#events.onReady()
  }

  #receive(data: unknown): void {
    clearTimeout(this.#pong)
    this.#pong = undefined
    let parsed: unknown
    try {
      parsed = JSON.parse(String(data))
    } catch {
      return
    }
    for (const message of (Array.isArray(parsed) ? parsed : [parsed]) as Message[]) {
      if (message?.type === 'auth_success' && !this.#isReady) this.#ready()
      if (message) this.#events.onMessage(message)
    }
  }

  async #onClose(socket: WebSocket, code: number, reason: string): Promise<void> {
    if (socket !== this.#socket) return
    const token = this.#token
    this.#drop()
    if (finalCodes.includes(code)) return this.#events.onEnd(code, reason)
    this.#events.onDown()
    const attempt = {}
    this.#current = attempt
    // Decides whether the session has ended; if so, the identity changes.
    if (code === authFailedCode && token) await this.#core.transport.credentials?.renew(token).catch(() => undefined)
    if (this.#current === attempt) this.#reconnect()
  }

  #reconnect(): void {
    if (this.#isStopped) return
    this.#retry = setTimeout(() => void this.#connect(), backoffMs(this.#attempts++))
  }

  /** Forgets the socket and closes it. */
  #drop(): void {
    const socket = this.#socket
    this.#socket = null
    this.#current = null
    this.#isReady = false
    clearTimeout(this.#retry)
    clearInterval(this.#ping)
    clearTimeout(this.#pong)
    this.#pong = undefined
    socket?.close()
  }

  /** Sends a ping; without an answer the connection is dead, which TCP may report minutes later or never. */
  #checkAlive(): void {
    this.#write({ type: 'ping' })
    void this.#renewAuth()
    this.#pong ??= setTimeout(() => {
      const socket = this.#socket
      if (socket) void this.#onClose(socket, 1006, '')
    }, pongWaitMs)
  }

  /** Sends the current token if the socket has an older one, so that the server does not close it at its expiry. */
  async #renewAuth(): Promise<void> {
    const { transport, options } = this.#core
    const token = options.serviceKey ? null : await transport.credentials?.token().catch(() => null)
    if (!token || token === this.#token || !this.#isReady || this.#token === null) return
    this.#token = token
    this.#write({ type: 'auth', token })
  }

  #wake(): void {
    if (this.#isReady) this.#checkAlive()
    else if (!this.#socket && !this.#isStopped) this.restart()
  }

  /** Closes the socket until the app wakes: the system would cut it without a notice. */
  #sleep(): void {
    if (this.#isStopped) return
    this.#drop()
    this.#events.onDown()
  }

  #write(message: object): void {
    if (this.#socket?.readyState === 1) this.#socket.send(JSON.stringify(message))
  }
}

/** Wakes when the device is online or the page visible again. */
function pageLifecycle(listener: (event: 'wake') => void): () => void {
  if (typeof addEventListener !== 'function' || typeof document !== 'object') return () => undefined
  const onOnline = (): void => listener('wake')
  const onVisible = (): void => {
    if (document.visibilityState === 'visible') listener('wake')
  }
  addEventListener('online', onOnline)
  document.addEventListener('visibilitychange', onVisible)
  return () => {
    removeEventListener('online', onOnline)
    document.removeEventListener('visibilitychange', onVisible)
  }
}
