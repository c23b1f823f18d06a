/** Scans on behalf of a caller: statements that may read a whole table, outside of the event loop. */
import { callerKey } from '../../../access/caller.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import type { SqlRow } from '../../../engines/sql/sql.ts'
import type { SqlText } from '../../../engines/sql/sql-text.ts'
import { queryTimeout } from '../../../errors.ts'
import type { TableCall } from '../resolve-table.ts'

/** The rows of a statement. Throws 400 `query-timeout` past the time limit, and `EngineError`. */
export const scanRows = <Row = SqlRow>(
  { database, caller }: Pick<TableCall, 'database' | 'caller'>,
  statement: SqlText,
  timeoutMs: number,
): Promise<Row[]> =>
  database.scan<Row>(statement, { caller: callerKey(caller), timeoutMs }).catch((error: unknown) => {
    throw error instanceof EngineError && error.kind === 'timeout' ? queryTimeout(error.message) : error
  })
