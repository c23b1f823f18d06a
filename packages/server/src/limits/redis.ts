/** Bounds of the connection between nodes: leases, Redis commands and retries. */

// Several nodes
/** Maximum leases in one process: a few per room and node, with room to spare; about 200 bytes each. */
export const leasesMax = 100_000
/** Time limit for connecting: Redis is on the same network, so a slower connection is unusable. */
export const redisConnectTimeoutMs = 2000
/** Maximum time a request waits for its rate limit; also the silence after which a connection counts as dead. */
export const redisCommandTimeoutMs = 1000
/**
 * Maximum commands without a reply; far above the commands of a second at full load, so only a hanging Redis reaches
 * it.
 */
export const redisCommandsMax = 20_000
/** Interval of pings on idle connections: detects dead connections, so health reports are correct. */
export const redisPingIntervalMs = 2000
/** Exponential backoff between reconnects, from the first to the last pause. */
export const redisRetryMinMs = 50
export const redisRetryMaxMs = 2000
