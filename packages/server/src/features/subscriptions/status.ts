/** The subscriptions of this node in numbers, for administrators. */
import { createSlices } from '../../base/concurrency/slices.ts'
import { nodeChannelsMax } from '../../limits/redis.ts'
import { withoutTag } from './channels.ts'
import type { Delivery } from './delivery/delivery.ts'

export interface SubscriptionsStatus {
  /** Subscriptions of all sockets, broadcast channels included. */
  readonly subscriptions: number
  /** Distinct subscriptions to tables. */
  readonly queries: number
  /** Paused until their client has read. */
  readonly paused: number
  /** Those with the most subscriptions, in descending order; a socket with several tags counts several times. */
  readonly channels: readonly { readonly channel: string; readonly subscribers: number }[]
}

/** Counts in slices: a node may have a million subscriptions. */
export async function describeSubscriptions(
  sessions: Iterable<{ readonly channels: Iterable<string> }>,
  { sharedQueries, paused }: Pick<Delivery, 'sharedQueries' | 'paused'>,
): Promise<SubscriptionsStatus> {
  const nextSlice = createSlices()
  const counts = new Map<string, number>()
  let subscriptions = 0
  for (const session of sessions) {
    for (const tagged of session.channels) {
      const channel = withoutTag(tagged)
      counts.set(channel, (counts.get(channel) ?? 0) + 1)
      subscriptions += 1
    }
    const pause = nextSlice()
    if (pause) await pause
  }
  const channels = [...counts]
    .map(([channel, subscribers]) => ({ channel, subscribers }))
    .sort((one, other) => other.subscribers - one.subscribers || (one.channel < other.channel ? -1 : 1))
  return { subscriptions, queries: sharedQueries, paused, channels: channels.slice(0, nodeChannelsMax) }
}
