/**
 * The port to databases whose statements come from outside: one statement at a time, bounded in time, rows and memory,
 * with no way out of its database. Adapters own how a statement is kept in (`sandbox-sqlite` in a process of its own,
 * `sandbox-postgres` as a role of its own); who may ask at all is the feature's.
 */

/** What may stand for a `?`. */
export type SandboxValue = string | number | boolean | null

/** Bounds of one database. */
export interface SandboxLimits {
  readonly timeoutMs: number
  readonly rowsMax: number
  /** Of its file, where it has one. */
  readonly bytesMax: number
  /** Of the rows of one answer, as JSON in UTF-8. */
  readonly answerBytesMax: number
}

/** What a statement did, as far as the engine can tell; each adapter says how it counts. */
export interface SandboxCounts {
  /** Rows the statement itself inserted, updated or deleted. */
  readonly changes: number
  readonly rowsRead: number
  readonly rowsWritten: number
  /** Time the statement took, waiting for its turn not included. */
  readonly durationMs: number
}

export interface SandboxAnswer extends SandboxCounts {
  /** The rows as a JSON array of objects, written already. */
  readonly rows: string
}

/** One database. */
export interface Sandbox {
  /**
   * Runs one statement, all or nothing, and resolves once what it did is on disk. Throws `StatementError` for one that
   * is refused, and `EngineError` `busy` or `unavailable`.
   */
  run(query: string, params: readonly SandboxValue[]): Promise<SandboxAnswer>
  /** Lets what runs end, and lets go of everything. */
  close(): Promise<void>
}

export interface Sandboxes {
  /** Makes the database where there is none, and opens it. */
  open(name: string, limits: SandboxLimits): Promise<Sandbox>
}

/** Whose fault a refused statement is: the text's, its parameters', or the size of what it wants to keep. */
export type StatementErrorKind = 'query' | 'params' | 'full'

/** A statement that was refused and has changed nothing. The message may be shown. */
export class StatementError extends Error {
  constructor(
    readonly kind: StatementErrorKind,
    message: string,
  ) {
    super(message)
    this.name = 'StatementError'
  }
}

/** The refusal of a statement that took too long. */
export const tookTooLong = (timeoutMs: number): StatementError =>
  new StatementError('query', `The statement took longer than ${timeoutMs / 1000} seconds and was ended`)
