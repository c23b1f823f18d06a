/** Scans on PostgreSQL: statements with a time limit of their own, a few at once, on connections of their own. */
import { scanConnectionsMax } from '../../limits/sqlite.ts'
import { EngineError } from '../sql/error.ts'
import { createScanQueue, type ScanOptions, scanTimedOut } from '../sql/scan-queue.ts'
import type { SqlText } from '../sql/sql-text.ts'
import type { Connections } from './connections.ts'
import { canceledState, outOfRangeState, sqlStateOf } from './errors.ts'
import type { Statements } from './statements.ts'
import type { Prepared } from './wire/wire.ts'

const begin: Prepared = { name: 'scan', text: 'BEGIN READ ONLY', values: [] }
const commit: Prepared = { name: 'commit', text: 'COMMIT', values: [] }

/** Compiling the expression of a time zone takes longer than evaluating it for a million rows. */
const limited = (timeoutMs: number): Prepared => ({
  name: 'scanlimit',
  text: `SELECT set_config('statement_timeout', $1, true), set_config('jit', 'off', true)`,
  values: [String(timeoutMs)],
})

export interface PostgresScans {
  /** See `Database.scan`. */
  read(query: SqlText, instanceId: string | null, options: ScanOptions): Promise<readonly unknown[]>
}

function failureOf(error: unknown, timeoutMs: number): unknown {
  const state = sqlStateOf(error)
  if (state === canceledState) return scanTimedOut(timeoutMs, error)
  if (state === outOfRangeState) return new EngineError('range', 'A value is out of the range of numbers', [], error)
  return error
}

export function createPostgresScans(connections: Connections, statements: Statements): PostgresScans {
  const queue = createScanQueue(scanConnectionsMax)
  return {
    read(query, instanceId, { caller, timeoutMs }) {
      const { text, values, table } = statements.prepare(query, instanceId)
      // Unnamed, so that the server does not keep it: the texts are long and rarely the same.
      const statement = { name: '', text, values }
      const work = (): Promise<readonly unknown[]> =>
        connections.withOwn(table, async (line) => {
          const sent = [begin, limited(timeoutMs), statement, commit].map((one) => line.send(one))
          // The connection is free when the last of them is answered.
          const [begun, set, answer] = await Promise.allSettled(sent)
          for (const one of [begun, set, answer]) if (one?.status === 'rejected') throw failureOf(one.reason, timeoutMs)
          return answer?.status === 'fulfilled' ? answer.value.rows : []
        })
      return queue.enter(caller, work)
    },
  }
}
