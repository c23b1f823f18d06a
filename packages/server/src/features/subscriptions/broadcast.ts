/**
 * Broadcasts: events to every socket that watches a channel, on every node. They travel at most once and are never
 * stored. A channel is a table's, or one of no table that the configuration declares (`broadcast:{name}`).
 */
import type { Caller } from '../../access/caller.ts'
import type { Cluster } from '../../engines/cluster/cluster.ts'
import { unavailable } from '../../errors.ts'
import { broadcastNameCharsMax } from '../../limits/subscriptions.ts'

export interface Broadcast {
  readonly channel: string
  readonly event: string
  readonly payload: unknown
}

type BroadcastRule = boolean | ((auth: Caller['auth'], name: string) => unknown)

/** Declared channels of no table, in the order in which they are tried. */
export type BroadcastChannels = readonly {
  readonly name: string
  readonly isPrefix: boolean
  readonly subscribe: BroadcastRule
  readonly publish: BroadcastRule
}[]

/** The scope of a service key that may use every broadcast channel. */
export const broadcastScope = 'db:channel:*:broadcast'

const channelPrefix = 'broadcast:'
const namePattern = /^[^\s\p{C}]+$/u

/** Whether a channel is one of no table, declared or not. */
export const isBroadcast = (channel: string): boolean => channel.startsWith(channelPrefix)

/** The name in a channel `broadcast:{name}`; null where it is no such channel. */
export function broadcastNameOf(channel: string): string | null {
  if (!isBroadcast(channel)) return null
  const name = channel.slice(channelPrefix.length)
  return name.length <= broadcastNameCharsMax && namePattern.test(name) ? name : null
}

export const findBroadcast = (channels: BroadcastChannels, name: string): BroadcastChannels[number] | undefined =>
  channels.find((one) => (one.isPrefix ? name.startsWith(one.name) : name === one.name))

export interface Broadcasts {
  /** Throws 503 while the other nodes cannot be reached. */
  send(broadcast: Broadcast): void
}

const busChannel = 'broadcasts'

/** What the sockets that watch a channel listen to. */
export const broadcastTopic = (channel: string): string => `broadcast ${channel}`

export function createBroadcasts(
  cluster: Pick<Cluster, 'publish' | 'subscribe' | 'isHealthy'>,
  publish: (topic: string, text: string) => void,
): Broadcasts {
  cluster.subscribe(busChannel, (text) => {
    const { channel } = JSON.parse(text) as Broadcast
    publish(broadcastTopic(channel), text)
  })
  return {
    send({ channel, event, payload }) {
      if (!cluster.isHealthy()) throw unavailable()
      cluster.publish(busChannel, JSON.stringify({ type: 'broadcast_event', channel, event, payload }))
    },
  }
}
