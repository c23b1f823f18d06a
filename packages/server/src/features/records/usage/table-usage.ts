/**
 * What each table takes on disk and how many rows it has. A read starts a measurement in the background, one table
 * after the other, if the last one is old: a request never waits for it.
 */
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { Sql } from '../../../engines/sql/sql.ts'
import type { StorageBounds, StoredTable } from '../../../engines/table-storage/table-storage.ts'
import { storageMeasuredMs, storagePagesMax, storageRowsMax, storageTimeoutMs } from '../../../limits/dashboard.ts'
import type { Table } from '../../../query/table.ts'
import type { Namespaces } from '../resolve-table.ts'

export interface TableUsageDeps {
  readonly sql: Sql
  readonly namespaces: () => Namespaces
  readonly clock: Clock
  readonly log: Log
}

/** The last measurement, by namespace and table. A table that could not be measured is missing. */
export interface MeasuredTables {
  /** When it began. */
  readonly atMs: number
  readonly tables: ReadonlyMap<string, StoredTable>
}

export interface TableUsage {
  /** The last measurement, or null before the first. Starts another one where it is old. */
  read(): MeasuredTables | null
  /** Whether a measurement is under way. */
  isMeasuring(): boolean
  /** Forgets the last measurement: the tables may have changed. */
  clear(): void
  /** Measures nothing more. */
  stop(): void
}

export const usageKeyOf = ({ namespace, name }: Pick<Table, 'namespace' | 'name'>): string =>
  JSON.stringify([namespace, name])

const bounds: StorageBounds = { pages: storagePagesMax, rows: storageRowsMax }

export function createTableUsage({ sql, namespaces, clock, log }: TableUsageDeps): TableUsage {
  let last: MeasuredTables | null = null
  let running: object | null = null
  let isStopped = false

  async function measureTable(table: Table): Promise<StoredTable | null> {
    const options = { caller: 'table usage', timeoutMs: storageTimeoutMs }
    try {
      const database = sql.database({ namespace: table.namespace, instanceId: null })
      const { tableStorage } = database.dialect
      return tableStorage.read(await database.scan(tableStorage.query(table, bounds), options), table, bounds)
    } catch (error) {
      if (!isStopped) log.warn('records.usage_failed', { table: `${table.namespace}.${table.name}`, error })
      return null
    }
  }

  /** `run` identifies the measurement: one that was cleared meanwhile is of no use. */
  async function measure(run: object): Promise<void> {
    const atMs = clock.now()
    const tables = new Map<string, StoredTable>()
    for (const namespace of namespaces().values()) {
      // Each instance is a file of its own there, of which there may be millions.
      if (namespace.instance && sql.keepsInstancesApart) continue
      for (const { table } of namespace.tables.values()) {
        if (isStopped || running !== run) return
        const found = await measureTable(table)
        if (found) tables.set(usageKeyOf(table), found)
      }
    }
    if (running !== run) return
    last = { atMs, tables }
    running = null
  }

  return {
    read() {
      const isOld = last === null || clock.now() - last.atMs >= storageMeasuredMs
      if (isOld && running === null && !isStopped) {
        running = {}
        void measure(running)
      }
      return last
    },
    isMeasuring: () => running !== null,
    clear() {
      last = null
      running = null
    },
    stop() {
      isStopped = true
    },
  }
}
