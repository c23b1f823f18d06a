/**
 * Recovery codes: what gets a person in who has lost the authenticator. Each works once. Owns their form and their
 * table; when they are given out and asked for is for `mfa`.
 */
import { createHmac, randomBytes } from 'node:crypto'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Reader, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { recoveryCodeChars, recoveryCodesPerUser } from '../../../limits/users.ts'
import { usersTable } from '../tables.ts'

export interface RecoveryCodes {
  /** New codes instead of the user's old ones. They are seen this once; only keyed hashes are stored. */
  replace(tx: Transaction, userId: string): Promise<readonly string[]>
  /** Uses a code up, however it was typed. False when it is none of the user's; of many at a time, one is true. */
  redeem(tx: Transaction, userId: string, code: string): Promise<boolean>
  count(on: Reader, userId: string): Promise<number>
  removeAll(tx: Transaction, userId: string): Promise<void>
}

/** Crockford's base 32: the letters that are read as digits, and the one that makes words rude, are left out. */
const letters = '0123456789abcdefghjkmnpqrstvwxyz'
const groupChars = 4

/** `secret` is the server's: without it, hashes of 60 bits would give the codes away with the table. */
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

/** 256 is a multiple of the alphabet's length, so every letter is as likely. */
const createCode = (): string =>
  Array.from(randomBytes(recoveryCodeChars), (byte) => letters[byte % letters.length]).join('')

/** In groups, as people read and type them: `7k2m-x0q9-ab3d`. */
const formatCode = (code: string): string => code.replace(new RegExp(`.{${groupChars}}(?=.)`, 'g'), '$&-')

/** The code that was meant: case, hyphens and spaces do not count, and letters that look like digits are these. */
const readCode = (typed: string): string =>
  typed.toLowerCase().replaceAll(/[\s-]/g, '').replaceAll('o', '0').replaceAll(/[il]/g, '1')
