/** Statements that begin and end transactions. */
import { postgresMigrationMs } from '../../../limits/postgres.ts'
import { isConsequence } from '../errors.ts'
import type { PreparedConnection } from '../prepared-connection.ts'
import type { Prepared } from '../wire/wire.ts'

export const begin: Prepared = { name: 'begin', text: 'BEGIN', values: [] }
const rollback: Prepared = { name: 'rollback', text: 'ROLLBACK', values: [] }
const commit: Prepared = { name: 'commit', text: 'COMMIT', values: [] }

/** Follows `begin` in a change of tables, which waits for locks without a bound. */
export const beginMigration: Prepared = {
  name: 'migrate',
  text: `SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', $1, true),
    set_config('idle_in_transaction_session_timeout', $1, true)`,
  values: [String(postgresMigrationMs)],
}

/** Undoes the transaction. */
export async function rollBack(line: PreparedConnection): Promise<void> {
  try {
    await line.send(rollback, 'tick')
  } catch (error) {
    // A statement sent with it failed, so that it was skipped.
    if (!isConsequence(error)) throw error
    await line.send(rollback, 'tick')
  }
}

/** Ends the transaction; whether it has committed. Rejects where that is unknown. */
export async function isCommitted(line: PreparedConnection): Promise<boolean> {
  try {
    // The server replies ROLLBACK to the COMMIT of a transaction that had failed before.
    return (await line.send(commit, 'tick')).command === 'COMMIT'
  } catch (error) {
    // A statement sent with it failed: the transaction is still open.
    if (!isConsequence(error)) throw error
    await rollBack(line)
    return false
  }
}
