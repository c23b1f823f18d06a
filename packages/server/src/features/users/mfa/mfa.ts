/**
 * The second factor: enrolling an authenticator app, asking for it at a sign-in, and taking it away. Owns what a code
 * or a recovery code proves and how often one may be tried; when a sign-in asks for it is for `sign-in`.
 */
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
import { lockCallerAccount } from '../accounts/accounts.ts'
import { requireRecentSignIn, type SessionCaller } from '../accounts/recent-sign-in.ts'
import type { UsersParts } from '../parts.ts'
import type { ClientInfo, MfaRequired, SignedIn } from '../sessions/complete-sign-in.ts'
import { createFactors, type Factor } from './factors.ts'
import { createRecoveryCodes } from './recovery-codes.ts'
import { createTotpSecret, totpUri } from './totp.ts'

/** What shows that somebody has the second factor, or one of the codes given out in its place. */
export type MfaProof = { readonly code: string } | { readonly recoveryCode: string }

/** What takes the factor away: a proof of it, or the password of the account. */
export type RemovalProof = MfaProof | { readonly password: string }

export interface TotpEnrollment {
  readonly factorId: string
  /** Base32, for typing it in. */
  readonly secret: string
  /** `otpauth:` URI, for showing it as a QR code. */
  readonly qrCodeUri: string
  readonly recoveryCodes: readonly string[]
}

export interface MfaState {
  readonly factor: Factor | null
  readonly recoveryCodesLeft: number
}

export interface Mfa {
  /**
   * A new factor, not in force until `confirm`, in place of one that never was. Throws 403 for anonymous users and
   * where a recent sign-in is needed (`recent-sign-in`), 409 when one is in force.
   */
  enroll(caller: SessionCaller): Promise<TotpEnrollment>
  /** Puts the factor in force. Throws 404 for another's, 409 when it is already, 400 for a wrong code. */
  confirm(userId: string, factorId: string, code: string): Promise<void>
  /**
   * Ends a sign-in that was asked for the second factor. Throws 401 for a bad ticket or proof, 429 after too many
   * proofs for one user, 403 for a disabled account.
   */
  verify(ticket: string, proof: MfaProof, client: ClientInfo): Promise<SignedIn | MfaRequired>
  /**
   * Takes the factor and the recovery codes away. A token alone will not do, or a stolen one could: throws 400 for a
   * wrong proof, 429 after too many, 404 when no factor is in force.
   */
  remove(caller: SessionCaller, proof: RemovalProof): Promise<void>
  state(userId: string): Promise<MfaState>
}

/** What the feature's parts lack: `counters` bound the tries of one user on all nodes together. */
export interface MfaParts extends UsersParts {
  readonly counters: Counters
}

const defaultIssuer = 'Plinth'

export function createMfa(parts: MfaParts): Mfa {
  const { database, accounts, passwords, attempts, oneTimeTokens, completeSignIn, counters, clock, secret, config } =
    parts
  const { dialect } = database
  const factors = createFactors({ secret, dialect, clock })
  const recoveryCodes = createRecoveryCodes({ secret, dialect })

  /** Tickets are new with every password, so the user's tries are counted too, before anything is looked at. */
  async function countTry(userId: string): Promise<void> {
    const { count, resetMs } = await counters.hit(`mfa:${userId}`, mfaAttemptsWindowMs)
    if (count > mfaAttemptsPerUserMax) throw rateLimited(resetMs / 1000)
  }

  /** The hash that a password was found to fit. Throws 400 for a wrong one, 404 where no factor is in force, 429. */
  async function checkPassword(caller: SessionCaller, password: string): Promise<string> {
    const account = await accounts.find(database, caller.auth.id)
    if (!isInForce(await factors.find(database, caller.auth.id))) throw notFound('Factor')
    await attempts.countPassword(caller)
    const known = account?.passwordHash ?? null
    if (!(await passwords.verify(password, known)) || known === null) throw wrongProof('password')
    return known
  }

  /** Uses the proof up. */
  async function proves(tx: Transaction, userId: string, proof: MfaProof): Promise<boolean> {
    const factor = await factors.find(tx, userId)
    if (!isInForce(factor)) return false
    return 'code' in proof
      ? factors.useCode(tx, factor, proof.code)
      : recoveryCodes.redeem(tx, userId, proof.recoveryCode)
  }

  return {
    enroll: (caller) =>
      database.write(async (tx) => {
        const userId = caller.auth.id
        const account = await lockCallerAccount(accounts, tx, userId)
        if (account.isAnonymous) throw accessDenied()
        if (isInForce(await factors.find(tx, userId)))
          throw conflict('A second factor is in force already; remove it first')
        await requireRecentSignIn(tx, { dialect, clock }, caller)
        const secret = createTotpSecret()
        const { id } = await factors.replace(tx, userId, secret)
        const { mail, passkeys } = config()
        const issuer = mail?.appName ?? passkeys?.rpName ?? defaultIssuer
        return {
          factorId: id,
          secret,
          qrCodeUri: totpUri(secret, { issuer, account: account.email ?? account.displayName ?? userId }),
          recoveryCodes: await recoveryCodes.replace(tx, userId),
        }
      }),

    confirm: (userId, factorId, code) =>
      database.write(async (tx) => {
        await lockCallerAccount(accounts, tx, userId)
        const factor = await factors.find(tx, userId)
        if (factor?.id !== factorId) throw notFound('Factor')
        if (isInForce(factor)) throw conflict('The factor is in force already')
        if (!(await factors.useCode(tx, factor, code))) throw wrongProof('code')
      }),

    async verify(ticket, proof, client) {
      const subject = await oneTimeTokens.find(database, 'mfa-ticket', ticket)
      const userId = subject?.userId ?? null
      if (userId === null) throw invalidToken()
      await countTry(userId)
      // A wrong proof is given back instead of thrown, so that its try stays counted.
      const outcome = await database.write(async (tx) => {
        const account = await accounts.find(tx, userId, 'lock')
        if (!account || !(await oneTimeTokens.countAttempt(tx, 'mfa-ticket', ticket, mfaTicketAttemptsMax)))
          return 'no ticket'
        if (!(await proves(tx, userId, proof))) return 'no proof'
        await oneTimeTokens.redeem(tx, 'mfa-ticket', ticket)
        return completeSignIn(tx, account, client, { isStrong: true })
      })
      if (outcome === 'no ticket') throw invalidToken()
      if (outcome === 'no proof') throw invalidCredentials('Invalid code')
      return outcome
    },

    async remove(caller, proof) {
      const userId = caller.auth.id
      await countTry(userId)
      const known = 'password' in proof ? await checkPassword(caller, proof.password) : null
      await database.write(async (tx) => {
        const account = await lockCallerAccount(accounts, tx, userId)
        const factor = await factors.find(tx, userId)
        if (!isInForce(factor)) throw notFound('Factor')
        if ('password' in proof) {
          // Changed while it was being checked.
          if (account.passwordHash !== known) throw wrongProof('password')
        } else if (!(await proves(tx, userId, proof))) throw wrongProof('code' in proof ? 'code' : 'recoveryCode')
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

const isInForce = (factor: Factor | null): factor is Factor => factor !== null && factor.confirmedAtMs !== null

/** To somebody who is signed in: their token is good, so this is no 401. */
const wrongProof = (field: string) => invalidField(field, 'pattern', 'is wrong, or was used before')
