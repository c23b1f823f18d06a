/**
 * A cluster of nodes that share a Redis (or Valkey, or another server with its protocol and Lua). Nothing needs to
 * survive Redis: windows start over, messages are lost, leases are acquired again with higher fences. One connection
 * for commands, one for subscriptions.
 */
import type { Redis } from 'ioredis'
import type { Log } from '../../base/log.ts'
import { redisCommandsMax, redisPingIntervalMs } from '../../limits/redis.ts'
import { EngineError } from '../sql/error.ts'
import { createChannels } from './channels.ts'
import type { Cluster } from './cluster.ts'
import { createDeferredHits, systemTimer } from './deferred-hits.ts'
import { createHitBatches } from './hit-batches.ts'
import { connectRedis, disconnectRedis, waitForRedis } from './redis-connection.ts'
import { acquireScript, hitScript, releaseScript, renewScript, type Script } from './redis-scripts.ts'

export interface RedisClusterOptions {
  /** `redis://user:password@host:6379/0`, or `rediss://` for TLS. */
  readonly url: string
  /** Prefix of every key and channel, so that several servers can share a Redis. */
  readonly prefix: string
  readonly log: Log
}

/**
 * Connects, or continues without: until Redis is reachable, everything that needs it fails with `unavailable` at once.
 * Must be closed.
 */
export async function openRedisCluster({ url, prefix, log }: RedisClusterOptions): Promise<Cluster> {
  const commands = connectRedis(url, 'commands', log)
  const messages = connectRedis(url, 'messages', log)
  const connections = [commands, messages]
  const writes = watchWrites(commands, `${prefix}probe`, log)
  const run = createRunner(commands, writes)
  const bus = createBus(commands, messages, prefix, log)
  const pings = setInterval(() => {
    if (messages.status === 'ready') messages.ping().catch(() => undefined)
    writes.probe()
  }, redisPingIntervalMs)
  pings.unref()
  await Promise.all(connections.map(waitForRedis))

  function findFault(): string | null {
    if (connections.some(({ status }) => status !== 'ready')) return 'Redis cannot be reached'
    return writes.failure?.message ?? null
  }

  const countHits = createHitBatches(async (key, windowMs, by) => {
    const [count, resetMs] = (await run(hitScript, [`${prefix}hit:${key}`], windowMs, by)) as [number, number]
    return { count, resetMs }
  })
  const leaseKey = (name: string): string => `${prefix}{lease}:${name}`
  const fenceKey = `${prefix}{lease}-fence`
  return {
    ...bus,
    hit: createDeferredHits({ count: countHits, isAvailable: () => findFault() === null, ...systemTimer }),
    async acquire(name, holder, ttlMs) {
      const fence = (await run(acquireScript, [leaseKey(name), fenceKey], holder, ttlMs)) as string | null
      return fence === null ? null : { fence: Number(fence) }
    },
    renew: async (name, holder, ttlMs) => (await run(renewScript, [leaseKey(name)], holder, ttlMs)) === 1,
    async release(name, holder) {
      await run(releaseScript, [leaseKey(name)], holder)
    },
    isHealthy: () => findFault() === null,
    findFault,
    async close() {
      clearInterval(pings)
      await Promise.all(connections.map(disconnectRedis))
    },
  }
}

type Run = (script: Script, keys: readonly string[], ...args: (string | number)[]) => Promise<unknown>

interface Writes {
  /** Why Redis replies but rejects commands; null while it accepts them. */
  readonly failure: EngineError | null
  /** Reports a rejected command: the others fail too until a probe succeeds. */
  refused(error: Error): void
  /** Writes a small key, unless the connection is down. */
  probe(): void
}

/**
 * Whether Redis accepts writes: a replica, one that is out of memory or disk, and one whose password has changed still
 * reply.
 */
function watchWrites(redis: Redis, key: string, log: Log): Writes {
  let failure: EngineError | null = null

  function refused(error: Error): void {
    if (failure === null) log.error('redis.writes_refused', { reason: error.message })
    failure = new EngineError('unavailable', `Redis refuses writes: ${error.message}`, [], error)
  }
  return {
    get failure() {
      return failure
    },
    refused,
    probe() {
      if (redis.status !== 'ready') return
      redis.set(key, '1', 'PX', redisPingIntervalMs).then(
        () => {
          if (failure !== null) log.info('redis.writes_restored', {})
          failure = null
        },
        (error) => {
          if (isReply(error)) refused(error)
        },
      )
    },
  }
}

/** Whether the error is a reply of Redis, not a connection error of the library. */
const isReply = (error: unknown): error is Error => error instanceof Error && error.name === 'ReplyError'

/** Runs scripts; always rejects with `EngineError`. */
function createRunner(redis: Redis, writes: Writes): Run {
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
    if (writes.failure !== null) throw writes.failure
    if (waiting >= redisCommandsMax) throw new EngineError('busy', 'Too many commands wait for Redis')
    waiting++
    try {
      return await evaluate(script, keys, args)
    } catch (error) {
      if (isReply(error)) writes.refused(error)
      throw new EngineError('unavailable', 'Redis is unavailable', [], error)
    } finally {
      waiting--
    }
  }
}

function createBus(commands: Redis, messages: Redis, prefix: string, log: Log): Pick<Cluster, 'publish' | 'subscribe'> {
  const channels = createChannels(log)
  let sending = 0

  /** A command that fails without a connection is repeated by the next one; other failures are logged. */
  const logFailure = (command: Promise<unknown>): void =>
    void command.catch((error) => {
      if (messages.status === 'ready') log.error('redis.subscribe_failed', { error })
    })
  messages.on('message', (channel, message) => channels.deliver(channel.slice(prefix.length), message))
  messages.on('ready', () => {
    const names = channels.names().map((channel) => prefix + channel)
    if (names.length > 0) logFailure(messages.subscribe(...names))
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
        if (messages.status === 'ready') logFailure(messages.unsubscribe(prefix + channel))
      })
      if (isFirst && messages.status === 'ready') logFailure(messages.subscribe(prefix + channel))
      return remove
    },
  }
}
