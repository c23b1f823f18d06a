/** Verification of the address of an account, and its change to another verified address. */
import type { Caller } from '../../../access/caller.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import {
  accessDenied,
  accountDisabled,
  invalidCredentials,
  invalidField,
  invalidToken,
  notFound,
} from '../../../errors.ts'
import { emailChangeLifetimeMs, emailVerificationLifetimeMs } from '../../../limits/users.ts'
import type { Account } from '../accounts/accounts.ts'
import { requireRecentSignIn, type SessionCaller } from '../accounts/recent-sign-in.ts'
import { usersTable } from '../migrations.ts'
import type { UsersParts } from '../parts.ts'
import type { ClientInfo } from '../sessions/complete-sign-in.ts'
import type { LinkTarget, MailLinkTo } from './links.ts'
import { mapUniqueToConflict } from './normalize.ts'
import type { Purpose, TokenSubject } from './one-time-tokens.ts'
import type { EmailOwnership } from './ownership.ts'
import { composeMail, lifetimeValues, textOf } from './requests.ts'

/** A requested change of address. */
export interface AddressChange {
  /** Normalized. */
  readonly newEmail: string
  readonly password: string | undefined
  readonly target: LinkTarget
}

export interface EmailAddress {
  /** Mails a verification link to the address of the user, unless it is verified. Rejects with 429. */
  requestVerification(userId: string, client: ClientInfo, target: LinkTarget): Promise<void>
  /**
   * Mails a verification link to a new account if the configuration asks for it. Never rejects: if the mail cannot be
   * sent, the user can request another.
   */
  welcome(account: Account, client: ClientInfo, target: LinkTarget): Promise<void>
  /**
   * Verifies the address. Unless `caller` is signed in to the account, removes every credential set up before
   * (`ownership`). Rejects with 401 for an invalid token.
   */
  verify(token: string, caller: Caller): Promise<void>
  /**
   * Mails a link to the new address, unless it is taken, and a notice to the old one. Rejects with 400, 401 for a wrong
   * password, 403 without a password if a recent sign-in is required (`recent-sign-in`), 429.
   */
  requestChange(caller: SessionCaller, change: AddressChange, client: ClientInfo): Promise<void>
  /**
   * Changes the address. If `caller` is signed in to the account, ends all sessions except the requesting and the
   * confirming one; otherwise removes every credential set up before (`ownership`). Rejects with 401 for an invalid
   * token or if the requesting session has ended, 403 `Account is disabled`, 409 if the address was taken meanwhile.
   */
  verifyChange(token: string, caller: Caller): Promise<void>
}

type Deps = UsersParts & { readonly linkTo: MailLinkTo; readonly ownership: EmailOwnership }

