/** Plans of PostgreSQL: `EXPLAIN ANALYZE`, which runs the query and counts its rows. */
import type { QueryPlan } from '../sql/query-plan.ts'
import type { SqlRow } from '../sql/sql.ts'
import { type SqlText, sql } from '../sql/sql-text.ts'

/** The members of a node that are shown. */
interface PlanNode {
  readonly 'Node Type': string
  readonly Alias?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly 'Recheck Cond'?: string
  readonly Filter?: string
  readonly 'Sort Key'?: readonly string[]
  readonly 'Actual Rows'?: number
  readonly 'Actual Loops'?: number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly PlanNode[]
}

interface Found {
  readonly node: PlanNode
  readonly depth: number
}

const flatten = (node: PlanNode, depth = 0): Found[] => [
  { node, depth },
  ...(node.Plans ?? []).flatMap((child) => flatten(child, depth + 1)),
]

/** `Index Scan using posts_author on posts (author = $1), rows 30`. */
function lineOf({ node, depth }: Found): string {
  const index = node['Index Name'] === undefined ? '' : ` using ${node['Index Name']}`
  const table = node.Alias === undefined ? '' : ` on ${node.Alias}`
  const condition = node['Index Cond'] ?? node['Recheck Cond'] ?? node['Sort Key']?.join(', ')
  const parts = [
    `${node['Node Type']}${index}${table}${condition === undefined ? '' : ` (${condition})`}`,
    ...(node.Filter === undefined ? [] : [`filter ${node.Filter}`]),
    `rows ${(node['Actual Rows'] ?? 0) * (node['Actual Loops'] ?? 1)}`,
  ]
  return '  '.repeat(depth) + parts.join(', ')
}

/** Whether a node reads rows of a table. A bitmap of an index is read again by the scan of the table above it. */
const isScan = ({ 'Node Type': type }: PlanNode): boolean =>
  type.endsWith(' Scan') && !/^(Subquery|CTE|Bitmap Index)/.test(type)

const scanned = (node: PlanNode): number =>
  ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)) *
  (node['Actual Loops'] ?? 1)

export const explainStatement = (query: SqlText): SqlText => sql`EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${query}`

/** Reads the rows of `explainStatement`. */
export function postgresPlan(rows: readonly SqlRow[]): QueryPlan {
  const stored = rows[0]?.['QUERY PLAN']
  const [{ Plan: root }] = (typeof stored === 'string' ? JSON.parse(stored) : stored) as [{ Plan: PlanNode }]
  const nodes = flatten(root)
  const scans = nodes.map(({ node }) => node).filter(isScan)
  const unconditional = scans.filter((node) => (node['Index Cond'] ?? node['Recheck Cond']) === undefined)
  return {
    lines: nodes.map(lineOf),
    rowsScanned: Math.round(scans.reduce((sum, node) => sum + scanned(node), 0)),
    scans: new Set(unconditional.flatMap(({ Alias }) => Alias ?? [])),
    indexes: new Set(nodes.flatMap(({ node }) => node['Index Name'] ?? [])),
    sorts: nodes.some(({ node }) => node['Node Type'].endsWith('Sort')),
  }
}
