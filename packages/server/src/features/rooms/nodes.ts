/**
 * This node among the others: one lease for as long as it has to do with rooms, however many it owns, and whether the
 * lease of another is still valid. `ownership` decides what a lease permits.
 *
 * A lease that has ended is never renewed: the node that finds it free takes it, and its former owner begins a new
 * session under another name.
 */

import { createLru } from '../../base/concurrency/lru.ts'
import type { Log } from '../../base/log.ts'
import type { Leases } from '../../engines/cluster/cluster.ts'
import { roomNodeLeaseMs, roomNodeMarginMs, roomNodeRenewMs, roomOwnersKnownMax } from '../../limits/rooms.ts'

/** One run of a node, from a lease to its loss. */
export interface NodeSession {
  /** Unique for ever. */
  readonly name: string
  /** Decided by this process' monotonic clock: false as soon as another node might take what is owned here. */
  isHeld(): boolean
}

export interface RoomNodes {
  /** The session, begun where there is none. Rejects with `EngineError` while the others cannot be reached. */
  enter(): Promise<NodeSession>
  /** The session that has been begun and is still held, or null. */
  readonly current: NodeSession | null
  /** False for a node whose lease has ended, which is for ever. Rejects like `enter`. */
  isAlive(name: string): Promise<boolean>
  /** Gives the lease back; the node may not be entered again. */
  leave(): Promise<void>
}

export interface RoomNodesDeps {
  readonly leases: Leases
  /** Monotonic milliseconds. */
  readonly elapsedMs: () => number
  /** Whether a message of the node has just arrived, so that its lease need not be read. */
  readonly isHeard: (name: string) => boolean
  /** The session has begun: what belongs to it can be opened under its name. */
  readonly onEntered: (session: NodeSession) => void
  /** The session is over, whether or not another has noticed. */
  readonly onLost: (session: NodeSession) => void
  readonly log: Log
}

interface Held extends NodeSession {
  heldUntilMs: number
}

/** The owner of leases that were found free, so that every node finds them ended. */
const endedOwner = 'ended'

const leaseOf = (name: string): string => `rooms-node:${name}`

export function createRoomNodes(deps: RoomNodesDeps): RoomNodes {
  const { leases, elapsedMs, isHeard, onEntered, onLost, log } = deps
  let held: Held | null = null
  let entering: Promise<Held> | null = null
  let hasLeft = false
  const ended = createLru<string, true>(roomOwnersKnownMax)

  async function begin(): Promise<Held> {
    const name = crypto.randomUUID()
    const askedAtMs = elapsedMs()
    await leases.acquire(leaseOf(name), name, roomNodeLeaseMs)
    const session: Held = {
      name,
      heldUntilMs: askedAtMs + roomNodeLeaseMs - roomNodeMarginMs,
      isHeld: () => held === session && elapsedMs() < session.heldUntilMs,
    }
    held = session
    onEntered(session)
    return session
  }

  function lose(session: Held, reason: string): void {
    if (held !== session) return
    held = null
    if (hasLeft) return
    log.warn('room.node_lease_lost', { node: session.name, reason })
    onLost(session)
  }

  async function renew(session: Held): Promise<void> {
    if (!session.isHeld()) return lose(session, 'it was not renewed in time')
    const askedAtMs = elapsedMs()
    const { name } = session
    let isRenewed = await leases.renew(leaseOf(name), name, roomNodeLeaseMs)
    // The store of leases may have been lost. Within its own time no other node can have taken this one.
    if (!isRenewed && session.isHeld())
      isRenewed = (await leases.acquire(leaseOf(name), name, roomNodeLeaseMs)) !== null
    if (isRenewed) session.heldUntilMs = askedAtMs + roomNodeLeaseMs - roomNodeMarginMs
    else lose(session, 'another node has ended it')
  }

  const renewals = setInterval(() => {
    // A lease that cannot be renewed ends by itself.
    if (held) renew(held).catch(() => undefined)
  }, roomNodeRenewMs)
  renewals.unref()

  return {
    async enter() {
      if (held?.isHeld()) return held
      if (held) lose(held, 'it was not renewed in time')
      entering ??= begin().finally(() => {
        entering = null
      })
      return entering
    },
    get current() {
      return held?.isHeld() ? held : null
    },
    async isAlive(name) {
      if (name === held?.name || isHeard(name)) return true
      if (ended.get(name)) return false
      const isHeld = (await leases.acquire(leaseOf(name), endedOwner, roomNodeLeaseMs)) === null
      if (!isHeld) ended.set(name, true)
      return isHeld
    },
    async leave() {
      clearInterval(renewals)
      hasLeft = true
      const session = held
      held = null
      if (session) await leases.release(leaseOf(session.name), session.name).catch(() => undefined)
    },
  }
}
