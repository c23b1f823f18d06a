/** Error kinds of the engines. Adapters map their vendor's errors to these kinds; features map a kind to a response. */

export type EngineErrorKind =
  /** A row violates a unique index; `columns` names the index's columns. */
  | 'unique'
  /** A row's text is too long for an index; the engine does not report which one. */
  | 'oversized'
  /**
   * Serialization conflict with a concurrent transaction; retrying `work` may succeed. Also thrown by `work` itself.
   */
  | 'conflict'
  /** The queue is full; nothing was done. */
  | 'busy'
  /** The caller's share of the queue is full; nothing was done. */
  | 'crowded'
  /** The statement exceeded its time limit and was ended. */
  | 'timeout'
  /** A computed value is out of the range of numbers. */
  | 'range'
  /** The engine is unreachable, full or failed; nothing was acknowledged. */
  | 'unavailable'

export class EngineError extends Error {
  constructor(
    readonly kind: EngineErrorKind,
    message: string,
    readonly columns: readonly string[] = [],
    cause?: unknown,
  ) {
    super(message, { cause })
    this.name = 'EngineError'
  }
}
