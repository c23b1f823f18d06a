/**
 * Port: coordination between the nodes of a server: counters for rate limits, publish/subscribe, and leases. Adapters
 * (`memory`, `redis`) own the state; callers define what is counted, published and leased.
 */

export interface Hit {
  /** Events in the window so far, including those just counted. */
  readonly count: number
  /** Milliseconds until the window ends and the count starts over: above 0, at most the window. */
  readonly resetMs: number
}

export interface Counters {
  /**
   * Counts one event, or `by` events (an integer above 0), in fixed windows. A window starts with a key's first event
   * and lasts `windowMs`. A counter in the same process returns synchronously, so the caller need not yield. Rejects
   * with `EngineError` `unavailable` or `busy`; the event may have been counted. A caller that refuses events beyond a
   * count gives it as `limit`: far below it, an event may be counted a moment later (`deferred-hits`).
   */
  hit(key: string, windowMs: number, by?: number, limit?: number): Hit | Promise<Hit>
}

export type Listener = (message: string) => void

export interface Bus {
  /**
   * Publishes a message to all subscribers of the channel, on this node too, in the order of the sender. Delivery is at
   * most once: a message is lost while nodes cannot reach each other, so a consumer that must not miss any numbers its
   * messages and fetches gaps. Never throws, and no listener runs before it returns.
   */
  publish(channel: string, message: string): void
  /**
   * Calls the listener with each message, starting soon after the call and also after an outage, until the returned
   * function is called. An error of a listener is logged and affects no other.
   */
  subscribe(channel: string, listener: Listener): () => void
}

export interface Lease {
  /**
   * Fencing token: increases with every new holder of a name and never repeats. The protected resource remembers the
   * highest it has seen and rejects lower ones, so a holder that lost the lease without noticing can do no harm. Fits a
   * double.
   */
  readonly fence: number
}

/**
 * Leases: exclusive rights that a holder must renew. A holder's name identifies one run of one process. A holder must
 * act as if it lost the lease once `ttlMs` have passed, by its own monotonic clock, since its last successful request.
 */
export interface Leases {
  /**
   * Acquires a free lease, or renews the holder's own, which keeps its fence; null while another holder has it. Rejects
   * with `EngineError` `unavailable` or `busy`; repeat the call to learn whether the lease was acquired.
   */
  acquire(name: string, holder: string, ttlMs: number): Promise<Lease | null>
  /** Extends the holder's lease by `ttlMs`; false if the holder no longer has it. Rejects like `acquire`. */
  renew(name: string, holder: string, ttlMs: number): Promise<boolean>
  /** Releases the lease if the holder has it. Rejects like `acquire`; the lease then expires. */
  release(name: string, holder: string): Promise<void>
}

export interface Cluster extends Counters, Bus, Leases {
  /** False while the other nodes cannot be reached. */
  isHealthy(): boolean
  /** The fault, for operators; null while healthy. */
  findFault(): string | null
  /** Sends pending messages and closes every connection. Leases expire. */
  close(): Promise<void>
}
