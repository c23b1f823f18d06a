/**
 * Second factors: enrollment, verification at sign-in, and removal. Owns what a code or a recovery code redeemProof
 * and how many attempts are allowed; `complete-sign-in` decides when a sign-in needs one.
 */
import { userKey } from '../../../access/caller.ts'
import type { Counters } from '../../../engines/cluster/cluster.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import {
  accessDenied,
  conflict,
  invalidCredentials,
  invalidField,
  invalidToken,
  notFound,
  rateLimited,
} from '../../../errors.ts'
import { mfaAttemptsPerUserMax, mfaAttemptsWindowMs, mfaTicketAttemptsMax } from '../../../limits/users.ts'
import type { Account } from '../accounts/account.ts'
import { lockCallerAccount } from '../accounts/accounts.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import { requireRecentSignIn, type SessionCaller } from '../accounts/recent-sign-in.ts'
import type { UsersParts } from '../parts.ts'
import type { CompleteSignIn, MfaRequired, TicketData } from '../sessions/complete-sign-in.ts'
import type { SignedIn } from '../sessions/signed-in.ts'
import { createFactors, type Factor, type Factors } from './factors.ts'
import { createRecoveryCodes, type RecoveryCodes } from './recovery-codes.ts'

/** Proof of the second factor: a code of the app, or a recovery code. */
export type MfaProof = { readonly code: string } | { readonly recoveryCode: string }

/** What authorizes the removal of the factor: a proof of it, or the password. */
export type RemovalProof = MfaProof | { readonly password: string }

export interface TotpEnrollment {
  readonly factorId: string
  /** Base32, for manual entry. */
  readonly secret: string
  /** `otpauth:` URI to display as a QR code. */
  readonly qrCodeUri: string
  readonly recoveryCodes: readonly string[]
}

export interface MfaState {
  readonly factor: Factor | null
  readonly recoveryCodesLeft: number
}

export interface Mfa<Result = SignedIn> {
  /**
   * * Enrolls a factor, inactive until `confirm`, and replaces an unconfirmed one. Rejects with 403 for anonymous users
   * and if a recent sign-in is required (`recent-sign-in`), 409 if a factor is active.
   */
  enroll(caller: SessionCaller): Promise<TotpEnrollment>
  /** Activates the factor. Rejects with 404 for an unknown id, 409 if it is active, 400 for a wrong code. */
  confirm(userId: string, factorId: string, code: string): Promise<void>
  /**
   * Completes a sign-in with a second factor. Rejects with 401 for an invalid ticket or proof, 429 after too many
   * attempts for one user, 403 for a disabled account.
   */
  verify(ticket: string, proof: MfaProof, client: ClientInfo): Promise<Result | MfaRequired>
  /**
   * Enrolls a factor for a sign-in that requires one; its first code completes the sign-in. Rejects with 401 for an
   * invalid ticket, 409 if a factor is active.
   */
  enrollAtSignIn(ticket: string): Promise<TotpEnrollment>
  /**
   * Removes the factor and the recovery codes. Requires a proof, so that a stolen access token is not enough. Rejects
   * with 400 for a wrong proof, 429 after too many attempts, 404 if no factor is active.
   */
  remove(caller: SessionCaller, proof: RemovalProof): Promise<void>
  state(userId: string): Promise<MfaState>
}

/** The shared services, and `counters`, which bound the attempts per user across all nodes. */
export interface MfaParts<Result = SignedIn> extends Omit<UsersParts, 'completeSignIn'> {
  readonly completeSignIn: CompleteSignIn<Result>
  /** What the tickets are for; see `SignInTarget`. */
  readonly target: string
  readonly counters: Counters
}

const defaultIssuer = 'Plinth'

/** Replaces an unconfirmed factor. `account` was read with a lock. Throws 409 if a factor is active. */
async function enrollFactor(
  tx: Transaction,
  account: Account,
  { factors, recoveryCodes, config }: { factors: Factors; recoveryCodes: RecoveryCodes; config: UsersParts['config'] },
): Promise<TotpEnrollment> {
  const { id: userId, email, displayName } = account
  if (isActive(await factors.find(tx, userId))) throw conflict('A second factor is active already; remove it first')
  const { createTotpSecret, totpUri } = await import('./totp.ts')
  const secret = createTotpSecret()
  const { id } = await factors.replace(tx, userId, secret)
  const { mail, passkeys } = config()
  const issuer = mail?.appName ?? passkeys?.rpName ?? defaultIssuer
  return {
    factorId: id,
    secret,
    qrCodeUri: totpUri(secret, { issuer, account: email ?? displayName ?? userId }),
    recoveryCodes: await recoveryCodes.replace(tx, userId),
  }
}

