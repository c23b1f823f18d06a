/** How much may be watched at once by one user and from one address, over all of their sockets. */
import type { Caller } from '../../access/caller.ts'
import {
  filterCharsPerAddressMax,
  filterCharsPerUserMax,
  subscriptionsPerAddressMax,
  subscriptionsPerUserMax,
} from '../../limits-subscriptions.ts'
import { SubscriptionError } from './refusal.ts'

export interface Budget {
  /**
   * Counts one subscription with filters of so many characters until the function it gives is called. Throws
   * `SubscriptionError`, with nothing counted, where a bound would be exceeded. Service keys are not counted.
   */
  reserve(caller: Caller, address: string, filterChars: number): () => void
}

interface Usage {
  subscriptions: number
  filterChars: number
}

interface Owner {
  readonly key: string
  readonly name: string
  readonly subscriptionsMax: number
  readonly filterCharsMax: number
}

function ownersOf(caller: Caller, address: string): readonly Owner[] {
  if (caller.kind === 'service') return []
  const ofAddress = {
    key: `address ${address}`,
    name: 'address',
    subscriptionsMax: subscriptionsPerAddressMax,
    filterCharsMax: filterCharsPerAddressMax,
  }
  if (caller.kind === 'anonymous') return [ofAddress]
  const ofUser = {
    key: `user ${caller.auth.id}`,
    name: 'user',
    subscriptionsMax: subscriptionsPerUserMax,
    filterCharsMax: filterCharsPerUserMax,
  }
  return [ofUser, ofAddress]
}

export function createBudget(): Budget {
  const usages = new Map<string, Usage>()

  function check({ key, name, subscriptionsMax, filterCharsMax }: Owner, filterChars: number): void {
    const usage = usages.get(key)
    if ((usage?.subscriptions ?? 0) >= subscriptionsMax)
      throw new SubscriptionError('TOO_MANY_SUBSCRIPTIONS', `At most ${subscriptionsMax} subscriptions per ${name}`)
    if (filterChars > 0 && (usage?.filterChars ?? 0) + filterChars > filterCharsMax)
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
    reserve(caller, address, filterChars) {
      const owners = ownersOf(caller, address)
      for (const owner of owners) check(owner, filterChars)
      for (const owner of owners) count(owner, 1, filterChars)
      let isHeld = true
      return () => {
        if (!isHeld) return
        isHeld = false
        for (const owner of owners) count(owner, -1, filterChars)
      }
    },
  }
}