export function createEmailAddress(deps: Deps): EmailAddress {
  const { database, accounts, passwords, sessions, oneTimeTokens, mailer, attempts, clock, config } = deps
  const { linkTo, ownership } = deps

  /** Redeems a token and locks its account. Rejects with 401 if either is unavailable or `fits` is false. */
  async function redeem(tx: Transaction, purpose: Purpose, token: string, fits: Fits): Promise<Redeemed> {
    const known = await oneTimeTokens.find(tx, purpose, token)
    const account = known?.userId ? await accounts.find(tx, known.userId, 'lock') : null
    if (!known || !account || !fits(account, known)) throw invalidToken()
    const subject = await oneTimeTokens.redeem(tx, purpose, token)
    if (!subject) throw invalidToken()
    return { account, subject }
  }

  /** Whether the requesting session is active: a revoked session must not complete its requests. */
  async function isSessionActive(tx: Transaction, userId: string, sessionId: string | null): Promise<boolean> {
    // Tokens signed with the server secret have no session.
    if (sessionId === null) return true
    const [found] = await tx.all(
      sql`SELECT 1 AS yes FROM ${usersTable(database.dialect, 'sessions')}
        WHERE id = ${sessionId} AND user_id = ${userId} AND expires_at > ${clock.now()}`,
    )
    return found !== undefined
  }

  /** Whether the caller is signed in to the account. Reads the session again, since it may have ended meanwhile. */
  async function hasOwnSession(tx: Transaction, caller: Caller, account: Account): Promise<boolean> {
    if (caller.kind !== 'user' || caller.auth.id !== account.id) return false
    return isSessionActive(tx, account.id, caller.sessionId)
  }

  async function getCallerAccount(userId: string): Promise<Account> {
    const account = await accounts.find(database, userId)
    if (!account) throw notFound('User')
    return account
  }

  /** Confirms the identity of the caller: a stolen token alone must not be enough to take over the account. */
  async function confirmCaller(caller: SessionCaller, account: Account, password: string | undefined): Promise<void> {
    const { passwordHash } = account
    if (passwordHash === null) return requireRecentSignIn(database, { dialect: database.dialect, clock }, caller)
    if (password === undefined) throw invalidField('password', 'required', 'is required')
    await attempts.countPassword(caller)
    if (!(await passwords.verify(password, passwordHash))) throw invalidCredentials('The password is wrong')
  }

  async function mailVerification(account: Account, client: ClientInfo, target: LinkTarget): Promise<void> {
    const { id: userId, email, emailVerifiedAtMs } = account
    if (email === null || emailVerifiedAtMs !== null) return
    await attempts.countMail(email, client)
    const input = { purpose: 'email-verification', userId, email, lifetimeMs: emailVerificationLifetimeMs } as const
    mailer.sendLater('email-verification', async () => {
      const token = await database.write((tx) => oneTimeTokens.issue(tx, input))
      const link = linkTo('emailVerification', token, target)
      return composeMail(email, account, { link, ...lifetimeValues(emailVerificationLifetimeMs) })
    })
  }

  return {
    requestVerification: async (userId, client, target) =>
      mailVerification(await getCallerAccount(userId), client, target),

    async welcome(account, client, target) {
      if (config().mail?.verifiesSignups) await mailVerification(account, client, target).catch(() => undefined)
    },

    verify: (token, caller) =>
      database.write(async (tx) => {
        const { account } = await redeem(tx, 'email-verification', token, ({ email }, known) => email === known.email)
        await ownership.claim(tx, account, { isOwnSession: await hasOwnSession(tx, caller, account) })
      }),

    async requestChange(caller, { newEmail, password, target }, client) {
      const { auth, sessionId } = caller
      const userId = auth.id
      const account = await getCallerAccount(userId)
      const { email } = account
      // An address upgrades an anonymous account, which is a sign-up.
      if (account.isAnonymous && !config().signup) throw accessDenied()
      if (newEmail === email) throw invalidField('newEmail', 'unique', 'is already the address of the account')
      await confirmCaller(caller, account, password)
      await attempts.countMail(newEmail, client)
      if (email !== null) await attempts.countMail(email, client)
      mailer.sendLater('email-change', async () => {
        if (await accounts.findByEmail(database, newEmail)) return null
        const token = await database.write(async (tx) => {
          await oneTimeTokens.removeAll(tx, userId, 'email-change')
          const data = { sessionId, from: email }
          const input = {
            purpose: 'email-change',
            userId,
            email: newEmail,
            data,
            lifetimeMs: emailChangeLifetimeMs,
          } as const
          return oneTimeTokens.issue(tx, input)
        })
        const link = linkTo('emailChange', token, target)
        return composeMail(newEmail, account, { link, newEmail, ...lifetimeValues(emailChangeLifetimeMs) })
      })
      // Sent in either case; otherwise its absence would reveal that the new address is taken.
      if (email !== null) mailer.send({ ...composeMail(email, account, { newEmail }), template: 'email-change-notice' })
    },

    verifyChange: (token, caller) =>
      // The caller owns the mailbox and may learn that an account with the address exists.
      mapUniqueToConflict(() =>
        database.write(async (tx) => {
          const isCurrent: Fits = ({ email }, { data }) => email === textOf(data, 'from')
          const { account, subject } = await redeem(tx, 'email-change', token, isCurrent)
          const sessionId = textOf(subject.data, 'sessionId')
          if (account.disabledAtMs !== null) throw accountDisabled()
          if (!(await isSessionActive(tx, account.id, sessionId))) throw invalidToken()
          if (subject.email === null) throw invalidToken()
          const isOwnSession = await hasOwnSession(tx, caller, account)
          await ownership.claim(tx, account, { newEmail: subject.email, isOwnSession })
          if (!isOwnSession) return
          const kept = [sessionId, caller.kind === 'user' ? caller.sessionId : null]
          await sessions.endAll(tx, account.id, { except: kept })
          // Includes tokens mailed to the old address.
          await oneTimeTokens.removeAll(tx, account.id)
        }),
      ),
  }
}

interface Redeemed {
  readonly account: Account
  readonly subject: TokenSubject
}

/** Whether a token still matches the current state of the account. */
type Fits = (account: Account, known: TokenSubject) => boolean