export function createMfa<Result>(parts: MfaParts<Result>): Mfa<Result> {
  const { database, accounts, hooks, passwords, attempts, oneTimeTokens, completeSignIn, counters } = parts
  const { clock, secret, config } = parts
  const { dialect } = database
  const factors = createFactors({ secret, dialect, clock })
  const recoveryCodes = createRecoveryCodes({ secret, dialect })
  const enrollment = { factors, recoveryCodes, config }

  /** Each password sign-in issues a new ticket, so attempts are also counted per user, before anything is checked. */
  async function countAttempt(userId: string): Promise<void> {
    const { count, resetMs } = await counters.hit(`mfa:${userId}`, mfaAttemptsWindowMs)
    if (count > mfaAttemptsPerUserMax) throw rateLimited(resetMs / 1000)
  }

  /** Verifies the password and returns its hash. Rejects with 400 if wrong, 404 if no factor is active, 429. */
  async function checkPassword(caller: SessionCaller, password: string): Promise<string> {
    const account = await accounts.find(database, caller.auth.id)
    if (!isActive(await factors.find(database, caller.auth.id))) throw notFound('Factor')
    await attempts.countPassword(caller)
    const known = account?.passwordHash ?? null
    if (!(await passwords.verify(password, known, userKey(caller.auth.id))) || known === null)
      throw wrongProof('password')
    return known
  }

  /** Redeems the proof; false if it is invalid. A code that `enrolls` also confirms a factor. */
  async function redeemProof(tx: Transaction, userId: string, proof: MfaProof, enrolls = false): Promise<boolean> {
    const factor = await factors.find(tx, userId)
    if (factor === null || (!isActive(factor) && !(enrolls && 'code' in proof))) return false
    return 'code' in proof
      ? factors.useCode(tx, factor, proof.code)
      : recoveryCodes.redeem(tx, userId, proof.recoveryCode)
  }

  /** The user of a ticket for this target. Rejects with 401. */
  async function readTicket(ticket: string): Promise<{ userId: string; enrolls: boolean }> {
    const subject = await oneTimeTokens.find(database, 'mfa-ticket', ticket)
    const { target = 'api', enrolls = false } = (subject?.data ?? {}) as TicketData
    if (subject === null || subject.userId === null || target !== parts.target) throw invalidToken()
    return { userId: subject.userId, enrolls }
  }

  return {
    enroll: (caller) =>
      database.write(async (tx) => {
        const account = await lockCallerAccount(accounts, tx, caller.auth.id)
        if (account.isAnonymous) throw accessDenied()
        await requireRecentSignIn(tx, { dialect, clock }, caller)
        return enrollFactor(tx, account, enrollment)
      }),

    async enrollAtSignIn(ticket) {
      const { userId, enrolls } = await readTicket(ticket)
      if (!enrolls) throw invalidToken()
      return database.write(async (tx) => enrollFactor(tx, await lockCallerAccount(accounts, tx, userId), enrollment))
    },

    confirm: (userId, factorId, code) =>
      database.write(async (tx) => {
        await lockCallerAccount(accounts, tx, userId)
        const factor = await factors.find(tx, userId)
        if (factor?.id !== factorId) throw notFound('Factor')
        if (isActive(factor)) throw conflict('The factor is active already')
        if (!(await factors.useCode(tx, factor, code))) throw wrongProof('code')
      }),

    async verify(ticket, proof, client) {
      const { userId, enrolls } = await readTicket(ticket)
      await countAttempt(userId)
      // A wrong proof is returned instead of thrown, so that the transaction commits and the attempt counts.
      const outcome = await hooks.write(async (tx) => {
        const account = await accounts.find(tx, userId, 'lock')
        if (!account || !(await oneTimeTokens.countAttempt(tx, 'mfa-ticket', ticket, mfaTicketAttemptsMax)))
          return 'no ticket'
        if (!(await redeemProof(tx, userId, proof, enrolls))) return 'no proof'
        await oneTimeTokens.redeem(tx, 'mfa-ticket', ticket)
        return completeSignIn(tx, account, client, { isStrong: true })
      })
      if (outcome === 'no ticket') throw invalidToken()
      if (outcome === 'no proof') throw invalidCredentials('Invalid code')
      return outcome
    },

    async remove(caller, proof) {
      const userId = caller.auth.id
      await countAttempt(userId)
      const known = 'password' in proof ? await checkPassword(caller, proof.password) : null
      await database.write(async (tx) => {
        const account = await lockCallerAccount(accounts, tx, userId)
        const factor = await factors.find(tx, userId)
        if (!isActive(factor)) throw notFound('Factor')
        if ('password' in proof) {
          // The password may have changed while it was being verified.
          if (account.passwordHash !== known) throw wrongProof('password')
        } else if (!(await redeemProof(tx, userId, proof))) throw wrongProof('code' in proof ? 'code' : 'recoveryCode')
        await factors.removeAll(tx, userId)
        await recoveryCodes.removeAll(tx, userId)
        await oneTimeTokens.removeAll(tx, userId, 'mfa-ticket')
      })
    },

    async state(userId) {
      const factor = await factors.find(database, userId)
      return { factor, recoveryCodesLeft: factor ? await recoveryCodes.count(database, userId) : 0 }
    },
  }
}

const isActive = (factor: Factor | null): factor is Factor => factor !== null && factor.confirmedAtMs !== null

/** A 400 and not a 401: the access token of the caller is valid. */
const wrongProof = (field: string) => invalidField(field, 'pattern', 'is wrong or was used before')
