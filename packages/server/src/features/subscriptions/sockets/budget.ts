/** Bounds the subscriptions of one user and of one address, over all of their sockets. */
import type { Caller } from '../../../access/caller.ts'
import {
  filterCharsPerAddressMax,
  filterCharsPerUserMax,
  subscriptionsPerAddressMax,
  subscriptionsPerUserMax,
} from '../../../limits/subscriptions.ts'
import { SubscriptionError } from './subscription-error.ts'

export interface Budget {
  /**
   * Counts one subscription with filters of so many characters until the returned function is called. Throws
   * `SubscriptionError`, with nothing counted, where a bound would be exceeded. Service keys are not counted.
   * `replacedChars` are those of a subscription that is released next and does not count against the new one.
   */
  reserve(caller: Caller, address: string, filterChars: number, replacedChars?: number): () => void
}

interface Bounds {
  readonly subscriptionsMax: number
  readonly filterCharsMax: number
}

/** For each user and for each address. */
export interface BudgetBounds {
  readonly user: Bounds
  readonly address: Bounds
}

const defaultBounds: BudgetBounds = {
  user: { subscriptionsMax: subscriptionsPerUserMax, filterCharsMax: filterCharsPerUserMax },
  address: { subscriptionsMax: subscriptionsPerAddressMax, filterCharsMax: filterCharsPerAddressMax },
}

interface Usage {
  subscriptions: number
  filterChars: number
}

interface Owner extends Bounds {
  readonly key: string
  readonly name: string
}

function ownersOf(caller: Caller, address: string, bounds: BudgetBounds): readonly Owner[] {
  if (caller.kind === 'service') return []
  const ofAddress = { key: `address ${address}`, name: 'address', ...bounds.address }
  if (caller.kind === 'anonymous') return [ofAddress]
  return [{ key: `user ${caller.auth.id}`, name: 'user', ...bounds.user }, ofAddress]
}

export function createBudget(bounds = defaultBounds): Budget {
  const usages = new Map<string, Usage>()

  function check(owner: Owner, filterChars: number, replacedChars: number | undefined): void {
    const { key, name, subscriptionsMax, filterCharsMax } = owner
    const usage = usages.get(key)
    const replaced = replacedChars === undefined ? 0 : 1
    if ((usage?.subscriptions ?? 0) - replaced >= subscriptionsMax)
      throw new SubscriptionError('TOO_MANY_SUBSCRIPTIONS', `At most ${subscriptionsMax} subscriptions per ${name}`)
    if (filterChars > 0 && (usage?.filterChars ?? 0) - (replacedChars ?? 0) + filterChars > filterCharsMax)
      throw new SubscriptionError(
        'FILTERS_TOO_LARGE',
        `The filters of all subscriptions of one ${name} may have at most ${filterCharsMax} characters`,
      )
  }

  function count({ key }: Owner, by: 1 | -1, filterChars: number): void {
    const usage = usages.get(key) ?? { subscriptions: 0, filterChars: 0 }
    usage.subscriptions += by
    usage.filterChars += by * filterChars
    if (usage.subscriptions > 0) usages.set(key, usage)
    else usages.delete(key)
  }

  return {
    reserve(caller, address, filterChars, replacedChars) {
      const owners = ownersOf(caller, address, bounds)
      for (const owner of owners) check(owner, filterChars, replacedChars)
      for (const owner of owners) count(owner, 1, filterChars)
      let isCounted = true
      return () => {
        if (!isCounted) return
        isCounted = false
        for (const owner of owners) count(owner, -1, filterChars)
      }
    },
  }
}
