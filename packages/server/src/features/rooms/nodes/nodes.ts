/**
 * The lease of this node, one for all rooms that it owns, and whether the leases of other nodes are valid. `ownership`
 * decides what a lease permits.
 *
 * A lease that has ended is never renewed: the node that finds it free takes it, and its former owner starts a new
 * session under another name.
 */
import { createLru } from '../../../base/concurrency/lru.ts'
import type { Log } from '../../../base/log.ts'
import type { Leases } from '../../../engines/cluster/cluster.ts'
import { roomNodeLeaseMs, roomNodeMarginMs, roomNodeRenewMs, roomOwnersKnownMax } from '../../../limits/rooms.ts'

/** The lifetime of one lease of a node. */
export interface NodeSession {
  /** Never reused. */
  readonly name: string
  /** Decided by the monotonic clock of this process: false as soon as another node may take over the rooms. */
  isValid(): boolean
}

export interface RoomNodes {
  /** The active session; starts one if there is none. Rejects with `EngineError` while leases are unavailable. */
  enter(): Promise<NodeSession>
  /** The active session, or null. */
  readonly current: NodeSession | null
  /** False for a node whose lease has ended, which is final. Rejects like `enter`. */
  isAlive(name: string): Promise<boolean>
  /** Releases the lease. `enter` must not be called afterwards. */
  leave(): Promise<void>
}

export interface RoomNodesDeps {
  readonly leases: Leases
  /** Monotonic milliseconds. */
  readonly elapsedMs: () => number
  /** Whether a message of the node has arrived recently, so that its lease need not be read. */
  readonly isResponsive: (name: string) => boolean
  /** A session has started. */
  readonly onEntered: (session: NodeSession) => void
  /** The session has ended, whether or not other nodes have noticed. */
  readonly onLost: (session: NodeSession) => void
  readonly log: Log
}

interface ActiveSession extends NodeSession {
  validUntilMs: number
}

/** Takes the leases that are found free, so that every node sees them as ended. */
const endedOwner = 'ended'

const leaseOf = (name: string): string => `rooms-node:${name}`

export function createRoomNodes(deps: RoomNodesDeps): RoomNodes {
  const { leases, elapsedMs, isResponsive, onEntered, onLost, log } = deps
  let active: ActiveSession | null = null
  let entering: Promise<ActiveSession> | null = null
  let hasLeft = false
  const ended = createLru<string, true>(roomOwnersKnownMax)

  async function begin(): Promise<ActiveSession> {
    const name = crypto.randomUUID()
    const requestedAtMs = elapsedMs()
    await leases.acquire(leaseOf(name), name, roomNodeLeaseMs)
    const session: ActiveSession = {
      name,
      validUntilMs: requestedAtMs + roomNodeLeaseMs - roomNodeMarginMs,
      isValid: () => active === session && elapsedMs() < session.validUntilMs,
    }
    active = session
    onEntered(session)
    return session
  }

  function expire(session: ActiveSession, reason: string): void {
    if (active !== session) return
    active = null
    if (hasLeft) return
    log.warn('room.node_lease_lost', { node: session.name, reason })
    onLost(session)
  }

  async function renew(session: ActiveSession): Promise<void> {
    if (!session.isValid()) return expire(session, 'it was not renewed in time')
    const requestedAtMs = elapsedMs()
    const { name } = session
    let isRenewed = await leases.renew(leaseOf(name), name, roomNodeLeaseMs)
    // The lease store may have lost its data. Before the lease ends, no other node can have taken it.
    if (!isRenewed && session.isValid())
      isRenewed = (await leases.acquire(leaseOf(name), name, roomNodeLeaseMs)) !== null
    if (isRenewed) session.validUntilMs = requestedAtMs + roomNodeLeaseMs - roomNodeMarginMs
    else expire(session, 'another node has ended it')
  }

  const renewals = setInterval(() => {
    // A lease that cannot be renewed expires.
    if (active) renew(active).catch(() => undefined)
  }, roomNodeRenewMs)
  renewals.unref()

  return {
    async enter() {
      if (active?.isValid()) return active
      if (active) expire(active, 'it was not renewed in time')
      entering ??= begin().finally(() => {
        entering = null
      })
      return entering
    },
    get current() {
      return active?.isValid() ? active : null
    },
    async isAlive(name) {
      if (name === active?.name || isResponsive(name)) return true
      if (ended.get(name)) return false
      const isAlive = (await leases.acquire(leaseOf(name), endedOwner, roomNodeLeaseMs)) === null
      if (!isAlive) ended.set(name, true)
      return isAlive
    },
    async leave() {
      clearInterval(renewals)
      hasLeft = true
      const session = active
      active = null
      if (session) await leases.release(leaseOf(session.name), session.name).catch(() => undefined)
    },
  }
}
