/**
 * How rows that a statement read and wrote are counted on PostgreSQL: by what its session counts of each table and
 * index of the schema, asked before and after. Looking through the catalog for them costs more than most statements,
 * so which there are is remembered for a moment.
 */
import { sqlTableListMs } from '../../limits/resources.ts'

/** What is asked before and after a statement. */
export interface CountQuery {
  readonly text: string
  readonly values: readonly string[]
}

export interface Counting {
  /** `makesTables`: whether the statement may make or drop what is counted. */
  query(makesTables: boolean): CountQuery
  /** Takes an answer's row apart: what was read, what was written. */
  read(row: readonly (string | null)[]): readonly [read: number, written: number]
  /** Tables have been made or dropped. */
  forget(): void
}

/**
 * Rows and index entries that scans gave, and rows inserted, updated and deleted, by this session since it last
 * reported them. Only tables have counts of the latter.
 */
const sums = `SELECT sum(pg_catalog.pg_stat_get_xact_tuples_returned(oid)),
  sum(pg_catalog.pg_stat_get_xact_tuples_inserted(oid) + pg_catalog.pg_stat_get_xact_tuples_updated(oid)
    + pg_catalog.pg_stat_get_xact_tuples_deleted(oid))`

const ofList = `${sums} FROM pg_catalog.unnest($1::pg_catalog.oid[]) AS listed (oid)`

const ofSchema = `${sums}, pg_catalog.array_agg(oid)
  FROM pg_catalog.pg_class WHERE relkind IN ('r', 'm', 'i')
    AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)`

/** Of one database; other nodes may make tables in it as well. */
export function createCounting(schema: string): Counting {
  /** As PostgreSQL writes an array. */
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
