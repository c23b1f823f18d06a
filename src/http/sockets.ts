/**
 * All WebSockets of the process: who is let in, the ticks of their deadlines, and the end of them all. Knows no runtime
 * (`server` does).
 */
import type { Clock } from '../base/clock.ts'
import { createUuid7 } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { unavailable } from '../errors.ts'
import { pendingSocketsMax, socketsMax, socketTickMs } from '../limits.ts'
import { type Authenticate, closeCodes, type Renew, Socket, type SocketDeps } from './socket.ts'

/** Sockets of different kinds are counted apart while they are pending. */
export type SocketKind = 'subscriptions' | 'rooms'

export interface Sockets {
  /** Sockets from an address that have not shown yet what they are for. */
  pending(kind: SocketKind, address: string): number
  /** A socket about to be opened. Null when too many from the address are pending. */
  admit(from: SocketFrom): Admitted | null
  /** Ends the sockets of a user, or of one session. */
  endUser(who: { userId: string; sessionId: string | null }): void
  /** Has the sockets of a user learn which role and claims the user has now. */
  renewUser(userId: string): void
  /** Open sockets, those of them that are pending, and how many were closed for not reading since the start. */
  readonly size: number
  readonly pendingSize: number
  readonly slowCloses: number
  /** Tells everybody that the server restarts, and closes. */
  closeAll(): void
  stop(): void
}

/** Where a socket comes from. */
export interface SocketFrom extends Pick<SocketDeps, 'caller' | 'isKeyGood' | 'authTimeoutMs'> {
  readonly kind: SocketKind
  /** As it is counted. */
  readonly address: string
}

export interface Admitted {
  readonly socket: Socket
  /** To be called when the socket is gone, or its upgrade did not happen. */
  ended(): void
}

export interface SocketsDeps {
  readonly clock: Clock
  readonly log: Log
  readonly authenticate: Authenticate
  readonly renew: Renew
}

export function createSockets({ clock, log, authenticate, renew }: SocketsDeps): Sockets {
  const open = new Set<Socket>()
  const pending = new Map<string, number>()
  const newId = createUuid7(clock)
  let slowCloses = 0
  const ticks = setInterval(() => {
    const nowMs = clock.now()
    for (const socket of open) socket.tick(nowMs)
  }, socketTickMs)
  ticks.unref()

  const keyOf = (kind: SocketKind, address: string): string => `${kind} ${address}`

  function count(key: string, by: 1 | -1): void {
    const now = (pending.get(key) ?? 0) + by
    if (now > 0) pending.set(key, now)
    else pending.delete(key)
  }

  return {
    pending: (kind, address) => pending.get(keyOf(kind, address)) ?? 0,
    admit({ kind, address, ...from }) {
      if (open.size >= socketsMax) throw unavailable()
      const key = keyOf(kind, address)
      if ((pending.get(key) ?? 0) >= pendingSocketsMax) return null
      count(key, 1)
      const deps: SocketDeps = {
        id: newId(),
        ...from,
        authenticate,
        renew,
        nowMs: () => clock.now(),
        log,
        onSettled: () => count(key, -1),
        onSlow: () => void slowCloses++,
      }
      const socket = new Socket(deps)
      open.add(socket)
      return {
        socket,
        ended() {
          open.delete(socket)
          socket.ended()
        },
      }
    },
    endUser({ userId, sessionId }) {
      for (const socket of open) {
        const { caller } = socket
        if (socket.isProving) void socket.renew()
        if (caller.kind !== 'user' || caller.auth.id !== userId) continue
        if (sessionId === null || caller.sessionId === sessionId) socket.end('The session has ended')
      }
    },
    renewUser(userId) {
      for (const socket of open) {
        const { caller } = socket
        if (socket.isProving || (caller.kind === 'user' && caller.auth.id === userId)) void socket.renew()
      }
    },
    get size() {
      return open.size
    },
    get pendingSize() {
      let size = 0
      for (const some of pending.values()) size += some
      return size
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
