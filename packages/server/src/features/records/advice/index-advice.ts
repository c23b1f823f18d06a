/** Indexes that sampled lists lack, and declared ones that another index makes superfluous. */
import { callerKey } from '../../../access/caller.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { indexAdviceMax, indexRowsMin } from '../../../limits/dashboard.ts'
import { orderBy } from '../../../query/cursor.ts'
import type { Table } from '../../../query/table.ts'
import type { Namespaces } from '../resolve-table.ts'
import type { ReadSample, ReadSamples } from './read-samples.ts'

export interface IndexAdvice {
  readonly namespace: string
  readonly table: string
  readonly fields: readonly string[]
}

export interface MissingIndex extends IndexAdvice {
  /** Sampled lists that would use it. */
  readonly count: number
  /** Whether rows are sorted, as opposed to only filtered, without it. */
  readonly sorts: boolean
}

export interface RedundantIndex extends IndexAdvice {
  /** The fields of the index that begins with the same ones. */
  readonly coveredBy: readonly string[]
}

/** Whether a table has so many rows that a scan of it matters; reads no more than that many. */
async function isLarge(database: Database, from: SqlText, caller: string): Promise<boolean> {
  const query = sql`SELECT 1 AS yes FROM ${from} LIMIT 1 OFFSET ${indexRowsMin}`
  return (await database.all(query, undefined, caller)).length > 0
}

/** Null where the plan of the list is fine, such as for a small table. */
async function adviseOn({ call, condition, sort, fields, count }: ReadSample): Promise<MissingIndex | null> {
  const { database, rows, backEnd, table, address } = call
  const caller = callerKey(call.caller)
  if (!(await isLarge(database, rows.from, caller))) return null
  const query = sql`SELECT ${rows.name}."id" AS "id" FROM ${rows.from} WHERE ${backEnd.condition(condition, table)}
      ORDER BY ${orderBy(backEnd, table, sort)} LIMIT ${1}`
  const plan = await database.explain(query)
  const readsAll = plan.scans.has(rows.name.text.replaceAll('"', ''))
  if (!readsAll && !plan.sorts) return null
  return { namespace: address.namespace, table: table.name, fields, count, sorts: plan.sorts }
}

/** Those that most sampled lists would use. */
export async function missingIndexes(samples: ReadSamples): Promise<readonly MissingIndex[]> {
  const found: MissingIndex[] = []
  for (const sample of samples.list().toSorted((one, other) => other.count - one.count)) {
    if (found.length === indexAdviceMax) break
    const advice = await adviseOn(sample)
    if (advice) found.push(advice)
  }
  return found
}

const begins = (fields: readonly string[], start: readonly string[]): boolean =>
  fields.length > start.length && start.every((field, at) => fields[at] === field)

/** The index that begins with these fields, and so serves all that one on them does. */
const coveringOf = (table: Table, fields: readonly string[]) =>
  table.indexes.find((other) => begins(other.fields, fields))

export const isRedundant = (table: Table, fields: readonly string[]): boolean => coveringOf(table, fields) !== undefined

/** Declared indexes whose fields are the first ones of another index. A unique one is a constraint, and stays. */
export function redundantIndexes(namespaces: Namespaces): readonly RedundantIndex[] {
  const found: RedundantIndex[] = []
  for (const { name: namespace, tables } of namespaces.values())
    for (const { table } of tables.values())
      for (const { fields, unique } of table.indexes) {
        const covering = coveringOf(table, fields)
        if (!unique && covering) found.push({ namespace, table: table.name, fields, coveredBy: covering.fields })
      }
  return found.slice(0, indexAdviceMax)
}
