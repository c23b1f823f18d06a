/**
 * A cluster of nodes that share a Redis (or Valkey, or another that speaks its language and runs Lua). Nothing in it
 * needs to survive Redis: windows start over, messages are lost, leases are taken anew with higher fences. One
 * connection for commands, one that listens.
 */
import type { Redis } from 'ioredis'
import type { Log } from '../base/log.ts'
import { redisCommandsMax, redisPingIntervalMs } from '../limits.ts'
import type { Cluster } from './cluster.ts'
import { createChannels } from './cluster-channels.ts'
import { connectRedis, disconnectRedis, waitForRedis } from './cluster-redis-connection.ts'
import { acquireScript, hitScript, releaseScript, renewScript, type Script } from './cluster-redis-scripts.ts'
import { EngineError } from './error.ts'

export interface RedisClusterOptions {
  /** `redis://user:password@host:6379/0`, or `rediss://` for TLS. */
  readonly url: string
  /** Begins every key and channel, so that several servers can share a Redis. */
  readonly prefix: string
  readonly log: Log
}

/**
 * Connects, or goes on without: until Redis answers, everything that needs it fails with `unavailable` at once. Must be
 * closed.
 */
export async function openRedisCluster({ url, prefix, log }: RedisClusterOptions): Promise<Cluster> {
  const commands = connectRedis(url, 'commands', log)
  const messages = connectRedis(url, 'messages', log)
  const connections = [commands, messages]
  const run = createRunner(commands)
  const bus = createBus(commands, messages, prefix, log)
  const pings = setInterval(() => {
    for (const redis of connections) if (redis.status === 'ready') redis.ping().catch(() => undefined)
  }, redisPingIntervalMs)
  pings.unref()
  await Promise.all(connections.map(waitForRedis))

  const leaseKey = (name: string): string => `${prefix}{lease}:${name}`
  const fenceKey = `${prefix}{lease}-fence`
  return {
    ...bus,
    async hit(key, windowMs, by = 1) {
      const [count, resetMs] = (await run(hitScript, [`${prefix}hit:${key}`], windowMs, by)) as [number, number]
      return { count, resetMs }
    },
    async acquire(name, holder, ttlMs) {
      const fence = (await run(acquireScript, [leaseKey(name), fenceKey], holder, ttlMs)) as string | null
      return fence === null ? null : { fence: Number(fence) }
    },
    renew: async (name, holder, ttlMs) => (await run(renewScript, [leaseKey(name)], holder, ttlMs)) === 1,
    async release(name, holder) {
      await run(releaseScript, [leaseKey(name)], holder)
    },
    isHealthy: () => connections.every(({ status }) => status === 'ready'),
    async close() {
      clearInterval(pings)
      await Promise.all(connections.map(disconnectRedis))
    },
  }
}

type Run = (script: Script, keys: readonly string[], ...args: (string | number)[]) => Promise<unknown>

/** Runs scripts; rejects with `EngineError`, whatever happens. */
function createRunner(redis: Redis): Run {
  let waiting = 0

  async function evaluate(script: Script, keys: readonly string[], args: readonly (string | number)[]) {
    try {
      return await redis.evalsha(script.sha, keys.length, ...keys, ...args)
    } catch (error) {
      // Redis forgets scripts when it starts; sending the text makes it remember.
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return redis.eval(script.text, keys.length, ...keys, ...args)
    }
  }

  return async (script, keys, ...args) => {
    if (waiting >= redisCommandsMax) throw new EngineError('busy', 'Too many commands wait for Redis')
    waiting++
    try {
      return await evaluate(script, keys, args)
    } catch (error) {
      throw new EngineError('unavailable', 'Redis is away', [], error)
    } finally {
      waiting--
    }
  }
}

function createBus(commands: Redis, messages: Redis, prefix: string, log: Log): Pick<Cluster, 'publish' | 'subscribe'> {
  const channels = createChannels(log)
  let sending = 0

  /** What fails for want of a connection is done when the next one stands; anything else is worth a line. */
  const asked = (command: Promise<unknown>): void =>
    void command.catch((error) => {
      if (messages.status === 'ready') log.error('Redis refused a subscription', { error })
    })
  messages.on('message', (channel, message) => channels.deliver(channel.slice(prefix.length), message))
  messages.on('ready', () => {
    const names = channels.names().map((channel) => prefix + channel)
    if (names.length > 0) asked(messages.subscribe(...names))
  })

  return {
    publish(channel, message) {
      if (sending >= redisCommandsMax || commands.status !== 'ready') return
      sending++
      const done = (): void => void sending--
      commands.publish(prefix + channel, message).then(done, done)
    },
    subscribe(channel, listener) {
      const isFirst = !channels.has(channel)
      const remove = channels.add(channel, listener, () => {
        if (messages.status === 'ready') asked(messages.unsubscribe(prefix + channel))
      })
      if (isFirst && messages.status === 'ready') asked(messages.subscribe(prefix + channel))
      return remove
    },
  }
}
