/**
 * Upper bounds of the versions of removals, where this process is the only writer: an insert with a greater version
 * cannot follow a removal that its version has to exceed, and needs no search of the change log.
 */
import { createLru } from '../../../base/concurrency/lru.ts'
import type { DatabaseAddress, Transaction } from '../../../engines/sql/sql.ts'
import { removalBoundsMax } from '../../../limits/writes.ts'
import { greatestRemoval } from '../changes/changes.ts'
import type { TableCall } from '../resolve-table.ts'

interface Bound {
  /** Greatest version of a removal since this entry was created. */
  removed: number
  /** Bound of the removals in the log when it was read; null until then. */
  logged: number | null
}

export interface RemovalBounds {
  /** To be called for each removal in its transaction: a later write may share it, or precede its commit hooks. */
  raise(address: DatabaseAddress, version: number): void
  /** Whether a version is greater than those of all removals in the log. False if other processes write to it. */
  areBelow(write: { readonly call: TableCall; readonly tx: Transaction }, version: number): Promise<boolean>
}

export function createRemovalBounds(): RemovalBounds {
  const bounds = createLru<string, Bound>(removalBoundsMax)

  function boundOf({ namespace, instanceId }: DatabaseAddress): Bound {
    const key = `${namespace}\n${instanceId ?? ''}`
    let bound = bounds.get(key)
    if (!bound) {
      bound = { removed: 0, logged: null }
      bounds.set(key, bound)
    }
    return bound
  }

  return {
    raise(address, version) {
      const bound = boundOf(address)
      // Not lowered by a rollback: a bound that is too high costs a search.
      if (version > bound.removed) bound.removed = version
    },
    async areBelow({ call, tx }, version) {
      const { table, address, backEnd } = call
      if (backEnd.dialect.follow !== null) return false
      const bound = boundOf(address)
      if (bound.logged === null) {
        const [found] = await tx.all<{ version: number }>(greatestRemoval(table, backEnd.dialect))
        bound.logged = Number(found?.version ?? 0)
      }
      return version > bound.logged && version > bound.removed
    },
  }
}
