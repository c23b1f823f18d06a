/** The interface of the two implementations of totals: for one writing process, and for several. */
import type { SqlText } from '../../../engines/sql/sql-text.ts'
import type { Expr } from '../../../query/expr.ts'
import type { TableCall } from '../resolve-table.ts'

/** The total as of the snapshot of a page. */
export interface PageTotal {
  /** What to read together with the page. */
  readonly scalar?: SqlText
  /** To be called in the tick that reads the page, see `PageQuery`. The total if it is known then. */
  readonly onRead?: () => number | null
  /** The total, given the scalar that the page read. Null if the page has to be read again with a new `PageTotal`. */
  find(scalar: unknown): Promise<number | null>
}

/** A condition on a table, as a tree without `exists` and as SQL. */
export interface Condition {
  readonly expr: Expr
  readonly where: SqlText
}

/** Totals on one kind of engine. */
export interface KnownTotals {
  count(call: TableCall, condition: Condition): Promise<number>
  atPage(call: TableCall, condition: Condition): PageTotal
  clear(): void
}
