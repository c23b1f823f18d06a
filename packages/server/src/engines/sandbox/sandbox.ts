/**
 * Port: databases for untrusted statements, one statement at a time, bounded in time, rows and memory, and confined to
 * its database. Adapters own the isolation (`sqlite`: a child process, `postgres`: a role); the feature authorizes
 * callers.
 */

/** A parameter value. */
export type SandboxValue = string | number | boolean | null

/** Bounds of one database. */
export interface SandboxLimits {
  readonly timeoutMs: number
  readonly rowsMax: number
  /** Size of the file; embedded engine only. */
  readonly bytesMax: number
  /** Size of the rows of a reply, as JSON in UTF-8. */
  readonly answerBytesMax: number
}

/** Effects of a statement; each adapter documents how it counts. */
export interface SandboxCounts {
  /** Rows the statement itself inserted, updated or deleted. */
  readonly changes: number
  readonly rowsRead: number
  readonly rowsWritten: number
  /** Execution time of the statement, without its time in the queue. */
  readonly durationMs: number
}

export interface SandboxAnswer extends SandboxCounts {
  /** The rows, serialized as a JSON array of objects. */
  readonly rows: string
}

/** One database. */
export interface Sandbox {
  /**
   * Runs one statement atomically and resolves once its effects are durable. Statements that wait are served round
   * robin over callers (`callerKey`). Throws `StatementError` for a rejected statement, and `EngineError` `crowded`,
   * `busy` or `unavailable`.
   */
  run(query: string, params: readonly SandboxValue[], caller: string): Promise<SandboxAnswer>
  /** Waits for running statements and releases all resources. */
  close(): Promise<void>
}

export interface Sandboxes {
  /** Opens the database; creates it if it is missing. */
  open(name: string, limits: SandboxLimits): Promise<Sandbox>
}

/** What a rejected statement violates: the syntax or rules of the text, its parameters, or the size of the database. */
export type StatementErrorKind = 'query' | 'params' | 'full'

/** A rejected statement; it has changed nothing. The message may be shown to the caller. */
export class StatementError extends Error {
  constructor(
    readonly kind: StatementErrorKind,
    message: string,
  ) {
    super(message)
    this.name = 'StatementError'
  }
}

/** The error for a statement that exceeded its deadline. */
export const tookTooLong = (timeoutMs: number): StatementError =>
  new StatementError('query', `The statement took longer than ${timeoutMs / 1000} seconds and was ended`)
