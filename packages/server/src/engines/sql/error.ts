/**
 * What an engine may fail with. Adapters map their vendor's errors to these few kinds; features decide what each means
 * to a caller.
 */

export type EngineErrorKind =
  /** A unique index refused the row; `columns` names them. */
  | 'unique'
  /** Some index cannot hold a row's texts; it is not said which. */
  | 'oversized'
  /** Another transaction was quicker; this one would find what that one did if it were run again. Thrown by `work`. */
  | 'conflict'
  /** Too many operations are waiting; nothing was done. */
  | 'busy'
  /** Too many operations of the same caller are waiting; nothing was done. */
  | 'crowded'
  /** The engine is away, full, or has failed; nothing was acknowledged. */
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
