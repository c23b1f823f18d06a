/** The names of accounts, for lists of what belongs to them. */
import type { Database } from '../../../engines/sql/sql.ts'
import { ident, sql } from '../../../engines/sql/sql-text.ts'
import { usersTable } from '../migrations.ts'

export interface AccountName {
  readonly id: string
  readonly email: string | null
  readonly displayName: string | null
}

/** The email and display name of each of these users that exists, in no order. */
export const findAccountNames = (database: Database, ids: readonly string[]): Promise<AccountName[]> =>
  database.all(sql`SELECT id, email, display_name AS ${ident('displayName')} FROM ${usersTable(database.dialect, 'users')}
    WHERE ${database.dialect.inList(sql`id`, ids, 'text')}`)
