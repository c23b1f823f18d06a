/** Types of the configuration section `sql`. `sql.ts` validates it at start. */

/** What users write for one SQL database. */
export interface SqlDatabaseConfig {
  /** How long a statement may run: `'30s'` (the default) to `'4m'`. */
  readonly timeout?: string
  /** Rows of an answer; default 10,000. A statement that gives more is refused. */
  readonly maxRows?: number
  /** Of the file of the embedded engine: `'1gb'` (the default), or bytes. PostgreSQL knows no such bound. */
  readonly maxSize?: string | number
}
