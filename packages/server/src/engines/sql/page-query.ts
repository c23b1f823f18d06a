/**
 * A page of rows that may be of any size, in the parts an engine needs to bound it before it reads them: the select
 * list with its long columns, the source, the order, and how many rows.
 */
import type { WordFrequency } from './dialect.ts'
import { ident, join, type SqlText, sql } from './sql-text.ts'

/** A selected column and its name in the rows. `text` and `json` may be of any length, the others are short. */
export interface SelectColumn {
  readonly column: SqlText
  readonly name: string
  readonly kind: 'short' | 'text' | 'json'
}

/** A select list, compiled once and used for many pages. */
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
   * The row's own key and the `FROM` that finds rows by it; null where the engine has none. With it, a page that has to
   * be sorted is sorted by key, and only the rows of the page are read whole.
   */
  readonly key: { readonly column: SqlText; readonly from: SqlText } | null
  /** Characters of a row, at most, that are no part of what `bytesMax` bounds: the cursor's, which are short. */
  readonly keyChars?: number
  /** Of the words of a full-text search. */
  readonly frequency?: WordFrequency | null
  /** For whom it is read (`callerKey`): callers share threads fairly. */
  readonly caller?: string
  /** A scalar sub-select, read as of the same moment as the rows. */
  readonly alongside?: SqlText
  /**
   * Called with the rows in the same turn of the event loop in which they are read, where this process does all writing
   * and reads them itself; `alongside` is then left out.
   */
  readonly here?: (rows: readonly unknown[]) => void
}

export interface PageRows<Row> {
  readonly rows: Row[]
  /** Length of the long columns of all rows: bytes or characters, as the engine counts. */
  readonly bytes: number
  /** Whether the bound ended the page before its limit and before the last row. */
  readonly isCut: boolean
  /** Null where it was not asked for, or `here` was called instead. */
  readonly alongside: unknown
}

/** ` ORDER BY … LIMIT … OFFSET …` */
export const windowOf = ({ order, limit, offset }: PageQuery): SqlText =>
  offset === 0 ? sql`${order} LIMIT ${limit}` : sql`${order} LIMIT ${limit} OFFSET ${offset}`

export const plainPage = (query: PageQuery): SqlText => sql`SELECT ${query.list.text}${query.source}${windowOf(query)}`
