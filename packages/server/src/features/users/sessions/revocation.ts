/**
 * What ends access tokens before their time: sessions that were ended, users who were disabled or deleted; and what
 * whoever stays connected must hear of: another role, other claims. Owns how every node hears of it at once; the rows
 * that say so are `sessions`' and `accounts`', and asking them again is `authentication`'s.
 */

import { createLru } from '../../../base/concurrency/lru.ts'
import type { Log } from '../../../base/log.ts'
import type { Bus } from '../../../engines/cluster/cluster.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { revocationEpochsMax } from '../../../limits/users.ts'

/** A session, or with null every session and token of the user. */
export interface Revoked {
  readonly userId: string
  readonly sessionId: string | null
}

/** Shared by everybody who remembers something of a user's tokens; what was remembered under another epoch is stale. */
export interface RevocationEpoch {
  readonly epoch: number
}

export interface Revocation {
  /** Tells every node once the transaction has committed. */
  revoke(tx: Transaction, who: Revoked): void
  /** Tells every node, once the transaction has committed, that role, claims or verified e-mail of a user changed. */
  change(tx: Transaction, userId: string): void
  /** Of a user; the same object until it is stale for good. */
  epochOf(userId: string): RevocationEpoch
  /**
   * Calls the listener on every node for each revocation, so that it closes what is open. Gives what takes it away.
   */
  onRevoked(listener: (who: Revoked) => void): () => void
  /** Like `onRevoked`, for changes of role and claims. */
  onChanged(listener: (userId: string) => void): () => void
  close(): void
}

const channels = { revoked: 'users.revoked', changed: 'users.changed' } as const

export interface RevocationDeps {
  readonly bus: Bus
  /** Called in the transaction that ends something: what must end with it. */
  readonly onRevoking: (tx: Transaction, who: Revoked) => void
  readonly log: Log
}

export function createRevocation({ bus, onRevoking, log }: RevocationDeps): Revocation {
  /** Told apart from the other nodes', because a message to oneself is lost too while the cluster is away. */
  const node = crypto.randomUUID()
  const makeStale = (standing: { epoch: number }): void => {
    standing.epoch += 1
  }
  // What falls out is stale: a later revocation would not find it.
  const standings = createLru<string, { epoch: number }>(revocationEpochsMax, makeStale)
  const revoked = createListeners<Revoked>(log)
  const changed = createListeners<string>(log)

  /** Requests with the user's tokens ask the database again. */
  function recheck(userId: string): void {
    const standing = standings.get(userId)
    if (standing) makeStale(standing)
  }

  function apply(who: Revoked): void {
    recheck(who.userId)
    revoked.tell(who)
  }

  function applyChange(userId: string): void {
    recheck(userId)
    changed.tell(userId)
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
    revoke(tx, who) {
      onRevoking(tx, who)
      tx.afterCommit(() => {
        apply(who)
        bus.publish(channels.revoked, JSON.stringify({ from: node, ...who }))
      })
    },
    change: (tx, userId) =>
      tx.afterCommit(() => {
        applyChange(userId)
        bus.publish(channels.changed, JSON.stringify({ from: node, userId }))
      }),
    epochOf(userId) {
      const known = standings.get(userId)
      if (known) return known
      const standing = { epoch: 0 }
      standings.set(userId, standing)
      return standing
    },
    onRevoked: revoked.add,
    onChanged: changed.add,
    close() {
      for (const unsubscribe of unsubscribes) unsubscribe()
    },
  }
}

/** Whoever wants to hear of something; what goes wrong with one of them is the log's. */
function createListeners<T>(log: Log) {
  const listeners = new Set<{ readonly call: (news: T) => void }>()
  return {
    tell(news: T): void {
      for (const { call } of [...listeners])
        try {
          call(news)
        } catch (error) {
          // What was revoked is revoked, whatever becomes of somebody's socket.
          log.error('users.revocation_listener_failed', { error })
        }
    },
    add(call: (news: T) => void): () => void {
      const entry = { call }
      listeners.add(entry)
      return () => void listeners.delete(entry)
    },
  }
}
