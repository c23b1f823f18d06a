/**
 * Broadcasts: what a server says to everybody who watches a channel, on whichever node. They travel at most once and
 * are not kept; whatever they hold, they arrive as what they are.
 */
import type { Cluster } from '../../engines/cluster.ts'
import { unavailable } from '../../errors.ts'

export interface Broadcast {
  readonly channel: string
  readonly event: string
  readonly payload: Readonly<Record<string, unknown>>
}

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
