/**
 * Secrets that work once: links and codes in mails, tickets between two steps of a sign-in, states and challenges. Owns
 * their table and that each has one winner under any concurrency; what they prove is for whoever issued them.
 */
import { createHash, createHmac, randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import { countedAddress } from '../../../base/network/address.ts'
import type { JsonObject } from '../../../base/text/json.ts'
import type { Database, Reader, Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { oneTimeCodeAttemptsMax, oneTimeTokensSweptMax } from '../../../limits/users.ts'
import { usersTable } from '../tables.ts'

/** What a token is for; one issued for a purpose is nothing in the place of another's. */
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

/** What the issuer wants to know again when the token comes back. */
export interface TokenSubject {
  readonly userId: string | null
  /** Normalised. */
  readonly email: string | null
  readonly data: JsonObject
}

/** What a token is issued about. */
export interface TokenInput {
  readonly purpose: Purpose
  readonly userId?: string | null
  readonly email?: string | null
  readonly data?: JsonObject
  readonly lifetimeMs: number
}

/** What a code is issued about: codes are short, so they are good only together with the address they were sent to. */
export interface CodeInput extends TokenInput {
  readonly email: string
  /** Client address that asked for the code. */
  readonly source: string
}

/** A try at a code. */
export interface CodeAttempt {
  readonly email: string
  readonly code: string
  /** Client address that it comes from. */
  readonly source: string
}

export interface OneTimeTokens {
  /** A new token: 32 random bytes as base64url, of which only the hash is stored. */
  issue(tx: Transaction, input: TokenInput): Promise<string>
  /**
   * Uses the token up. Null when it is unknown, of another purpose, expired or used; of any number at the same time one
   * gets it.
   */
  redeem(tx: Transaction, purpose: Purpose, token: string): Promise<TokenSubject | null>
  /** Like `redeem`, without using it up. */
  find(on: Reader, purpose: Purpose, token: string): Promise<TokenSubject | null>
  /** Counts a try that needs the token; false, with the token gone, when that is more than `max` or there is none. */
  countAttempt(tx: Transaction, purpose: Purpose, token: string, max: number): Promise<boolean>
  /** A new six-digit code for an address, instead of the one before. */
  issueCode(tx: Transaction, input: CodeInput): Promise<string>
  /**
   * Uses the code up. Null when it is wrong, expired or used. Five wrong ones from the source that asked for it end it;
   * five from elsewhere end it for every other source alone, so that a stranger cannot use up its owner's tries. The
   * transaction must be committed either way, or a wrong one would not count.
   */
  redeemCode(tx: Transaction, purpose: Purpose, attempt: CodeAttempt): Promise<TokenSubject | null>
  /** Removes what was issued for a user, of one purpose or all: what others may still hold is then worth nothing. */
  removeAll(tx: Transaction, userId: string, purpose?: Purpose): Promise<void>
  /** Removes what has expired, a bounded number at a time. Gives how many went. */
  sweep(nowMs: number): Promise<number>
}

interface Row {
  readonly user_id: string | null
  readonly email: string | null
  readonly data: string
  readonly attempts: number
}

/** What the `data` column of a code holds: a million codes are quickly hashed, so theirs is keyed with the secret. */
interface CodeData {
  readonly seal: string
  readonly data: JsonObject
  /** Hash of the address that asked for it. */
  readonly source: string
  /** Wrong tries from other addresses; those from `source` are the row's attempts. */
  readonly strayAttempts: number
}

const tokenBytes = 32
const codeDigits = 6

/** `secret` is the server's. */
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

  /** Whether it was there to be removed: of several, the engine lets one. */
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

  /** Keeps how many tries there were, or removes what has had `max` of them. */
  async function keepAttempts(tx: Transaction, hash: string, attempts: number, max: number): Promise<void> {
    if (attempts >= max) await remove(tx, hash)
    else await tx.run(sql`UPDATE ${table} SET attempts = ${attempts} WHERE hash = ${hash}`)
  }

  async function keepData(tx: Transaction, hash: string, data: CodeData): Promise<void> {
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
      // The last try is still one: the row goes when somebody asks for more.
      await keepAttempts(tx, hash, row.attempts + 1, max + 1)
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
      if (isStray) await keepData(tx, hash, { ...known, strayAttempts: strayAttempts + 1 })
      else await keepAttempts(tx, hash, row.attempts + 1, oneTimeCodeAttemptsMax)
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

/** A token is too long to be guessed, so its plain hash gives nothing away. */
const hashOf = (token: string): string => createHash('sha256').update(token).digest('base64url')

/** An address has one code of a purpose at a time, so its row is found, and replaced, by the two. */
const codeHashOf = (purpose: Purpose, email: string): string => hashOf(JSON.stringify(['code for', purpose, email]))

const subjectOf = (row: Row, data: JsonObject): TokenSubject => ({ userId: row.user_id, email: row.email, data })
