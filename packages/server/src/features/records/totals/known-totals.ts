/**
 * What the two kinds of totals have in common: those of this process, and those that follow other processes' writes.
 */
import type { SqlText } from '../../../engines/sql/sql-text.ts'
import type { Expr } from '../../../query/expr.ts'
import type { TableCall } from '../resolve-table.ts'

/** The total at the moment of a page. */
export interface PageTotal {
  /** What the page is to be read with. */
  readonly read: { readonly alongside?: SqlText; readonly here?: () => void }
  /**
   * The total, given what was read alongside the page. Null where the page has to be read again with a new `PageTotal`.
   */
  find(alongside: unknown): Promise<number | null>
}

/** A condition on a table, as a tree without `exists` and as SQL. */
export interface Condition {
  readonly expr: Expr
  readonly where: SqlText
}

/** How totals are known on one kind of engine. */
export interface KnownTotals {
  count(call: TableCall, condition: Condition): Promise<number>
  atPage(call: TableCall, condition: Condition): PageTotal
  clear(): void
}
