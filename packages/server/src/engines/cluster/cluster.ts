/**
 * Port: what the nodes of one server must agree on, and no more: how often something happened, messages to whoever
 * listens, and who may do a thing alone. Adapters (`cluster-memory`, `cluster-redis`) own where that is kept; what is
 * counted, said or held is the callers' matter.
 */

export interface Hit {
  /** Events in the window so far, those just counted included. */
  readonly count: number
  /** Milliseconds until the window ends and the count starts over: above 0, at most the window. */
  readonly resetMs: number
}

export interface Counters {
  /**
   * Counts one event, or as many as `by` says (whole, above 0). A window starts with a key's first event and lasts
   * `windowMs`. A counter in the same process answers at once, so that the caller need not wait a turn. Rejects with
   * `EngineError` `unavailable` or `busy`; then the event may have been counted.
   */
  hit(key: string, windowMs: number, by?: number): Hit | Promise<Hit>
}

export type Listener = (message: string) => void

export interface Bus {
  /**
   * Sends a message to everybody who listens to the channel, on this node too, in the order of the sender. At most
   * once: while the nodes cannot reach each other it is lost, so whoever must miss nothing numbers its messages and
   * fetches what a gap shows. Never throws, and no listener runs before it returns.
   */
  publish(channel: string, message: string): void
  /**
   * Calls the listener with each message from some moment soon on, also after an outage, until the function it gives
   * back is called. What a listener throws is logged and harms nobody.
   */
  subscribe(channel: string, listener: Listener): () => void
}

export interface Lease {
  /**
   * Rises with every new holder of a name and never repeats. What the lease protects remembers the highest it has seen
   * and refuses lower ones, so that a holder who has lost the lease unawares can do no harm. Fits a double.
   */
  readonly fence: number
}

/**
 * Rights that one holder has at a time, for as long as it renews them. A holder's name belongs to one run of one
 * process. A holder acts as if it had lost the lease once its own monotonic clock says that `ttlMs` have passed since
 * it last asked for it with success.
 */
export interface Leases {
  /**
   * Takes a free lease, or renews the holder's own, which keeps its fence; null while somebody else has it. Rejects
   * with `EngineError` `unavailable` or `busy`; then asking again tells whether the lease was taken.
   */
  acquire(name: string, holder: string, ttlMs: number): Promise<Lease | null>
  /**
   * Has the holder's lease last another `ttlMs`; false when it is not the holder's any more. Rejects like `acquire`.
   */
  renew(name: string, holder: string, ttlMs: number): Promise<boolean>
  /** Frees the lease if it is the holder's. Rejects like `acquire`; then the lease ends by itself. */
  release(name: string, holder: string): Promise<void>
}

export interface Cluster extends Counters, Bus, Leases {
  /** False while the other nodes cannot be reached. */
  isHealthy(): boolean
  /** What is wrong while it is not healthy, for operators; null while it is. */
  findFault(): string | null
  /** Sends what was said, and lets go of every connection. Leases end by themselves. */
  close(): Promise<void>
}
