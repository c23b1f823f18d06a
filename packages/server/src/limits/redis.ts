/** Bounds of the connection between nodes: leases, Redis commands and retries. */

// Several nodes
/** Leases held at once in one process: a few per room and node, with room to spare; about 200 bytes each. */
export const leasesMax = 100_000
/** Redis is next door: a connection that takes longer is not going to be of use. */
export const redisConnectTimeoutMs = 2000
/** A request waits this long for its rate limit at most; also the silence after which a connection counts as dead. */
export const redisCommandTimeoutMs = 1000
/** Commands without an answer; far beyond what a second of full load sends, so only a Redis that hangs gets there. */
export const redisCommandsMax = 20_000
/** How often an idle connection is tried, so that one that died silently is noticed and health tells the truth. */
export const redisPingIntervalMs = 2000
/** Pauses between attempts to reach a Redis that is away grow from the first to the last. */
export const redisRetryMinMs = 50
export const redisRetryMaxMs = 2000
