/**
 * One-time tokens: mailed links and codes, tickets between two steps of a sign-in, OAuth states and passkey challenges.
 * Owns their table. Of concurrent redemptions of a token, exactly one succeeds.
 */
import { createHash, createHmac, randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import { countedAddress } from '../../../base/network/address.ts'
import type { JsonObject } from '../../../base/text/json.ts'
import type { Database, Reader, Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { oneTimeCodeAttemptsMax, oneTimeTokensSweptMax } from '../../../limits/users.ts'
import { usersTable } from '../migrations.ts'

/** A token is valid only for the purpose that it was issued for. */
export type Purpose =
  | 'magic-link'
  | 'email-otp'
  | 'password-reset'
  | 'email-verification'
  | 'email-change'
  | 'mfa-ticket'
  | 'oauth-state'
  | 'passkey-challenge'
  | 'setup'

/** The data that a token was issued with, returned at its redemption. */
export interface TokenSubject {
  readonly userId: string | null
  /** Normalized. */
  readonly email: string | null
  readonly data: JsonObject
}

/** Data of a new token. */
export interface TokenInput {
  readonly purpose: Purpose
  readonly userId?: string | null
  readonly email?: string | null
  readonly data?: JsonObject
  readonly lifetimeMs: number
}

/** Data of a new code. Codes are short and therefore valid only together with their address. */
export interface CodeInput extends TokenInput {
  readonly email: string
  /** Client address of the request for the code. */
  readonly source: string
}

/** An attempt to redeem a code. */
export interface CodeAttempt {
  readonly email: string
  readonly code: string
  /** Client address of the attempt. */
  readonly source: string
}

export interface OneTimeTokens {
  /** Issues a token: 32 random bytes as base64url. Only its hash is stored. */
  issue(tx: Transaction, input: TokenInput): Promise<string>
  /**
   * Redeems a token. Null if it is unknown, used, expired or for another purpose. Of concurrent redemptions, one
   * succeeds.
   */
  redeem(tx: Transaction, purpose: Purpose, token: string): Promise<TokenSubject | null>
  /** Like `redeem`, but leaves the token valid. */
  find(on: Reader, purpose: Purpose, token: string): Promise<TokenSubject | null>
  /**
   * Counts an attempt that uses the token. False if there is no token; after more than `max` attempts it is deleted.
   */
  countAttempt(tx: Transaction, purpose: Purpose, token: string, max: number): Promise<boolean>
  /** Issues a six-digit code for an address, replacing the previous one. */
  issueCode(tx: Transaction, input: CodeInput): Promise<string>
  /**
   * * Redeems a code. Null if it is wrong, used or expired. Five wrong attempts from the source that requested the code
   * invalidate it. Five from other sources invalidate it for those sources only, so that they cannot use up the
   * attempts of its owner. Commit the transaction in either case, or wrong attempts do not count.
   */
  redeemCode(tx: Transaction, purpose: Purpose, attempt: CodeAttempt): Promise<TokenSubject | null>
  /** Invalidates the tokens of a user, of one purpose or of all. */
  removeAll(tx: Transaction, userId: string, purpose?: Purpose): Promise<void>
  /** Deletes a bounded number of expired tokens. Returns how many. */
  sweep(nowMs: number): Promise<number>
}

interface Row {
  readonly user_id: string | null
  readonly email: string | null
  readonly data: string
  readonly attempts: number
}

/** Content of the `data` column of a code. A million codes are quickly hashed, so `seal` is keyed with the secret. */
interface CodeData {
  readonly seal: string
  readonly data: JsonObject
  /** Hash of the client address that requested it. */
  readonly source: string
  /** Wrong attempts from other addresses. Those from `source` are in the column `attempts`. */
  readonly strayAttempts: number
}

const tokenBytes = 32
const codeDigits = 6

/** `secret` is the server secret. */
export function createOneTimeTokens({
  database,
  clock,
  secret,
}: {
  readonly database: Database
  readonly clock: Clock
  readonly secret: string
}): OneTimeTokens {
  const { dialect } = database
  const table = usersTable(dialect, 'one_time_tokens')

  async function findRow(on: Reader, hash: string, purpose: Purpose, lock: SqlText = sql``): Promise<Row | null> {
    const [row] = await on.all<Row>(
      sql`SELECT user_id, email, data, attempts FROM ${table}
        WHERE hash = ${hash} AND purpose = ${purpose} AND expires_at > ${clock.now()} ${lock}`,
    )
    return row ?? null
  }
  const take = (tx: Transaction, hash: string, purpose: Purpose): Promise<Row | null> =>
    findRow(tx, hash, purpose, dialect.forUpdate)

  /** Whether this call deleted the row; of concurrent calls, one does. */
  const remove = async (tx: Transaction, hash: string): Promise<boolean> =>
    (await tx.run(sql`DELETE FROM ${table} WHERE hash = ${hash}`)) === 1

  async function insert(tx: Transaction, hash: string, input: TokenInput, data: object): Promise<void> {
    const { purpose, userId = null, email = null, lifetimeMs } = input
    const nowMs = clock.now()
    await tx.run(
      sql`INSERT INTO ${table} (hash, purpose, user_id, email, data, attempts, created_at, expires_at)
        VALUES (${hash}, ${purpose}, ${userId}, ${email}, ${JSON.stringify(data)}, 0, ${nowMs}, ${nowMs + lifetimeMs})
        ON CONFLICT (hash) DO UPDATE SET user_id = excluded.user_id, data = excluded.data, attempts = 0,
          created_at = excluded.created_at, expires_at = excluded.expires_at`,
    )
  }

  /** Stores the number of attempts, or deletes the row at `max`. */
  async function saveAttempts(tx: Transaction, hash: string, attempts: number, max: number): Promise<void> {
    if (attempts >= max) await remove(tx, hash)
    else await tx.run(sql`UPDATE ${table} SET attempts = ${attempts} WHERE hash = ${hash}`)
  }

  async function saveData(tx: Transaction, hash: string, data: CodeData): Promise<void> {
    await tx.run(sql`UPDATE ${table} SET data = ${JSON.stringify(data)} WHERE hash = ${hash}`)
  }

  const sourceOf = (address: string): string => sealCode('email-otp', 'source', countedAddress(address))

  const sealCode = (purpose: Purpose, email: string, code: string): string =>
    createHmac('sha256', secret)
      .update(JSON.stringify(['one-time code', purpose, email, code]))
      .digest('base64url')

  return {
    async issue(tx, input) {
      const token = randomBytes(tokenBytes).toString('base64url')
      await insert(tx, hashOf(token), input, input.data ?? {})
      return token
    },

    async redeem(tx, purpose, token) {
      const hash = hashOf(token)
      const row = await take(tx, hash, purpose)
      return row && (await remove(tx, hash)) ? subjectOf(row, JSON.parse(row.data)) : null
    },

    async find(on, purpose, token) {
      const row = await findRow(on, hashOf(token), purpose)
      return row && subjectOf(row, JSON.parse(row.data))
    },

    async countAttempt(tx, purpose, token, max) {
      const hash = hashOf(token)
      const row = await take(tx, hash, purpose)
      if (!row) return false
      // The last attempt is allowed; the next one deletes the row.
      await saveAttempts(tx, hash, row.attempts + 1, max + 1)
      return row.attempts < max
    },

    async issueCode(tx, input) {
      const { purpose, email, source, data = {} } = input
      const code = String(randomInt(10 ** codeDigits)).padStart(codeDigits, '0')
      const seal = sealCode(purpose, email, code)
      const stored: CodeData = { seal, data, source: sourceOf(source), strayAttempts: 0 }
      await insert(tx, codeHashOf(purpose, email), input, stored)
      return code
    },

    async redeemCode(tx, purpose, { email, code, source }) {
      const hash = codeHashOf(purpose, email)
      const row = await take(tx, hash, purpose)
      if (!row) return null
      const known = JSON.parse(row.data) as CodeData
      const { seal, data, strayAttempts } = known
      const isStray = known.source !== sourceOf(source)
      if (isStray && strayAttempts >= oneTimeCodeAttemptsMax) return null
      if (timingSafeEqual(Buffer.from(seal), Buffer.from(sealCode(purpose, email, code))))
        return (await remove(tx, hash)) ? subjectOf(row, data) : null
      if (isStray) await saveData(tx, hash, { ...known, strayAttempts: strayAttempts + 1 })
      else await saveAttempts(tx, hash, row.attempts + 1, oneTimeCodeAttemptsMax)
      return null
    },

    async removeAll(tx, userId, purpose) {
      const only = purpose === undefined ? sql`` : sql`AND purpose = ${purpose}`
      await tx.run(sql`DELETE FROM ${table} WHERE user_id = ${userId} ${only}`)
    },

    sweep: (nowMs) =>
      database.write((tx) =>
        tx.run(sql`DELETE FROM ${table} WHERE hash IN (
          SELECT hash FROM ${table} WHERE expires_at <= ${nowMs} ORDER BY expires_at LIMIT ${oneTimeTokensSweptMax})`),
      ),
  }
}

/** Tokens have too much entropy to be guessed from an unkeyed hash. */
const hashOf = (token: string): string => createHash('sha256').update(token).digest('base64url')

/** Key of the row of a code: an address has one code per purpose at a time. */
const codeHashOf = (purpose: Purpose, email: string): string => hashOf(JSON.stringify(['code for', purpose, email]))

const subjectOf = (row: Row, data: JsonObject): TokenSubject => ({ userId: row.user_id, email: row.email, data })
