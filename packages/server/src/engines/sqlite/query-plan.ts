/** Plans of SQLite: the tree of `EXPLAIN QUERY PLAN`, which does not run the query. */
import type { QueryPlan } from '../sql/query-plan.ts'

/** A row of `EXPLAIN QUERY PLAN`. */
export interface PlanStep {
  readonly id: number
  /** Zero at the root. */
  readonly parent: number
  readonly detail: string
}

function indented(steps: readonly PlanStep[]): string[] {
  const depths = new Map<number, number>([[0, -1]])
  return steps.map(({ id, parent, detail }) => {
    const depth = (depths.get(parent) ?? -1) + 1
    depths.set(id, depth)
    return '  '.repeat(depth) + detail
  })
}

export const sqlitePlan = (steps: readonly PlanStep[]): QueryPlan => ({
  lines: indented(steps),
  rowsScanned: null,
  scans: new Set(steps.flatMap(({ detail }) => /^SCAN (\S+)/.exec(detail)?.[1] ?? [])),
  indexes: new Set(steps.flatMap(({ detail }) => / USING (?:COVERING )?INDEX (\S+)/.exec(detail)?.[1] ?? [])),
  sorts: steps.some(({ detail }) => /^USE TEMP B-TREE FOR (LAST .*)?ORDER BY/.test(detail)),
})
