/**
 * Child process for scans: runs one statement at a time on any file of the data folder, which it opens to read, and
 * replies over a pipe. A thread would be of no use: SQLite cannot be interrupted there. The parent kills the process at
 * the time limit of a statement; its watchdog kills it where it exceeds its memory or the parent is gone.
 */
import { setPriority } from 'node:os'
import { sqlProcessNiceness } from '../../../limits/resources.ts'
import { readFrames, sendFrames } from '../../processes/child-pipe.ts'
import { createWatch } from '../../processes/watch-state.ts'
import { EngineError, type EngineErrorKind } from '../../sql/error.ts'
import type { SqlRow } from '../../sql/sql.ts'
import type { SqlText } from '../../sql/sql-text.ts'
import { openConnection } from '../connection.ts'

export interface ScanRequest {
  readonly path: string
  readonly query: SqlText
}

export type ScanReply =
  | 'ready'
  | { readonly rows: readonly SqlRow[] }
  | { readonly error: { readonly kind: EngineErrorKind | null; readonly message: string } }

/** JSON has no infinity: a sum beyond the range of numbers. */
const isOutOfRange = (value: unknown): boolean => typeof value === 'number' && !Number.isFinite(value)

/** Opens the file for one statement: a handle that is kept would outlive a file that is removed. */
function scan({ path, query }: ScanRequest): ScanReply {
  const connection = openConnection(path, { readonly: true, spills: true })
  try {
    const rows = connection.all(query)
    if (rows.some((row) => Object.values(row).some(isOutOfRange)))
      throw new EngineError('range', 'A value is out of the range of numbers')
    return { rows }
  } finally {
    connection.close()
  }
}

function replyTo(request: ScanRequest): ScanReply {
  try {
    return scan(request)
  } catch (error) {
    const kind = error instanceof EngineError ? error.kind : null
    return { error: { kind, message: error instanceof Error ? error.message : String(error) } }
  }
}

const reply = (message: ScanReply): void => sendFrames(JSON.stringify(message))

setPriority(sqlProcessNiceness)
const watch = createWatch()
reply('ready')
readFrames<ScanRequest>((request) => {
  watch.begin()
  const answer = replyTo(request)
  watch.end()
  reply(answer)
})
process.exit(0)
