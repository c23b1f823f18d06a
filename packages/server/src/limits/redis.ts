/** Bounds of the connection between nodes: leases, Redis commands and retries. */

// Several nodes
/** Maximum leases in one process: a few per room and node, with room to spare; about 200 bytes each. */
export const leasesMax = 100_000
/** How often a node announces itself to the others, for administrators, and the silence after which it is forgotten. */
export const nodeAnnounceMs = 5000
export const nodeSilenceMs = 15_000
/** How long nodes have to say how they are; the answer to an administrator lacks those that take longer. */
export const nodeAnswerMs = 500
/** Different questions of administrators to all nodes at the same time. */
export const nodeQueriesMax = 20
/** Nodes that a node knows of. */
export const nodesMax = 1000
/** Channels with the most subscribers that a node names. */
export const nodeChannelsMax = 100
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
/**
 * Hits of a key that is far below its limit are counted after this time, together; a command costs Redis and the node
 * as much processor time as half a point read.
 */
export const deferredHitsMs = 20
/** A count that is older says too little of what other nodes have counted since. */
export const knownHitsMs = 100
/** Share of a limit that a node may have uncounted. */
export const deferredHitsShare = 0.01
/** Keys whose counts are known; about 200 bytes each. */
export const deferredHitsKeysMax = 10_000
