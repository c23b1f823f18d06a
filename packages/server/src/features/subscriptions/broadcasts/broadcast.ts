/**
 * Broadcasts: events to all sockets that subscribe to a channel, on every node. Delivered at most once and not stored.
 * The channel is that of a table, or one that the configuration declares (`broadcast:{name}`).
 */
import type { Caller } from '../../../access/caller.ts'
import type { Cluster } from '../../../engines/cluster/cluster.ts'
import { unavailable } from '../../../errors.ts'
import { broadcastNameCharsMax } from '../../../limits/subscriptions.ts'
import { encode, type SubscriptionText } from '../delivery/messages.ts'

export interface Broadcast {
  readonly channel: string
  readonly event: string
  readonly payload: unknown
}

type BroadcastRule = boolean | ((auth: Caller['auth'], name: string) => unknown)

/** Declared broadcast channels; the first that matches a name decides. */
export type BroadcastChannels = readonly {
  readonly name: string
  readonly isPrefix: boolean
  readonly subscribe: BroadcastRule
  readonly publish: BroadcastRule
}[]

/** The scope that admits a service key to all broadcast channels. */
export const broadcastScope = 'db:channel:*:broadcast'

const channelPrefix = 'broadcast:'
const namePattern = /^[^\s\p{C}]+$/u

/** Whether a channel is a broadcast channel, declared or not. */
export const isBroadcast = (channel: string): boolean => channel.startsWith(channelPrefix)

/** The name in a channel `broadcast:{name}`; null for any other channel. */
export function broadcastNameOf(channel: string): string | null {
  if (!isBroadcast(channel)) return null
  const name = channel.slice(channelPrefix.length)
  return name.length <= broadcastNameCharsMax && namePattern.test(name) ? name : null
}

export const findBroadcast = (channels: BroadcastChannels, name: string): BroadcastChannels[number] | undefined =>
  channels.find((one) => (one.isPrefix ? name.startsWith(one.name) : name === one.name))

/** Whether a channel is that of a declared broadcast. */
export function isDeclaredBroadcast(channels: BroadcastChannels, channel: string): boolean {
  const name = broadcastNameOf(channel)
  return name !== null && findBroadcast(channels, name) !== undefined
}

export interface Broadcasts {
  /** Throws 503 while the other nodes cannot be reached. */
  send(broadcast: Broadcast): void
}

const busChannel = 'broadcasts'

/** The topic of a channel's broadcasts. */
export const broadcastTopic = (channel: string): string => `broadcast ${channel}`

export function createBroadcasts(
  cluster: Pick<Cluster, 'publish' | 'subscribe' | 'isHealthy'>,
  publish: (topic: string, text: SubscriptionText) => void,
): Broadcasts {
  cluster.subscribe(busChannel, (text) => {
    const { channel } = JSON.parse(text) as Broadcast
    // Every node publishes nothing but messages here.
    publish(broadcastTopic(channel), text as SubscriptionText)
  })
  return {
    send({ channel, event, payload }) {
      if (!cluster.isHealthy()) throw unavailable()
      cluster.publish(busChannel, encode({ type: 'broadcast_event', channel, event, payload }))
    },
  }
}
