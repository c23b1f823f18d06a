/** The instances of a namespace: the first columns of the primary keys of its tables, each read once by its index. */

import { instanceSearchTimeoutMs } from '../../../limits/postgres.ts'
import type { InstancePage, InstanceSearch } from '../../sql/instance-search.ts'
import type { Database } from '../../sql/sql.ts'
import { join, type SqlText, sql } from '../../sql/sql-text.ts'
import { instanceColumn, qualified } from '../dialect.ts'

/** Steps from id to id, which reads one entry of the index for each, however many records it has. */
function idsOf(table: SqlText, { text, match, after, limit }: InstanceSearch): SqlText {
  const isPrefix = match === 'prefix'
  const start = isPrefix && text > after ? sql`${instanceColumn} >= ${text}` : sql`${instanceColumn} > ${after}`
  const next = (condition: SqlText): SqlText => sql`(SELECT min(${instanceColumn}) FROM ${table} WHERE ${condition})`
  const goesOn = isPrefix ? sql`starts_with("walk".id, ${text})` : sql`"walk".id IS NOT NULL`
  const isFound = isPrefix ? goesOn : sql`"walk".id IS NOT NULL AND strpos("walk".id, ${text}) > 0`
  return sql`(WITH RECURSIVE "walk" (id) AS (
      SELECT ${next(start)}
      UNION ALL SELECT ${next(sql`${instanceColumn} > "walk".id`)} FROM "walk" WHERE ${goesOn})
    SELECT id FROM "walk" WHERE ${isFound} LIMIT ${limit + 1})`
}

/** Throws `EngineError` `timeout` where a text that few ids contain is searched among too many. */
export async function findInstances(database: Database, search: InstanceSearch): Promise<InstancePage> {
  const { namespace, tables, limit, caller } = search
  if (tables.length === 0) return { instances: [], hasMore: false, recent: [] }
  const each = tables.map((name) => idsOf(qualified({ namespace, name }), search))
  const query = sql`SELECT DISTINCT id FROM (${join(each, ' UNION ALL ')}) AS "all" ORDER BY id LIMIT ${limit + 1}`
  const rows = await database.scan<{ id: string }>(query, { caller, timeoutMs: instanceSearchTimeoutMs })
  return {
    instances: rows.slice(0, limit).map(({ id }) => ({ id, writtenAtMs: null })),
    hasMore: rows.length > limit,
    recent: [],
  }
}
