/**
 * Change logs of rows that other features store themselves, such as files: in the feature's own database, appended to
 * in the transaction of the change. They are read, trimmed and dispatched like the logs of tables.
 */
import { randomBytes } from 'node:crypto'
import { platformTable, preparePlatformTables } from '../../../engines/sql/platform-tables.ts'
import type { Database, Transaction } from '../../../engines/sql/sql.ts'
import type { Row } from '../../../query/matches.ts'
import { addLogRow, changeLog, createAppendChange, createChangeLog, dropEarlierIndexes } from './changes.ts'
import { createTrimState } from './trim.ts'

/** The change of one row; `before` is null for an insert, `after` for a delete. */
export interface PlatformChange {
  /** What the log calls its table, such as the name of a bucket. */
  readonly table: string
  readonly id: string
  readonly before: Row | null
  readonly after: Row | null
  readonly requestId: string
}

/** Appends a change in the transaction that makes it. */
export type AppendPlatformChange = (tx: Transaction, change: PlatformChange) => Promise<void>

/** Creates the log of a feature's namespace. */
export const preparePlatformLog = (database: Database, namespace: string): Promise<void> =>
  preparePlatformTables(database, namespace, 'changes', [
    (dialect) => [
      ...createChangeLog({ namespace, perInstance: false }, dialect),
      ...createTrimState(namespace, dialect.target),
    ],
    (dialect) => {
      const log = changeLog({ namespace, perInstance: false })
      return [...(dialect.logRefersToRows ? addLogRow(log, dialect) : []), ...dropEarlierIndexes(log, dialect)]
    },
  ])

/**
 * The rows have no versions of their own: a change gets a random one, which identifies it among the changes of its row
 * in every history of the log. 52 bits are an exact number.
 */
const newVersion = (): number => Number(randomBytes(8).readBigUInt64BE() >> 12n)

/** `wake` is called after each commit with changes. */
export function createPlatformLog(deps: {
  namespace: string
  database: Database
  wake: () => void
  nowMs: () => number
}): AppendPlatformChange {
  const { namespace, database, wake, nowMs } = deps
  return async (tx, { table, id, before, after, requestId }) => {
    const append = createAppendChange(platformTable(namespace, table), database.dialect)
    const afterText = after && JSON.stringify(after)
    tx.append(append({ id, before, after, afterText, version: newVersion() }, requestId, nowMs()))
    tx.afterCommit(wake)
  }
}
