/**
 * One connection to Redis that fails fast and reconnects by itself. Owns timeouts, backoff and logging; `redis` owns
 * the commands.
 */
import { Redis } from 'ioredis'
import type { Log } from '../../base/log.ts'
import { redisCommandTimeoutMs, redisConnectTimeoutMs, redisRetryMaxMs, redisRetryMinMs } from '../../limits/redis.ts'

/** Exponential backoff with jitter. */
export function retryPauseMs(attempt: number): number {
  const pauseMs = Math.min(redisRetryMinMs * 2 ** Math.min(attempt - 1, 16), redisRetryMaxMs)
  return Math.round(pauseMs * (0.5 + Math.random() / 2))
}

/**
 * Connects, and reconnects until disconnected. A command fails at once while there is no connection; it is never queued
 * and never sent twice, since the first may have arrived. `role` names the connection in the log.
 */
export function connectRedis(url: string, role: string, log: Log): Redis {
  const redis = new Redis(url, {
    connectionName: `plinth-${role}`,
    connectTimeout: redisConnectTimeoutMs,
    commandTimeout: redisCommandTimeoutMs,
    // A connection whose peer has vanished looks alive: without this timeout, commands would pile up.
    socketTimeout: redisCommandTimeoutMs,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    // Commands without a reply fail with the connection, not when the next one is established.
    maxRetriesPerRequest: 0,
    retryStrategy: retryPauseMs,
    // After a fail-over the old primary replies that it is a replica; the address resolves to the new one.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
  })
  // Without the password.
  const { host } = new URL(url)
  let isDown = false
  const leave = (error?: Error): void => {
    // One line for each outage, not for each attempt.
    if (isDown) return
    isDown = true
    log.error('redis.connection_lost', { connection: role, redis: host, ...(error ? { reason: error.message } : {}) })
  }
  redis.on('error', leave)
  redis.on('reconnecting', () => leave())
  redis.on('ready', () => {
    if (isDown) log.info('redis.connection_restored', { connection: role })
    isDown = false
  })
  return redis
}

/** Resolves once connected, after the first failure, or after a timeout. Never rejects. */
export async function waitForRedis(redis: Redis): Promise<void> {
  if (redis.status === 'ready') return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, redisConnectTimeoutMs)
  const events = ['ready', 'error', 'reconnecting'] as const
  for (const event of events) redis.once(event, () => resolve())
  await promise
  clearTimeout(timer)
}

/** Sends pending commands, then closes the connection. */
export async function disconnectRedis(redis: Redis): Promise<void> {
  try {
    await redis.quit()
  } catch {
    redis.disconnect()
  }
}
