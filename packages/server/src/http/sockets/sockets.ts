/**
 * The registry of all WebSockets of the process: connection limits, deadlines, the bound on unread bytes, and shutdown.
 * Independent of the runtime (`server` adapts it).
 */
import type { Clock } from '../../base/clock.ts'
import { createUuid7 } from '../../base/crypto/ids.ts'
import type { Log } from '../../base/log.ts'
import { unavailable } from '../../errors.ts'
import {
  pendingSocketsMax,
  socketsBufferedBytesMax,
  socketsMax,
  socketsPerAddressMax,
  socketsPerUserMax,
  socketTickMs,
} from '../../limits/sockets.ts'
import { Backlog } from './backlog.ts'
import { type Authenticate, type RefreshClaims, Socket, type SocketDeps } from './socket.ts'
import { closeCodes } from './socket-protocol.ts'

/** Pending sockets are counted per kind. */
export type SocketKind = 'subscriptions' | 'rooms'

/** The client that opens a socket. */
export interface SocketOrigin extends Pick<SocketDeps, 'caller' | 'isKeyValid' | 'authTimeoutMs'> {
  readonly kind: SocketKind
  /** The key of the limit per address. */
  readonly address: string
}

export interface SocketSlot {
  readonly socket: Socket
  /** Call when the socket is closed or the upgrade failed. */
  release(): void
}

/** Bounds over all sockets. Those with a service key do not count against `perAddress`; those of administrators do. */
export interface SocketBounds {
  readonly perUser: number
  readonly perAddress: number
  /** Unread bytes of all sockets together. */
  readonly bufferedBytes: number
}

const defaultBounds: SocketBounds = {
  perUser: socketsPerUserMax,
  perAddress: socketsPerAddressMax,
  bufferedBytes: socketsBufferedBytesMax,
}

export interface SocketsDeps {
  readonly clock: Clock
  readonly log: Log
  readonly authenticate: Authenticate
  readonly renew: RefreshClaims
  readonly bounds?: SocketBounds
}

export class Sockets {
  readonly #deps: SocketsDeps
  readonly #bounds: SocketBounds
  readonly #open = new Set<Socket>()
  readonly #pending = new Tally()
  readonly #byAddress = new Tally()
  readonly #byUser = new Tally()
  readonly #byKind = new Tally()
  readonly #backlog: Backlog
  readonly #newId: () => string
  readonly #ticks: ReturnType<typeof setInterval>
  #slowCloses = 0

  /** Must be stopped. */
  constructor(deps: SocketsDeps) {
    const { clock, log, bounds = defaultBounds } = deps
    this.#deps = deps
    this.#bounds = bounds
    this.#newId = createUuid7(clock)
    this.#backlog = new Backlog({ bytesMax: bounds.bufferedBytes, log, onSlow: () => void this.#slowCloses++ })
    this.#ticks = setInterval(() => this.#tick(), socketTickMs)
    this.#ticks.unref()
  }

  /** Open sockets, pending ones among them. */
  get size(): number {
    return this.#open.size
  }

  get pendingSize(): number {
    return this.#pending.sum
  }

  /** Open sockets of a protocol. */
  count(kind: SocketKind): number {
    return this.#byKind.get(kind)
  }

  /** Sockets closed as slow consumers since the start. */
  get slowCloses(): number {
    return this.#slowCloses
  }

  /** Sockets from an address that have neither authenticated nor subscribed yet. */
  pending(kind: SocketKind, address: string): number {
    return this.#pending.get(keyOf(kind, address))
  }

  /**
   * Reserves a slot before the upgrade. Null when too many sockets from the address are pending or open; throws 503 at
   * the process's limit.
   */
  reserve({ kind, address, ...from }: SocketOrigin): SocketSlot | null {
    if (this.#open.size >= socketsMax) throw unavailable()
    const key = keyOf(kind, address)
    const isCounted = from.caller.kind !== 'service' || from.caller.admin !== undefined
    if (this.#pending.get(key) >= pendingSocketsMax) return null
    if (isCounted && this.#byAddress.get(address) >= this.#bounds.perAddress) return null
    this.#pending.add(key, 1)
    if (isCounted) this.#byAddress.add(address, 1)
    let userId: string | null = null
    const { clock, log, authenticate, renew } = this.#deps
    const socket: Socket = new Socket({
      id: this.#newId(),
      ...from,
      authenticate,
      renew,
      clock,
      log,
      onActive: () => this.#pending.add(key, -1),
      onSlow: () => void this.#slowCloses++,
      onBacklog: () => this.#backlog.add(socket),
      claimUser: (id) => {
        if (this.#byUser.get(id) >= this.#bounds.perUser) return false
        userId = id
        this.#byUser.add(id, 1)
        return true
      },
    })
    this.#open.add(socket)
    this.#byKind.add(kind, 1)
    return {
      socket,
      release: () => {
        this.#open.delete(socket)
        this.#byKind.add(kind, -1)
        this.#backlog.delete(socket)
        if (isCounted) this.#byAddress.add(address, -1)
        if (userId !== null) this.#byUser.add(userId, -1)
        socket.onClose()
      },
    }
  }

  /** Closes the sockets of a user, or of one session. */
  endUser({ userId, sessionId }: { readonly userId: string; readonly sessionId: string | null }): void {
    for (const socket of this.#open) {
      const { caller } = socket
      if (socket.isAuthenticating) void socket.refreshClaims()
      if (caller.kind !== 'user' || caller.auth.id !== userId) continue
      if (sessionId === null || caller.sessionId === sessionId) socket.revoke('The session has ended')
    }
  }

  /** Reloads the role and claims of a user's sockets. */
  refreshUser(userId: string): void {
    for (const socket of this.#open) {
      const { caller } = socket
      if (socket.isAuthenticating || (caller.kind === 'user' && caller.auth.id === userId)) void socket.refreshClaims()
    }
  }

  /** Closes all sockets with 1012 (service restart). */
  closeAll(): void {
    for (const socket of this.#open) socket.close(closeCodes.restarting, 'RESTARTING')
  }

  stop(): void {
    clearInterval(this.#ticks)
  }

  #tick(): void {
    const nowMs = this.#deps.clock.now()
    for (const socket of this.#open) socket.tick(nowMs)
    this.#backlog.checkAll(this.#open)
  }
}

const keyOf = (kind: SocketKind, address: string): string => `${kind} ${address}`

/** Counts per key. */
class Tally {
  readonly #counts = new Map<string, number>()

  get(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  add(key: string, by: 1 | -1): void {
    const now = this.get(key) + by
    if (now > 0) this.#counts.set(key, now)
    else this.#counts.delete(key)
  }

  get sum(): number {
    let sum = 0
    for (const count of this.#counts.values()) sum += count
    return sum
  }
}
