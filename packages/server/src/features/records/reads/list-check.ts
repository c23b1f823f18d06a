/**
 * Checks of a transaction that a list still has the records that the caller has read: the query runs again within the
 * transaction, under the caller's rules, so that its outcome says no more than a list does. `transaction-locks` makes
 * it hold until the commit.
 */

import { required } from '../../../access/check.ts'
import { z } from '../../../base/schemas/z.ts'
import type { Reader } from '../../../engines/sql/sql.ts'
import { join, sql } from '../../../engines/sql/sql-text.ts'
import { prefixedErrors } from '../../../errors.ts'
import { listLimitDefault, listLimitMax } from '../../../limits/api.ts'
import { orderBy } from '../../../query/cursor.ts'
import { dependenciesOf } from '../../../query/dependencies.ts'
import { allOf, type Expr } from '../../../query/expr.ts'
import { parseFilterGroups } from '../../../query/filter.ts'
import { parseSort, type Sort } from '../../../query/sort.ts'
import type { TableCall } from '../resolve-table.ts'
import { conditionsOf } from './page.ts'
import { digestOf } from './page-reply.ts'

export const listCheckBody = z
  .strictObject({
    filter: z.unknown().optional(),
    orFilter: z.unknown().optional(),
    sort: z.string().optional(),
    limit: z.int().min(1).max(listLimitMax).optional(),
  })
  .meta({
    description: `A list from its start, with the parameters of a list; \`limit\` is ${listLimitDefault} by default`,
  })

/** A list and what it must have, see `digestOf`. */
export interface ListCheck {
  readonly condition: Expr
  readonly sort: Sort
  readonly limit: number
  readonly digest: string
}

/** Throws 400 that names what is invalid below `path`, and 401/403 if the read rule denies every row. */
export function parseListCheck(
  { permissions, caller, view }: TableCall,
  list: z.infer<typeof listCheckBody>,
  digest: string,
  path: string,
): ListCheck {
  const allowed = required(permissions.read(), caller)
  return prefixedErrors(path, () => {
    const { condition, nearby } = parseFilterGroups(view, list)
    return {
      condition: allOf([allowed, condition]),
      sort: parseSort(view, list.sort, nearby),
      limit: list.limit ?? listLimitDefault,
      digest,
    }
  })
}

/** The names of the tables that decide the list: its own, and those that its filter and the read rule search. */
export const tablesOf = ({ table }: TableCall, { condition }: ListCheck): readonly string[] => [
  table.name,
  ...dependenciesOf(condition).map((one) => one.table),
]

/** Whether the list has the same records in the same versions. */
export async function hasSameRecords(
  call: TableCall,
  tx: Reader,
  { condition, sort, limit, digest }: ListCheck,
): Promise<boolean> {
  const { rows, backEnd, table } = call
  const conditions = conditionsOf(call, condition)
  const where = conditions.length === 0 ? sql`` : sql` WHERE ${join(conditions, ' AND ')}`
  const found = await tx.all<{ id: string; version: number | string }>(
    sql`SELECT ${rows.name}."id" AS "id", ${rows.version} AS "version" FROM ${rows.from}${where}
      ORDER BY ${orderBy(backEnd, table, sort)} LIMIT ${limit}`,
  )
  const versions = found.map(({ version }) => Number(version))
  return (
    digest ===
    digestOf(
      found.map(({ id }) => id),
      versions,
    )
  )
}
