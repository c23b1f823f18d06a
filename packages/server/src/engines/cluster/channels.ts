/**
 * Subscriptions of this process by channel. Owns delivery, so that every adapter treats listeners alike; adapters own
 * the transport.
 */
import type { Log } from '../../base/log.ts'
import type { Listener } from './cluster.ts'

export interface Channels {
  /**
   * Adds a listener; `removed` runs when the channel loses its last one. Returns the function that removes the
   * listener.
   */
  add(channel: string, listener: Listener, removed?: () => void): () => void
  /** Calls every current listener; their errors do not reach the caller. */
  deliver(channel: string, message: string): void
  has(channel: string): boolean
  /** Channels with listeners. */
  names(): string[]
  clear(): void
}

export function createChannels(log: Log): Channels {
  // Each subscription is an object of its own: a function subscribed twice is called twice.
  const channels = new Map<string, Set<{ readonly listener: Listener }>>()

  function call(channel: string, listener: Listener, message: string): void {
    const failed = (error: unknown): void => log.error('cluster.listener_failed', { channel, error })
    try {
      const outcome: unknown = listener(message)
      // The type allows async functions, whose failure would otherwise end the process.
      if (outcome instanceof Promise) outcome.catch(failed)
    } catch (error) {
      failed(error)
    }
  }

  return {
    add(channel, listener, removed) {
      const subscription = { listener }
      const subscriptions = channels.get(channel) ?? new Set()
      channels.set(channel, subscriptions.add(subscription))
      return () => {
        if (!subscriptions.delete(subscription) || subscriptions.size > 0) return
        channels.delete(channel)
        removed?.()
      }
    },
    deliver(channel, message) {
      const subscriptions = channels.get(channel)
      if (!subscriptions) return
      // A subscription removed during delivery receives nothing; one added during delivery starts with the next
      // message.
      for (const subscription of [...subscriptions])
        if (subscriptions.has(subscription)) call(channel, subscription.listener, message)
    },
    has: (channel) => channels.has(channel),
    names: () => [...channels.keys()],
    clear: () => channels.clear(),
  }
}
