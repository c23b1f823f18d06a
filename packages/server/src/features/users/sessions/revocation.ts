/**
 * Revocation of access tokens before they expire (sessions ended, users disabled or deleted), and notification of open
 * connections about changed roles and claims. Distributes both to every node; `authentication` then reads the session
 * and the user again.
 */
import { createLru } from '../../../base/concurrency/lru.ts'
import type { Log } from '../../../base/log.ts'
import type { Bus } from '../../../engines/cluster/cluster.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { revocationEpochsMax } from '../../../limits/users.ts'

/** A revoked session; with a `sessionId` of null, every session and token of the user. */
export interface Revoked {
  readonly userId: string
  readonly sessionId: string | null
}

/** Counter shared by all cache entries of a user. An entry read at another value is stale. */
export interface RevocationEpoch {
  readonly value: number
}

export interface Revocation {
  /** Revokes on every node once the transaction has committed. */
  revoke(tx: Transaction, target: Revoked): void
  /** Notifies every node, once the transaction has committed, that role, claims or email of a user changed. */
  change(tx: Transaction, userId: string): void
  /** The epoch of a user. The same object until it is evicted, which makes it stale. */
  epochOf(userId: string): RevocationEpoch
  /**
   * Calls the listener for each revocation on any node, to close open connections. Returns a function that
   * unsubscribes.
   */
  onRevoked(listener: (target: Revoked) => void): () => void
  /** Like `onRevoked`, for changed roles, claims and emails. */
  onChanged(listener: (userId: string) => void): () => void
  close(): void
}

const channels = { revoked: 'users.revoked', changed: 'users.changed' } as const

export interface RevocationDeps {
  readonly bus: Bus
  /** Called in the revoking transaction, for rows that must be deleted with the session. */
  readonly onRevoking: (tx: Transaction, target: Revoked) => void
  readonly log: Log
}

export function openRevocation({ bus, onRevoking, log }: RevocationDeps): Revocation {
  /** Identifies messages of this node: it applies its own changes directly, since the cluster may be unreachable. */
  const node = crypto.randomUUID()
  const advance = (epoch: { value: number }): void => {
    epoch.value += 1
  }
  // An evicted epoch is advanced, because later revocations would not find it.
  const epochs = createLru<string, { value: number }>(revocationEpochsMax, advance)
  const revoked = createListeners<Revoked>(log)
  const changed = createListeners<string>(log)

  /** The next request with a token of the user reads the database again. */
  function recheck(userId: string): void {
    const epoch = epochs.get(userId)
    if (epoch) advance(epoch)
  }

  function apply(target: Revoked): void {
    recheck(target.userId)
    revoked.notify(target)
  }

  function applyChange(userId: string): void {
    recheck(userId)
    changed.notify(userId)
  }

  const unsubscribes = [
    bus.subscribe(channels.revoked, (message) => {
      const { from, userId, sessionId } = JSON.parse(message) as Revoked & { from: string }
      if (from !== node) apply({ userId, sessionId })
    }),
    bus.subscribe(channels.changed, (message) => {
      const { from, userId } = JSON.parse(message) as { from: string; userId: string }
      if (from !== node) applyChange(userId)
    }),
  ]

  return {
    revoke(tx, target) {
      onRevoking(tx, target)
      tx.afterCommit(() => {
        apply(target)
        bus.publish(channels.revoked, JSON.stringify({ from: node, ...target }))
      })
    },
    change: (tx, userId) =>
      tx.afterCommit(() => {
        applyChange(userId)
        bus.publish(channels.changed, JSON.stringify({ from: node, userId }))
      }),
    epochOf(userId) {
      const known = epochs.get(userId)
      if (known) return known
      const epoch = { value: 0 }
      epochs.set(userId, epoch)
      return epoch
    },
    onRevoked: revoked.add,
    onChanged: changed.add,
    close() {
      for (const unsubscribe of unsubscribes) unsubscribe()
    },
  }
}

/** A set of listeners. A listener that throws is logged and does not affect the others. */
function createListeners<T>(log: Log) {
  const listeners = new Set<{ readonly call: (event: T) => void }>()
  return {
    notify(event: T): void {
      for (const { call } of [...listeners])
        try {
          call(event)
        } catch (error) {
          // The revocation is committed; a failure to close a socket must not undo it.
          log.error('users.revocation_listener_failed', { error })
        }
    },
    add(call: (event: T) => void): () => void {
      const entry = { call }
      listeners.add(entry)
      return () => void listeners.delete(entry)
    },
  }
}
