/** What users write the section `sql` with. Whether it makes sense is asked again at start, by `sql`. */

/** What users write for one SQL database. */
export interface SqlDatabaseConfig {
  /** How long a statement may run: `'30s'` (the default) to `'4m'`. */
  readonly timeout?: string
  /** Rows of an answer; default 10,000. A statement that gives more is refused. */
  readonly maxRows?: number
  /** Of the file of the embedded engine: `'1gb'` (the default), or bytes. PostgreSQL knows no such bound. */
  readonly maxSize?: string | number
}
