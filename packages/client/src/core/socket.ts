/**
 * A WebSocket that authenticates, renews its authentication, detects dead connections, and reconnects with backoff
 * until it is stopped. Live lists and rooms define what their messages mean.
 */
import type { Core } from './core.ts'
import { backoffMs } from './deadline.ts'

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

/**
 * Pause after which a ping is sent, and how long an answer may take, in milliseconds. The server closes sockets silent
 * for 45 s.
 */
const pingPauseMs = 25_000
const answerWaitMs = 10_000

/** Close codes after which another attempt would have the same result. */
const finalCodes = [4000, 4003, 4004, 4005]
const authFailedCode = 4002

type SocketConstructor = new (url: string, options?: unknown) => WebSocket

export class ReconnectingSocket {
  readonly #core: Core
  readonly #path: string
  readonly #events: SocketEvents
  /** Stops watching the page; undefined while the socket is stopped. */
  #unwatch: (() => void) | undefined
  #socket: WebSocket | undefined
  /** What happens next unless something else does: a ping, the end of a wait for an answer, or an attempt. */
  #timer: ReturnType<typeof setTimeout> | undefined
  #isAwaiting = false
  #attempts = 0
  /** The token that the socket has sent; null where it has none. */
  #token: string | null = null
  /** Counts what connects or ends the socket; an earlier attempt, which awaited something meanwhile, has no effect. */
  #attempt = 0
  isReady = false

  /** `path` begins with a slash. */
  constructor(core: Core, path: string, events: SocketEvents) {
    this.#core = core
    this.#path = path
    this.#events = events
    core.token.add(() => void this.#renewAuth())
    core.closing.add(() => this.stop())
  }

  /** Throws if the runtime has no WebSocket. */
  start(): void {
    if (this.#unwatch) return
    const { WebSocket = globalThis.WebSocket, lifecycle = pageLifecycle } = this.#core.options
    if (!WebSocket) this.#core.part('WebSocket')
    this.#unwatch = lifecycle((event) => (event === 'wake' ? this.#wake() : this.#lose()))
    void this.#connect()
  }

  stop(): void {
    this.#unwatch?.()
    this.#unwatch = undefined
    this.#drop()
  }

  /** Connects again, with the current credentials. */
  restart(): void {
    if (!this.#unwatch) return
    this.#lose()
    this.#attempts = 0
    void this.#connect()
  }

  /** Sends a message. Does nothing while the socket is not ready: `onReady` sends again what still matters. */
  send(message: object): void {
    if (this.isReady) this.#write(message)
  }

  async #connect(): Promise<void> {
    const attempt = ++this.#attempt
    const { url, options } = this.#core
    const { WebSocket = globalThis.WebSocket, serviceKey } = options
    let token: string | null
    try {
      token = await this.#core.accessToken()
    } catch {
      // The token could not be refreshed, because the server is away.
      return this.#reconnect(attempt)
    }
    if (this.#attempt !== attempt) return
    this.#token = token
    const headers = serviceKey && { headers: { 'X-Platform-Service-Key': serviceKey } }
    const socket = new (WebSocket as SocketConstructor)(url.replace(/^http/, 'ws') + this.#path, headers)
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
    this.isReady = true
    this.#attempts = 0
    this.#pause()
    this.#events.onReady()
  }

  #receive(data: unknown): void {
    if (this.isReady && this.#isAwaiting) this.#pause()
    let messages: Message[]
    try {
      messages = [JSON.parse(data as string)].flat()
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
    const attempt = this.#attempt
    try {
      // Decides whether the session has ended; if so, the identity changes.
      if (code === authFailedCode && token) await this.#core.credentials?.renew(token)
    } catch {
      // The server is away.
    }
    this.#reconnect(attempt)
  }

  #reconnect(attempt: number): void {
    if (this.#attempt === attempt) this.#after(backoffMs(this.#attempts++), () => this.#connect())
  }

  #after(ms: number, work: () => unknown): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(work, ms)
  }

  /** Forgets the socket and closes it. */
  #drop(): void {
    const socket = this.#socket
    this.#socket = undefined
    this.#attempt++
    this.isReady = this.#isAwaiting = false
    clearTimeout(this.#timer)
    socket?.close()
  }

  /** Drops a socket that is lost, replaced, or would be cut by the system while the app sleeps. */
  #lose(): void {
    this.#drop()
    this.#events.onDown()
  }

  #pause(): void {
    this.#isAwaiting = false
    this.#after(pingPauseMs, () => this.#checkAlive())
  }

  /** Sends a ping; without an answer the connection is dead, which TCP may report minutes later or never. */
  #checkAlive(): void {
    this.#write({ type: 'ping' })
    void this.#renewAuth()
    this.#awaitAnswer()
  }

  #awaitAnswer(): void {
    if (this.#isAwaiting) return
    this.#isAwaiting = true
    this.#after(answerWaitMs, () => this.#onClose(0))
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
    this.#socket?.send(JSON.stringify(message))
  }
}

/** Wakes when the device is online or the visibility of the page changes. */
export function pageLifecycle(listener: (event: 'wake') => void): () => void {
  const controller = new AbortController()
  const { signal } = controller
  const wake = (): void => listener('wake')
  globalThis.addEventListener?.('online', wake, { signal })
  globalThis.document?.addEventListener('visibilitychange', wake, { signal })
  return () => controller.abort()
}
