/** Storage of passkeys: owner, name and credential. `ceremony` verifies signatures. */
import type { Clock } from '../../../base/clock.ts'
import { isStorableText } from '../../../base/text/text.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Reader, SqlRow, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { msOf, msOrNullOf, usersTable } from '../migrations.ts'
import type { Credential } from './ceremony.ts'

/** A stored credential with its owner and name. */
export interface Passkey extends Credential {
  readonly userId: string
  readonly name: string
  readonly createdAtMs: number
  /** Null until its first sign-in. */
  readonly usedAtMs: number | null
}

export interface PasskeyCredentials {
  find(on: Reader, id: string): Promise<Passkey | null>
  /** Passkeys of a user, oldest first; at most `passkeysPerUserMax`. */
  list(on: Reader, userId: string): Promise<readonly Passkey[]>
  /** Throws `EngineError` `unique` if the credential is registered already. */
  insert(tx: Transaction, owner: Pick<Passkey, 'userId' | 'name'>, credential: Credential): Promise<Passkey>
  /** Records a use. False if the counter did not increase, unless the authenticator does not count. */
  recordUse(tx: Transaction, used: Credential): Promise<boolean>
  /** False if the user has no such passkey. */
  remove(tx: Transaction, userId: string, id: string): Promise<boolean>
}

export function createPasskeyCredentials({
  dialect,
  clock,
}: {
  readonly dialect: Dialect
  readonly clock: Clock
}): PasskeyCredentials {
  const table = usersTable(dialect, 'passkeys')
  return {
    async find(on, id) {
      const [row] = await on.all(sql`SELECT * FROM ${table} WHERE id = ${id}`)
      return row ? passkeyOf(row) : null
    },

    async list(on, userId) {
      const rows = await on.all(sql`SELECT * FROM ${table} WHERE user_id = ${userId} ORDER BY created_at, id`)
      return rows.map(passkeyOf)
    },

    async insert(tx, { userId, name }, credential) {
      const { id, publicKey, counter, transports, isBackedUp } = credential
      const createdAtMs = clock.now()
      await tx.run(
        sql`INSERT INTO ${table} (id, user_id, name, public_key, counter, transports, backed_up, created_at)
          VALUES (${id}, ${userId}, ${name}, ${Buffer.from(publicKey).toString('base64url')}, ${counter},
            ${JSON.stringify(transports)}, ${Number(isBackedUp)}, ${createdAtMs})`,
      )
      return { ...credential, userId, name, createdAtMs, usedAtMs: null }
    },

    async recordUse(tx, { id, counter, isBackedUp }) {
      const counts = counter > 0
      const changed = await tx.run(
        sql`UPDATE ${table} SET counter = ${counter}, backed_up = ${Number(isBackedUp)}, used_at = ${clock.now()}
          WHERE id = ${id} AND ${counts ? sql`counter < ${counter}` : sql`counter = 0`}`,
      )
      return changed === 1
    },

    remove: async (tx, userId, id) =>
      // Not every engine accepts arbitrary text as a parameter.
      isStorableText(id) && (await tx.run(sql`DELETE FROM ${table} WHERE id = ${id} AND user_id = ${userId}`)) === 1,
  }
}

const passkeyOf = (row: SqlRow): Passkey => ({
  id: String(row.id),
  userId: String(row.user_id),
  name: String(row.name),
  publicKey: new Uint8Array(Buffer.from(String(row.public_key), 'base64url')),
  counter: Number(row.counter),
  transports: JSON.parse(String(row.transports)),
  isBackedUp: row.backed_up === 1,
  createdAtMs: msOf(row.created_at),
  usedAtMs: msOrNullOf(row.used_at),
})
