/**
 * Counts the rows a statement reads and writes on PostgreSQL: the session's statistics of the schema's tables and
 * indexes, read before and after. Listing them in the catalog costs more than most statements, so the list is cached
 * for a moment.
 */
import { sqlTableListMs } from '../../../limits/resources.ts'

/** The query that runs before and after a statement. */
export interface CountQuery {
  readonly text: string
  readonly values: readonly string[]
}

export interface Counting {
  /** `makesTables`: the statement may create or drop tables or indexes. */
  query(makesTables: boolean): CountQuery
  /** Parses a result row: rows read, rows written. */
  read(row: readonly (string | null)[]): readonly [read: number, written: number]
  /** Invalidates the list: tables were created or dropped. */
  forget(): void
}

/**
 * Rows and index entries returned by scans, and rows inserted, updated and deleted, by this session since its last
 * statistics report. Only tables have the latter.
 */
const sums = `SELECT sum(pg_catalog.pg_stat_get_xact_tuples_returned(oid)),
  sum(pg_catalog.pg_stat_get_xact_tuples_inserted(oid) + pg_catalog.pg_stat_get_xact_tuples_updated(oid)
    + pg_catalog.pg_stat_get_xact_tuples_deleted(oid))`

const ofList = `${sums} FROM pg_catalog.unnest($1::pg_catalog.oid[]) AS listed (oid)`

const ofSchema = `${sums}, pg_catalog.array_agg(oid)
  FROM pg_catalog.pg_class WHERE relkind IN ('r', 'm', 'i')
    AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)`

/** Counting for one database; other nodes may create tables in it as well. */
export function createCounting(schema: string): Counting {
  /** A PostgreSQL array literal. */
  let list = '{}'
  let freshUntilMs = 0
  return {
    query: (makesTables) =>
      makesTables || performance.now() > freshUntilMs
        ? { text: ofSchema, values: [schema] }
        : { text: ofList, values: [list] },
    read([read, written, listed]) {
      if (listed !== undefined) {
        list = listed ?? '{}'
        freshUntilMs = performance.now() + sqlTableListMs
      }
      return [Number(read), Number(written)]
    },
    forget() {
      freshUntilMs = 0
    },
  }
}
