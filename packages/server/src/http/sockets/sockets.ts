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
import { type Authenticate, type RefreshClaims, Socket, type SocketDeps } from './socket.ts'
import { closeCodes } from './socket-protocol.ts'

/** Pending sockets are counted per kind. */
export type SocketKind = 'subscriptions' | 'rooms'

export interface Sockets {
  /** Sockets from an address that have neither authenticated nor subscribed yet. */
  pending(kind: SocketKind, address: string): number
  /**
   * Reserves a slot before the upgrade. Null when too many sockets from the address are pending or open; throws 503 at
   * the process's limit.
   */
  reserve(origin: SocketOrigin): SocketSlot | null
  /** Closes the sockets of a user, or of one session. */
  endUser(who: { userId: string; sessionId: string | null }): void
  /** Reloads the role and claims of a user's sockets. */
  refreshUser(userId: string): void
  /** Open sockets, pending ones among them, and sockets closed as slow consumers since the start. */
  readonly size: number
  readonly pendingSize: number
  readonly slowCloses: number
  /** Closes all sockets with 1012 (service restart). */
  closeAll(): void
  stop(): void
}

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

/** Bounds over all sockets. Sockets with a service key do not count against `perAddress`. */
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

/** Counts per key. */
function createTally() {
  const counts = new Map<string, number>()
  return {
    get: (key: string): number => counts.get(key) ?? 0,
    add(key: string, by: 1 | -1): void {
      const now = (counts.get(key) ?? 0) + by
      if (now > 0) counts.set(key, now)
      else counts.delete(key)
    },
    get sum(): number {
      let sum = 0
      for (const count of counts.values()) sum += count
      return sum
    },
  }
}

export function createSockets(deps: SocketsDeps): Sockets {
  const { clock, log, authenticate, renew, bounds = defaultBounds } = deps
  const open = new Set<Socket>()
  const pending = createTally()
  const byAddress = createTally()
  const byUser = createTally()
  /** Sockets with unread bytes at the last check. */
  const backlogged = new Set<Socket>()
  let isCheckDue = false
  const newId = createUuid7(clock)
  let slowCloses = 0
  const ticks = setInterval(() => {
    const nowMs = clock.now()
    for (const socket of open) {
      socket.tick(nowMs)
      if (socket.buffered > 0) backlogged.add(socket)
    }
    enforceBacklogBound()
  }, socketTickMs)
  ticks.unref()

  const keyOf = (kind: SocketKind, address: string): string => `${kind} ${address}`

  /** Terminates the slowest sockets until the unread bytes of all sockets are within the bound. */
  function enforceBacklogBound(): void {
    isCheckDue = false
    let sum = 0
    for (const socket of backlogged) {
      if (socket.buffered === 0) backlogged.delete(socket)
      sum += socket.buffered
    }
    if (sum <= bounds.bufferedBytes) return
    for (const socket of [...backlogged].sort((a, b) => b.buffered - a.buffered)) {
      if (sum <= bounds.bufferedBytes) break
      sum -= socket.buffered
      backlogged.delete(socket)
      slowCloses += 1
      log.warn('socket.slow_closed', { socketId: socket.id, bufferedBytes: socket.buffered })
      socket.terminate()
    }
  }

  /** Schedules a check when a socket begins to buffer: between two ticks a burst could use any amount of memory. */
  function trackBacklog(socket: Socket): void {
    backlogged.add(socket)
    if (isCheckDue) return
    isCheckDue = true
    setImmediate(enforceBacklogBound)
  }

  return {
    pending: (kind, address) => pending.get(keyOf(kind, address)),
    reserve({ kind, address, ...from }) {
      if (open.size >= socketsMax) throw unavailable()
      const key = keyOf(kind, address)
      const isCounted = from.caller.kind !== 'service'
      if (pending.get(key) >= pendingSocketsMax) return null
      if (isCounted && byAddress.get(address) >= bounds.perAddress) return null
      pending.add(key, 1)
      if (isCounted) byAddress.add(address, 1)
      let userId: string | null = null
      const deps: SocketDeps = {
        id: newId(),
        ...from,
        authenticate,
        renew,
        nowMs: () => clock.now(),
        log,
        onActive: () => pending.add(key, -1),
        onSlow: () => void slowCloses++,
        onBacklog: () => trackBacklog(socket),
        claimUser(id) {
          if (byUser.get(id) >= bounds.perUser) return false
          userId = id
          byUser.add(id, 1)
          return true
        },
      }
      const socket = new Socket(deps)
      open.add(socket)
      return {
        socket,
        release() {
          open.delete(socket)
          backlogged.delete(socket)
          if (isCounted) byAddress.add(address, -1)
          if (userId !== null) byUser.add(userId, -1)
          socket.onClose()
        },
      }
    },
    endUser({ userId, sessionId }) {
      for (const socket of open) {
        const { caller } = socket
        if (socket.isAuthenticating) void socket.refreshClaims()
        if (caller.kind !== 'user' || caller.auth.id !== userId) continue
        if (sessionId === null || caller.sessionId === sessionId) socket.revoke('The session has ended')
      }
    },
    refreshUser(userId) {
      for (const socket of open) {
        const { caller } = socket
        if (socket.isAuthenticating || (caller.kind === 'user' && caller.auth.id === userId))
          void socket.refreshClaims()
      }
    },
    get size() {
      return open.size
    },
    get pendingSize() {
      return pending.sum
    },
    get slowCloses() {
      return slowCloses
    },
    closeAll() {
      for (const socket of open) socket.close(closeCodes.restarting, 'RESTARTING')
    },
    stop: () => clearInterval(ticks),
  }
}
