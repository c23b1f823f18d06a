/**
 * One connection to Redis that fails fast and comes back by itself. Owns timeouts, back-off and telling the log; what
 * is said over it is `cluster-redis`'s.
 */
import { Redis } from 'ioredis'
import type { Log } from '../../base/log.ts'
import { redisCommandTimeoutMs, redisConnectTimeoutMs, redisRetryMaxMs, redisRetryMinMs } from '../../limits/redis.ts'

/** Grows from pause to pause, and differs between nodes that lost Redis at the same moment. */
export function retryPauseMs(attempt: number): number {
  const pauseMs = Math.min(redisRetryMinMs * 2 ** Math.min(attempt - 1, 16), redisRetryMaxMs)
  return Math.round(pauseMs * (0.5 + Math.random() / 2))
}

/**
 * Starts to connect, and goes on until told to disconnect. A command fails at once while there is no connection; it is
 * never kept for later and never sent twice, since the first may have arrived. `role` names the connection in the log.
 */
export function connectRedis(url: string, role: string, log: Log): Redis {
  const redis = new Redis(url, {
    connectionName: `plinth-${role}`,
    connectTimeout: redisConnectTimeoutMs,
    commandTimeout: redisCommandTimeoutMs,
    // A connection whose other end has vanished looks alive: without this, commands would pile up behind each other.
    socketTimeout: redisCommandTimeoutMs,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    // Commands without an answer fail when the connection does, not when the next one stands.
    maxRetriesPerRequest: 0,
    retryStrategy: retryPauseMs,
    // After a fail-over the old primary answers that it is a replica now; the address leads to the new one.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
  })
  // Without the password.
  const { host } = new URL(url)
  let isAway = false
  const leave = (error?: Error): void => {
    // One line for each outage, not for each attempt.
    if (isAway) return
    isAway = true
    log.error('redis.connection_lost', { connection: role, redis: host, ...(error ? { reason: error.message } : {}) })
  }
  redis.on('error', leave)
  redis.on('reconnecting', () => leave())
  redis.on('ready', () => {
    if (isAway) log.info('redis.connection_restored', { connection: role })
    isAway = false
  })
  return redis
}

/** Resolves once the connection stands, or has failed for the first time, or takes its time. Never rejects. */
export async function waitForRedis(redis: Redis): Promise<void> {
  if (redis.status === 'ready') return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, redisConnectTimeoutMs)
  const events = ['ready', 'error', 'reconnecting'] as const
  for (const event of events) redis.once(event, () => resolve())
  await promise
  clearTimeout(timer)
}

/** Sends what is under way, then lets the connection go. */
export async function disconnectRedis(redis: Redis): Promise<void> {
  try {
    await redis.quit()
  } catch {
    redis.disconnect()
  }
}
