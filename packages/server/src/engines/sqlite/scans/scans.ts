/** Scans of SQLite files in child processes, shared by all databases of the process. */
import { availableParallelism } from 'node:os'
import { sqlProcessIdleMs } from '../../../limits/resources.ts'
import { scanProcessesMax } from '../../../limits/sqlite.ts'
import { createProcessPool } from '../../processes/process-pool.ts'
import { createScanQueue, type ScanOptions } from '../../sql/scan-queue.ts'
import type { SqlRow } from '../../sql/sql.ts'
import type { SqlText } from '../../sql/sql-text.ts'
import { ScanProcess } from './scan-process.ts'

export interface SqliteScans {
  /** See `Database.scan`. */
  read(path: string, query: SqlText, options: ScanOptions): Promise<SqlRow[]>
  /** Ends the processes; a scan in progress fails. */
  close(): Promise<void>
}

/** Processes start on demand. */
export function createSqliteScans(): SqliteScans {
  const running = Math.max(1, Math.min(scanProcessesMax, availableParallelism() - 1))
  const queue = createScanQueue(running)
  const pool = createProcessPool({ start: () => new ScanProcess(), idleMs: sqlProcessIdleMs })
  return {
    read: (path, query, { caller, timeoutMs }) =>
      queue.enter(caller, () => pool.use((process) => process.run({ path, query }, timeoutMs))),
    close: () => pool.close(),
  }
}
