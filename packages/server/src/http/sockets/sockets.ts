/**
 * All WebSockets of the process: who is let in, the ticks of their deadlines, and the end of them all. Knows no runtime
 * (`server` does).
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

/** Sockets of different kinds are counted apart while they are pending. */
export type SocketKind = 'subscriptions' | 'rooms'

export interface Sockets {
  /** Sockets from an address that have not shown yet what they are for. */
  pending(kind: SocketKind, address: string): number
  /** A socket about to be opened. Null when too many from the address are pending or open. */
  reserve(from: SocketOrigin): SocketSlot | null
  /** Ends the sockets of a user, or of one session. */
  endUser(who: { userId: string; sessionId: string | null }): void
  /** Has the sockets of a user learn which role and claims the user has now. */
  refreshUser(userId: string): void
  /** Open sockets, those of them that are pending, and how many were closed for not reading since the start. */
  readonly size: number
  readonly pendingSize: number
  readonly slowCloses: number
  /** Tells everybody that the server restarts, and closes. */
  closeAll(): void
  stop(): void
}

/** Where a socket comes from. */
export interface SocketOrigin extends Pick<SocketDeps, 'caller' | 'isKeyValid' | 'authTimeoutMs'> {
  readonly kind: SocketKind
  /** As it is counted. */
  readonly address: string
}

export interface SocketSlot {
  readonly socket: Socket
  /** To be called when the socket is gone, or its upgrade did not happen. */
  release(): void
}

/** Bounds over all sockets; service keys are not counted by address. */
export interface SocketBounds {
  readonly perUser: number
  readonly perAddress: number
  /** Bytes sent and not read, of all sockets together. */
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

/** How often each key has been counted and not given back. */
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
  /** Sockets that had not read everything when they were last looked at. */
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

  /** Cuts the sockets that are furthest behind until what all have not read is within its bound. */
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

  /** A socket has just fallen behind: between two ticks a burst could take any amount. */
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
