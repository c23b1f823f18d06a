/**
 * Storage of second factors: at most one per user, with its sealed secret, its confirmation, and the last time step of
 * which a code was used.
 */
import type { Clock } from '../../../base/clock.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import { createSealer } from '../../../base/crypto/seal.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Reader, SqlRow, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { msOf, msOrNullOf, usersTable } from '../migrations.ts'

export interface Factor {
  readonly id: string
  readonly userId: string
  readonly createdAtMs: number
  /** Null until a first code proves that the app has the secret; until then the factor is inactive. */
  readonly confirmedAtMs: number | null
}

export interface Factors {
  find(on: Reader, userId: string): Promise<Factor | null>
  /** Replaces the factor of the user with a new, unconfirmed one. */
  replace(tx: Transaction, userId: string, secret: string): Promise<Factor>
  /**
   * Redeems a code, and confirms the factor if needed. False if the code is wrong, or its step or a later one was used
   * before. Of concurrent redemptions, one succeeds.
   */
  useCode(tx: Transaction, factor: Factor, code: string): Promise<boolean>
  removeAll(tx: Transaction, userId: string): Promise<void>
}

/** `secret` is the server secret; the secrets of factors are encrypted with a key derived from it. */
export function createFactors({
  secret,
  dialect,
  clock,
}: {
  readonly secret: string
  readonly dialect: Dialect
  readonly clock: Clock
}): Factors {
  const table = usersTable(dialect, 'factors')
  const sealer = createSealer(secret, 'totp secret')
  const uuid = createUuid7(clock)

  const removeAll = async (tx: Transaction, userId: string): Promise<void> => {
    await tx.run(sql`DELETE FROM ${table} WHERE user_id = ${userId}`)
  }

  /** Null if the secret was sealed under another server secret; no code can match then. */
  function findSecret(sealed: string, id: string): string | null {
    try {
      return sealer.unseal(sealed, id)
    } catch {
      return null
    }
  }

  return {
    removeAll,

    async find(on, userId) {
      const [row] = await on.all(
        sql`SELECT id, user_id, created_at, confirmed_at FROM ${table} WHERE user_id = ${userId}`,
      )
      return row ? factorOf(row) : null
    },

    async replace(tx, userId, secret) {
      await removeAll(tx, userId)
      const factor = { id: uuid(), userId, createdAtMs: clock.now(), confirmedAtMs: null }
      await tx.run(
        sql`INSERT INTO ${table} (id, user_id, secret, created_at)
          VALUES (${factor.id}, ${userId}, ${sealer.seal(secret, factor.id)}, ${factor.createdAtMs})`,
      )
      return factor
    },

    async useCode(tx, { id }, code) {
      const [row] = await tx.all<{ secret: string }>(sql`SELECT secret FROM ${table} WHERE id = ${id}`)
      if (!row) return false
      const nowMs = clock.now()
      const secret = findSecret(row.secret, id)
      const { findTotpStep } = await import('./totp.ts')
      const step = secret === null ? null : findTotpStep(secret, code, nowMs)
      if (step === null) return false
      const changed = await tx.run(
        sql`UPDATE ${table} SET last_step = ${step}, confirmed_at = coalesce(confirmed_at, ${nowMs})
          WHERE id = ${id} AND (last_step IS NULL OR last_step < ${step})`,
      )
      return changed === 1
    },
  }
}

const factorOf = (row: SqlRow): Factor => ({
  id: String(row.id),
  userId: String(row.user_id),
  createdAtMs: msOf(row.created_at),
  confirmedAtMs: msOrNullOf(row.confirmed_at),
})
