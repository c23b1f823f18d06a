/**
 * A WebSocket that authenticates, renews its authentication, detects dead connections, and reconnects with backoff
 * until it is stopped. Live lists and rooms define what their messages mean.
 */
import type { Core } from './core.ts'
import { backoffMs } from './deadline.ts'
import { failure } from './error.ts'

export type Message = { readonly type?: unknown; readonly [member: string]: unknown }

export interface SocketEvents {
  /** Members added to the first `auth`. */
  readonly auth?: object
  /** The socket is open, and authenticated unless the user is signed out. */
  onReady(): void
  onMessage(message: Message): void
  /** The connection was lost; another attempt follows. */
  onDown(): void
  /** The server ended the connection for good. Without it, attempts continue. */
  onEnd?(): void
}

/** Interval of pings, and how long an answer may take, in milliseconds. The server closes sockets silent for 45 s. */
const pingIntervalMs = 25_000
const answerWaitMs = 10_000

/** Close codes after which another attempt would have the same result. */
const finalCodes = [4000, 4003, 4004, 4005]
const authFailedCode = 4002

type SocketConstructor = new (url: string, options?: unknown) => WebSocket

export class ReconnectingSocket {
  readonly #core: Core
  readonly #path: string
  readonly #events: SocketEvents
  readonly #cleanups: (() => void)[] = []
  #socket: WebSocket | undefined
  #retry: ReturnType<typeof setTimeout> | undefined
  #ping: ReturnType<typeof setInterval> | undefined
  #answer: ReturnType<typeof setTimeout> | undefined
  #attempts = 0
  /** The token that the socket has sent; null where it has none. */
  #token: string | null = null
  /** Identifies the attempt in progress; an older one has no effect any more. */
  #attempt: object | undefined
  #isStopped = true
  isReady = false

  /** `path` begins with a slash. */
  constructor(core: Core, path: string, events: SocketEvents) {
    this.#core = core
    this.#path = path
    this.#events = events
  }

  /** Throws if the runtime has no WebSocket. */
  start(): void {
    if (!this.#isStopped) return
    const { options, token } = this.#core
    if (!this.#WebSocket) throw failure('feature-not-loaded', 'Pass a `WebSocket`; this runtime has none')
    this.#isStopped = false
    this.#cleanups.push(
      token.add(() => void this.#renewAuth()),
      (options.lifecycle ?? pageLifecycle)((event) => (event === 'wake' ? this.#wake() : this.#lose())),
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
    this.#lose()
    this.#attempts = 0
    void this.#connect()
  }

  /** Sends a message. Does nothing while the socket is not ready: `onReady` sends again what still matters. */
  send(message: object): void {
    if (this.isReady) this.#write(message)
  }

  get #WebSocket(): SocketConstructor | undefined {
    return (this.#core.options.WebSocket ?? globalThis.WebSocket) as SocketConstructor | undefined
  }

  async #connect(): Promise<void> {
    const attempt = {}
    this.#attempt = attempt
    const { url, options } = this.#core
    let token: string | null
    try {
      token = await this.#core.accessToken()
    } catch {
      // The token could not be refreshed, because the server is away.
      return this.#reconnect(attempt)
    }
    if (this.#attempt !== attempt) return
    this.#token = token
    const headers = options.serviceKey && { headers: { 'X-Platform-Service-Key': options.serviceKey } }
    const socket = new (this.#WebSocket as SocketConstructor)(url.replace(/^http/, 'ws') + this.#path, headers)
    this.#socket = socket
    this.#awaitAnswer()
    socket.onopen = () => {
      if (token) this.#write({ type: 'auth', token, ...this.#events.auth })
      else this.#ready()
    }
    socket.onmessage = ({ data }) => {
      if (socket === this.#socket) this.#receive(data)
    }
    socket.onclose = ({ code }) => {
      if (socket === this.#socket) void this.#onClose(code)
    }
    socket.onerror = () => undefined
  }

  #ready(): void {
    this.#hasAnswer()
    this.isReady = true
    this.#attempts = 0
    this.#ping = setInterval(() => this.#checkAlive(), pingIntervalMs)
    this.#events.onReady()
  }

  #receive(data: unknown): void {
    this.#hasAnswer()
    let messages: Message[]
    try {
      messages = [JSON.parse(String(data))].flat()
    } catch {
      return
    }
    for (const message of messages) {
      // A proxy or a later version of the server may send what this client does not know.
      if (!message) continue
      if (message.type === 'auth_success' && !this.isReady) this.#ready()
      this.#events.onMessage(message)
    }
  }

  async #onClose(code: number): Promise<void> {
    const token = this.#token
    if (this.#events.onEnd && finalCodes.includes(code)) {
      this.#drop()
      return this.#events.onEnd()
    }
    this.#lose()
    const attempt = {}
    this.#attempt = attempt
    try {
      // Decides whether the session has ended; if so, the identity changes.
      if (code === authFailedCode && token) await this.#core.credentials?.renew(token)
    } catch {
      // The server is away.
    }
    this.#reconnect(attempt)
  }

  #reconnect(attempt: object): void {
    if (this.#attempt === attempt) this.#retry = setTimeout(() => void this.#connect(), backoffMs(this.#attempts++))
  }

  /** Forgets the socket and closes it. */
  #drop(): void {
    const socket = this.#socket
    this.#socket = undefined
    this.#attempt = undefined
    this.isReady = false
    clearTimeout(this.#retry)
    clearInterval(this.#ping)
    this.#hasAnswer()
    socket?.close()
  }

  /** Drops a socket that is lost, replaced, or would be cut by the system while the app sleeps. */
  #lose(): void {
    this.#drop()
    this.#events.onDown()
  }

  /** Sends a ping; without an answer the connection is dead, which TCP may report minutes later or never. */
  #checkAlive(): void {
    this.#write({ type: 'ping' })
    void this.#renewAuth()
    this.#awaitAnswer()
  }

  #awaitAnswer(): void {
    this.#answer ??= setTimeout(() => void this.#onClose(0), answerWaitMs)
  }

  #hasAnswer(): void {
    clearTimeout(this.#answer)
    this.#answer = undefined
  }

  /** Sends the current token if the socket has an older one, so that the server does not close it at its expiry. */
  async #renewAuth(): Promise<void> {
    const token = await this.#core.accessToken().catch(() => null)
    if (!token || !this.#token || token === this.#token || !this.isReady) return
    this.#token = token
    this.#write({ type: 'auth', token })
  }

  #wake(): void {
    if (this.isReady) this.#checkAlive()
    else if (!this.#socket) this.restart()
  }

  #write(message: object): void {
    if (this.#socket?.readyState === 1) this.#socket.send(JSON.stringify(message))
  }
}

/** Wakes when the device is online or the visibility of the page changes. */
export function pageLifecycle(listener: (event: 'wake') => void): () => void {
  const wake = (): void => listener('wake')
  const change = (method: 'addEventListener' | 'removeEventListener'): void => {
    globalThis[method]?.('online', wake)
    globalThis.document?.[method]('visibilitychange', wake)
  }
  change('addEventListener')
  return () => change('removeEventListener')
}
