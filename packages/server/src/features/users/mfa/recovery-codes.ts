/** Recovery codes: single-use replacements for a lost authenticator. Owns their format and their table. */
import { createHmac, randomBytes } from 'node:crypto'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Reader, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { recoveryCodeChars, recoveryCodesPerUser } from '../../../limits/users.ts'
import { usersTable } from '../migrations.ts'

export interface RecoveryCodes {
  /** Replaces the codes of a user and returns the new ones. Only keyed hashes are stored. */
  replace(tx: Transaction, userId: string): Promise<readonly string[]>
  /** Redeems a code in any spelling. False if it is not a code of the user. Of concurrent redemptions, one succeeds. */
  redeem(tx: Transaction, userId: string, code: string): Promise<boolean>
  count(on: Reader, userId: string): Promise<number>
  removeAll(tx: Transaction, userId: string): Promise<void>
}

/** Crockford base 32: without letters that resemble digits, and without `u`. */
const letters = '0123456789abcdefghjkmnpqrstvwxyz'
const groupChars = 4

/** Hashes are keyed with the server secret: unkeyed hashes of 60 bits could be brute-forced from a leaked table. */
export function createRecoveryCodes({
  secret,
  dialect,
}: {
  readonly secret: string
  readonly dialect: Dialect
}): RecoveryCodes {
  const table = usersTable(dialect, 'recovery_codes')

  const hashOf = (userId: string, code: string): string =>
    createHmac('sha256', secret)
      .update(JSON.stringify(['recovery code', userId, code]))
      .digest('base64url')

  const removeAll = async (tx: Transaction, userId: string): Promise<void> => {
    await tx.run(sql`DELETE FROM ${table} WHERE user_id = ${userId}`)
  }

  return {
    removeAll,

    async replace(tx, userId) {
      await removeAll(tx, userId)
      const codes = new Set<string>()
      while (codes.size < recoveryCodesPerUser) codes.add(createCode())
      for (const code of codes)
        await tx.run(sql`INSERT INTO ${table} (user_id, hash) VALUES (${userId}, ${hashOf(userId, code)})`)
      return [...codes].map(formatCode)
    },

    async redeem(tx, userId, code) {
      const hash = hashOf(userId, readCode(code))
      return (await tx.run(sql`DELETE FROM ${table} WHERE user_id = ${userId} AND hash = ${hash}`)) === 1
    },

    async count(on, userId) {
      const [row] = await on.all(sql`SELECT count(*) AS n FROM ${table} WHERE user_id = ${userId}`)
      return Number(row?.n)
    },
  }
}

/** 256 is a multiple of the length of the alphabet, so the letters are uniformly distributed. */
const createCode = (): string =>
  Array.from(randomBytes(recoveryCodeChars), (byte) => letters[byte % letters.length]).join('')

/** In groups of four for readability: `7k2m-x0q9-ab3d`. */
const formatCode = (code: string): string => code.replace(new RegExp(`.{${groupChars}}(?=.)`, 'g'), '$&-')

/** Normalizes a typed code: ignores case, hyphens and spaces, and maps letters that resemble digits. */
const readCode = (typed: string): string =>
  typed.toLowerCase().replaceAll(/[\s-]/g, '').replaceAll('o', '0').replaceAll(/[il]/g, '1')
