/**
 * A page of rows of unbounded size, in the parts an engine needs to limit it before reading: the select list with its
 * long columns, the source, the order, the limit.
 */
import type { WordFrequency } from './dialect.ts'
import { ident, join, type SqlText, sql } from './sql-text.ts'

/** A selected column and its name in the rows. `text` and `json` columns have unbounded length, `short` ones do not. */
export interface SelectColumn {
  readonly column: SqlText
  readonly name: string
  readonly kind: 'short' | 'text' | 'json'
}

/** A select list; compiled once, reused for many pages. */
export interface SelectList {
  readonly columns: readonly SelectColumn[]
  /** `t."id" AS "id", …` */
  readonly text: SqlText
}

export const selectList = (columns: readonly SelectColumn[]): SelectList => ({
  columns,
  text: join(
    columns.map(({ column, name }) => sql`${column} AS ${ident(name)}`),
    ', ',
  ),
})

export interface PageQuery {
  readonly list: SelectList
  /** ` FROM … WHERE …` */
  readonly source: SqlText
  /** ` ORDER BY …` */
  readonly order: SqlText
  readonly limit: number
  readonly offset: number
  /**
   * The engine's row key and the `FROM` that finds rows by it; null where the engine has none. With it, a page that has
   * to be sorted is sorted by key, and only the rows of the page are read completely.
   */
  readonly key: { readonly column: SqlText; readonly from: SqlText } | null
  /** Upper bound on the characters of a row that `bytesMax` does not count: the cursor columns, which are short. */
  readonly keyChars?: number
  /**
   * Selects the rows that it visits, of which it sorts and returns a few. Of a large file it is read on the main thread
   * only where they are at most `quickVisitsMax`. Null or absent where the plan shows it.
   */
  readonly visited?: SqlText | null
  /** Frequency of the search words; null or absent unless the query is a full-text search. */
  readonly frequency?: WordFrequency | null
  /** The caller's key (`callerKey`): reader threads are shared fairly between callers. */
  readonly caller?: string
  /** A scalar sub-select, read from the same snapshot as the rows; not read where `onRead` is called. */
  readonly scalar?: SqlText | undefined
  /**
   * Called with the page in the tick of the event loop that reads it, so that what the process knows in that tick is of
   * its snapshot. Only called where this process is the only writer and the page is read on the main thread.
   */
  readonly onRead?: ((page: ReadRows<unknown>) => void) | undefined
}

export interface PageRows<Row> {
  readonly rows: Row[]
  /** Total length of the long columns of all rows, in bytes or characters depending on the engine. */
  readonly bytes: number
  /** Whether `bytesMax` ended the page before its limit and before the last row. */
  readonly isCut: boolean
  /** Null if it was not requested, or if `onRead` was called instead. */
  readonly scalar: unknown
}

/** The rows of one page, or of several. */
export type ReadRows<Row> = Omit<PageRows<Row>, 'scalar'>

/** ` ORDER BY … LIMIT … OFFSET …` */
export const windowOf = ({ order, limit, offset }: PageQuery): SqlText =>
  offset === 0 ? sql`${order} LIMIT ${limit}` : sql`${order} LIMIT ${limit} OFFSET ${offset}`

export const plainPage = (query: PageQuery): SqlText => sql`SELECT ${query.list.text}${query.source}${windowOf(query)}`
