/**
 * Totals when several processes write: counted once, then updated with the changes in the log since. Each total is
 * exact as of its own snapshot: it moves by the changes that are in one of two snapshots and not in the other.
 */
import type { Clock } from '../../../base/clock.ts'
import { createLru } from '../../../base/concurrency/lru.ts'
import { createSingleFlight } from '../../../base/concurrency/single-flight.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { openInstancesMax, rememberedTotalsMax } from '../../../limits/sqlite.ts'
import { changeLog } from '../changes/changes.ts'
import type { LogBounds } from '../changes/trim.ts'
import type { TableCall } from '../resolve-table.ts'
import type { Condition, KnownTotals } from './known-totals.ts'
import { createRecentChanges, type LogState } from './recent-changes.ts'

interface Followed extends LogState {
  readonly total: number
}

/** As many as an embedded server caches; evicted totals are counted again. */
const totalsMax = openInstancesMax * rememberedTotalsMax

export function createFollowedTotals(clock: Clock, changes: () => LogBounds): KnownTotals {
  const known = createLru<string, Followed>(totalsMax)
  const counts = createSingleFlight<Followed>()
  const recent = createRecentChanges(clock)

  async function scan({ database, table, rows }: TableCall, where: SqlText): Promise<Followed> {
    const atMs = clock.now()
    const snapshot = database.dialect.logView.snapshot(changeLog(table))
    const [row] = await database.all<{ total: unknown; snapshot: string }>(
      sql`SELECT count(*) AS total, ${snapshot} AS snapshot FROM ${rows.from} WHERE ${where}`,
    )
    return { total: Number(row?.total ?? 0), snapshot: row?.snapshot ?? '', atMs }
  }

  const keyOf = ({ address, table }: TableCall, { where }: Condition): string =>
    JSON.stringify([address.namespace, address.instanceId, table.name, where.text, where.values])

  /** A total that can still be updated. Half of the retention leaves a margin for clock skew between nodes. */
  function find(key: string): Followed | undefined {
    const last = known.get(key)
    return last && clock.now() - last.atMs < changes().retentionMs / 2 ? last : undefined
  }

  const countOnce = (key: string, call: TableCall, { where }: Condition): Promise<Followed> =>
    counts.run(key, async () => {
      const counted = await scan(call, where)
      known.set(key, counted)
      recent.keepFrom(call, { snapshot: counted.snapshot, atMs: counted.atMs })
      return counted
    })

  return {
    async count(call, condition) {
      const key = keyOf(call, condition)
      const last = find(key)
      const moved = last ? await recent.difference(call, condition.expr, last) : null
      if (!last || !moved) return (await countOnce(key, call, condition)).total
      const total = last.total + moved.by
      known.set(key, { total, snapshot: moved.snapshot, atMs: moved.atMs })
      return total
    },
    atPage(call, condition) {
      const { follow, logView } = call.database.dialect
      const atMs = clock.now()
      return {
        scalar: sql`SELECT ${logView.snapshot(changeLog(call.table))}`,
        async find(scalar) {
          const snapshot = String(scalar)
          const key = keyOf(call, condition)
          const last = find(key) ?? (await countOnce(key, call, condition))
          const moved = await recent.difference(call, condition.expr, last, { snapshot, atMs })
          if (!moved) {
            known.delete(key)
            return null
          }
          const total = last.total + moved.by
          if (follow?.isWithin(last.snapshot, snapshot)) known.set(key, { total, snapshot, atMs })
          return total
        },
      }
    },
    clear() {
      known.clear()
      recent.clear()
    },
  }
}
