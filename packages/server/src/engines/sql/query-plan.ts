/** How an engine runs a query: what `explain` shows of it. */

export interface QueryPlan {
  /** The engine's own words, one step per line, indented by depth. */
  readonly lines: readonly string[]
  /** Rows that all scans read; null where the engine does not count them. */
  readonly rowsScanned: number | null
  /** Names, as in the query, of the tables whose rows are read one after the other, by no condition on an index. */
  readonly scans: ReadonlySet<string>
  /** Names of the indexes that it reads. */
  readonly indexes: ReadonlySet<string>
  /** Whether rows are sorted, since no index has their order. */
  readonly sorts: boolean
}
