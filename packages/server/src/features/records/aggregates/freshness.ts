/**
 * Whether tables have changed since a moment, for results that are kept until the next write. Where this process is the
 * only writer, each commit counts; elsewhere the change log says so, as for totals.
 */
import type { Clock } from '../../../base/clock.ts'
import { createLru } from '../../../base/concurrency/lru.ts'
import type { Database, DatabaseAddress } from '../../../engines/sql/sql.ts'
import { ident, sql } from '../../../engines/sql/sql-text.ts'
import { openInstancesMax } from '../../../limits/sqlite.ts'
import { changeLog } from '../changes/changes.ts'
import { type LogBounds, mayBeTrimmed } from '../changes/trim.ts'
import type { TableCall } from '../resolve-table.ts'

/** A moment. */
export interface Stamp {
  readonly snapshot: string
  readonly atMs: number
}

export interface Freshness {
  /** The current moment: what is read after the call is not older. */
  stamp(call: TableCall, tables: readonly string[]): Promise<Stamp>
  /** Whether the tables, all of the call's database, have not changed since. False where it is not known. */
  isCurrent(call: TableCall, tables: readonly string[], stamp: Stamp): Promise<boolean>
  /** To be called in the event-loop tick of the commit. */
  changed(address: DatabaseAddress, table: string): void
}

/** Each open database has a few tables; one that is evicted counts as changed. */
const tablesMax = 8 * openInstancesMax

const tableKey = ({ namespace, instanceId }: DatabaseAddress, table: string): string =>
  `${namespace}\n${instanceId ?? ''}\n${table}`

/** Numbers the commits of each table. */
function createCommitCounts() {
  const counts = createLru<string, number>(tablesMax)
  /** Never repeats, so that a table that was evicted does not return to an earlier number. */
  let last = 0
  return {
    numberOf(address: DatabaseAddress, table: string): number {
      const key = tableKey(address, table)
      const known = counts.get(key)
      if (known !== undefined) return known
      counts.set(key, ++last)
      return last
    },
    changed(address: DatabaseAddress, table: string): void {
      const key = tableKey(address, table)
      if (counts.get(key) !== undefined) counts.set(key, ++last)
    },
  }
}

const logOf = ({ database, table }: TableCall) => database.dialect.from(changeLog(table), ident('_changes'))

async function snapshotOf({ database, table }: TableCall): Promise<string> {
  const query = sql`SELECT ${database.dialect.logView.snapshot(changeLog(table))} AS snapshot`
  const [row] = await database.all<{ snapshot: string }>(query)
  return row?.snapshot ?? ''
}

export function createFreshness(clock: Clock, changes: () => LogBounds): Freshness {
  const commits = createCommitCounts()

  const commitsOf = ({ address }: TableCall, tables: readonly string[]): string =>
    tables.map((table) => commits.numberOf(address, table)).join()

  async function isUnchanged(call: TableCall, tables: readonly string[], { snapshot, atMs }: Stamp): Promise<boolean> {
    const { database, table, address } = call
    if (clock.now() - atMs >= changes().retentionMs / 2) return false
    const { logView, inList } = database.dialect
    const later = sql`SELECT 1 FROM ${logOf(call)} WHERE ${inList(ident('table'), tables, 'text')}
      AND ${logView.beyond(snapshot)}`
    const [row] = await database.all<{ snapshot: string; changed: unknown }>(
      sql`SELECT ${logView.snapshot(changeLog(table))} AS snapshot, EXISTS (${later}) AS changed`,
    )
    if (!row || database.dialect.toBoolean(row.changed) || logView.isAhead(snapshot, row.snapshot)) return false
    return !(await mayBeTrimmed(database, address.namespace, { snapshot, atMs }, clock.now()))
  }

  const isFollowed = (database: Database): boolean => database.dialect.follow !== null

  return {
    async stamp(call, tables) {
      const atMs = clock.now()
      return { snapshot: isFollowed(call.database) ? await snapshotOf(call) : commitsOf(call, tables), atMs }
    },
    async isCurrent(call, tables, stamp) {
      if (isFollowed(call.database)) return isUnchanged(call, tables, stamp)
      return commitsOf(call, tables) === stamp.snapshot
    },
    changed: commits.changed,
  }
}
