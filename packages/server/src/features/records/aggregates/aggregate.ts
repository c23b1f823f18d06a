/**
 * Aggregates over the rows that a caller may read (rules DB-AGG-*). The scan runs outside of the event loop with a time
 * limit; its result is kept until the next write of the tables that it depends on, for every caller whose rule compiles
 * to the same condition.
 */
import { required } from '../../../access/check.ts'
import { createCoalescer } from '../../../base/batching/coalescer.ts'
import type { Clock } from '../../../base/clock.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import type { DatabaseAddress } from '../../../engines/sql/sql.ts'
import { join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { invalidField } from '../../../errors.ts'
import type { Reply } from '../../../http/endpoint.ts'
import { itemBytesMax, type ResponseLimits } from '../../../http/replies/large-responses.ts'
import { aggregateTimeoutMs } from '../../../limits/api.ts'
import { aggregateStatement, readGroups } from '../../../query/aggregate/aggregate-sql.ts'
import { type Aggregation, type AggregationTexts, parseAggregation } from '../../../query/aggregate/aggregation.ts'
import { dependenciesOf } from '../../../query/dependencies.ts'
import { allOf, type Expr, never } from '../../../query/expr.ts'
import { type FilterGroups, parseFilterTexts } from '../../../query/filter.ts'
import type { LogBounds } from '../changes/trim.ts'
import { conditionsOf } from '../reads/page.ts'
import { tagged } from '../reads/page-reply.ts'
import { scanRows } from '../reads/scan.ts'
import type { TableCall } from '../resolve-table.ts'
import { parseSearch } from '../search/parse-search.ts'
import { createFreshness } from './freshness.ts'
import { createResultCache } from './result-cache.ts'

export interface AggregateQuery extends FilterGroups<string>, AggregationTexts {
  /** A search text: groups the rows that the search finds. */
  readonly q?: string | undefined
  /** Whether the scan is to be explained: it is made, whatever is cached. */
  readonly explain?: boolean | undefined
}

export interface Aggregates {
  /**
   * Responds with the groups. Throws 400 that names the parameter, or `query-timeout`; 401/403 if the read rule denies
   * every row.
   */
  aggregate(call: TableCall, query: AggregateQuery): Promise<Reply>
  /** How many scans have begun. The other requests were answered from the cache or refused. */
  scans(): number
  /** To be called in the event-loop tick of the commit. */
  changed(address: DatabaseAddress, table: string): void
  /** Clears the cache, since the tables may have changed. */
  clear(): void
}

export interface AggregatesDeps {
  readonly clock: Clock
  readonly changes: () => LogBounds
  readonly limits: ResponseLimits
}

/** The rows to group: a condition on them, and a search. */
interface Selection {
  readonly condition: Expr
  /** ` FROM … WHERE …` */
  readonly source: SqlText
}

/** Checks the condition and the search at once; the selection then reads the index, if the search has to. */
function parseSelection(call: TableCall, query: AggregateQuery): () => Promise<Selection> {
  const { table, view, backEnd, rows } = call
  const allowed = required(call.permissions.read(), call.caller)
  const filtered = allOf([allowed, parseFilterTexts(view, query).condition])
  const select = (condition: Expr): Selection => ({
    condition,
    source: sql` FROM ${rows.from} WHERE ${backEnd.condition(condition, table)}`,
  })
  if (query.q === undefined) return async () => select(filtered)
  const searched = parseSearch(call, query.q)
  if (searched.isEmpty) return async () => select(never)
  return async () => {
    const { joins, conditions } = await searched.find()
    const all = [...conditions, ...conditionsOf(call, filtered)]
    const where = all.length === 0 ? sql`` : sql` WHERE ${join(all, ' AND ')}`
    return { condition: filtered, source: sql` FROM ${rows.from}${joins}${where}` }
  }
}

const outOfRange = (): Error =>
  invalidField('measures', 'max', 'a sum is larger than a number can be; leave out the largest numbers with a filter')

/** The response, which ends early where it would be larger than `bytesMax`. */
function responseText(found: { groups: readonly string[]; isTruncated: boolean }, bytesMax: number): string {
  let bytes = 0
  const fitting = found.groups.findIndex((group) => {
    bytes += Buffer.byteLength(group) + 1
    return bytes > bytesMax
  })
  const groups = fitting < 0 ? found.groups : found.groups.slice(0, fitting)
  return `{"groups":[${groups.join(',')}],"truncated":${found.isTruncated || fitting >= 0}}`
}

export function createAggregates({ clock, changes, limits }: AggregatesDeps): Aggregates {
  const freshness = createFreshness(clock, changes)
  const cache = createResultCache()
  const pending = createCoalescer<string>()
  let scans = 0

  async function scan(call: TableCall, aggregation: Aggregation, { source }: Selection): Promise<string> {
    const { database, table, backEnd } = call
    const statement = aggregateStatement(aggregation, table, source, backEnd)
    scans += 1
    const rows = await scanRows(call, statement, aggregateTimeoutMs).catch((error: unknown) => {
      throw error instanceof EngineError && error.kind === 'range' ? outOfRange() : error
    })
    const found = readGroups(aggregation, rows, database.dialect)
    if (!found) throw outOfRange()
    return responseText(found, itemBytesMax(limits.bytesMax()))
  }

  async function findCached(call: TableCall, tables: readonly string[], key: string): Promise<string | null> {
    const cached = cache.get(key)
    if (!cached) return null
    if (await freshness.isCurrent(call, tables, cached.stamp)) return cached.text
    if (cache.get(key) === cached) cache.delete(key)
    return null
  }

  return {
    async aggregate(call, query) {
      const select = parseSelection(call, query)
      const aggregation = parseAggregation(call.view, query)
      const selection = await select()
      if (query.explain) return tagged(await scan(call, aggregation, selection))
      const { table, address } = call
      const { text, values } = selection.source
      const { group, measures, having, sort, limit } = query
      const { namespace, instanceId } = address
      const key = sha256(
        JSON.stringify([namespace, instanceId, table.name, text, values, group, measures, having, sort, limit]),
      )
      const tables = [...new Set([table.name, ...dependenciesOf(selection.condition).map((one) => one.table)])]
      const cached = await findCached(call, tables, key)
      if (cached !== null) return tagged(cached)
      const result = await pending.run(key, async () => {
        // Of the calls that waited for an equal scan, only the first after a write has to scan again.
        const known = await findCached(call, tables, key)
        if (known !== null) return known
        const stamp = await freshness.stamp(call, tables)
        const found = await scan(call, aggregation, selection)
        cache.set(key, { text: found, stamp })
        return found
      })
      return tagged(result)
    },
    scans: () => scans,
    changed: freshness.changed,
    clear: cache.clear,
  }
}
