/** Change of the address of an account to another verified address. */
import { userKey } from '../../../access/caller.ts'
import { accessDenied, accountDisabled, invalidCredentials, invalidField, invalidToken } from '../../../errors.ts'
import { emailChangeLifetimeMs } from '../../../limits/users.ts'
import type { Account } from '../accounts/account.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import { requireRecentSignIn, type SessionCaller } from '../accounts/recent-sign-in.ts'
import type { HookedRequest } from '../hooks/hooked-request.ts'
import type { UsersParts } from '../parts.ts'
import { createAccountTokens } from './account-tokens.ts'
import type { LinkTarget, MailLinkTo } from './links.ts'
import { mapUniqueToConflict } from './normalize.ts'
import type { EmailOwnership } from './ownership.ts'
import { composeMail, lifetimeValues, textOf } from './requests.ts'

/** A requested change of address. */
export interface AddressChange {
  /** Normalized. */
  readonly newEmail: string
  readonly password: string | undefined
  readonly target: LinkTarget
}

export interface EmailChange {
  /**
   * Mails a link to the new address, unless it is taken, and a notice to the old one. Rejects with 400, 401 for a wrong
   * password, 403 without a password if a recent sign-in is required (`recent-sign-in`), 429.
   */
  request(caller: SessionCaller, change: AddressChange, client: ClientInfo): Promise<void>
  /**
   * Changes the address. If `caller` is signed in to the account, ends all sessions except the requesting and the
   * confirming one; otherwise removes every credential set up before (`ownership`). Rejects with 401 for an invalid
   * token or if the requesting session has ended, 403 `Account is disabled`, 409 if the address was taken meanwhile,
   * and as the hook of sign-ups does where an anonymous account gets an address.
   */
  verify(token: string, request: HookedRequest): Promise<Account | null>
}

type Deps = UsersParts & { readonly linkTo: MailLinkTo; readonly ownership: EmailOwnership }

export function createEmailChange(deps: Deps): EmailChange {
  const { database, accounts, hooks, passwords, sessions, oneTimeTokens, mailer, attempts, clock, config } = deps
  const { linkTo, ownership } = deps
  const tokens = createAccountTokens(deps)

  /** Confirms the identity of the caller: a stolen token alone must not be enough to take over the account. */
  async function confirmCaller(caller: SessionCaller, account: Account, password: string | undefined): Promise<void> {
    const { passwordHash } = account
    if (passwordHash === null) return requireRecentSignIn(database, { dialect: database.dialect, clock }, caller)
    if (password === undefined) throw invalidField('password', 'required', 'is required')
    await attempts.countPassword(caller)
    if (!(await passwords.verify(password, passwordHash, userKey(caller.auth.id))))
      throw invalidCredentials('The password is wrong')
  }

  /** Issues a token for the new address; null if the address is taken. */
  async function issueToken({ auth, sessionId }: SessionCaller, from: string | null, email: string) {
    if (await accounts.findByEmail(database, email)) return null
    const userId = auth.id
    const subject = { purpose: 'email-change', userId, email, data: { sessionId, from } } as const
    return database.write(async (tx) => {
      await oneTimeTokens.removeAll(tx, userId, 'email-change')
      return oneTimeTokens.issue(tx, { ...subject, lifetimeMs: emailChangeLifetimeMs })
    })
  }

  return {
    async request(caller, { newEmail, password, target }, client) {
      const account = await tokens.getAccount(caller.auth.id)
      const { email } = account
      // An address upgrades an anonymous account, which is a sign-up.
      if (account.isAnonymous && !config().signup) throw accessDenied()
      if (newEmail === email) throw invalidField('newEmail', 'unique', 'is already the address of the account')
      await confirmCaller(caller, account, password)
      await attempts.countMail(newEmail, client)
      if (email !== null) await attempts.countMail(email, client)
      mailer.sendLater('email-change', async () => {
        const token = await issueToken(caller, email, newEmail)
        if (token === null) return null
        const link = linkTo('emailChange', token, target)
        return composeMail(newEmail, account, { link, newEmail, ...lifetimeValues(emailChangeLifetimeMs) })
      })
      // Sent in either case; otherwise its absence would reveal that the new address is taken.
      if (email !== null) mailer.send({ ...composeMail(email, account, { newEmail }), template: 'email-change-notice' })
    },

    verify: (token, request) =>
      // The caller owns the mailbox and may learn that an account with the address exists.
      mapUniqueToConflict(() =>
        hooks.write(async (tx) => {
          const { caller } = request
          const { account, subject } = await tokens.redeem(
            tx,
            'email-change',
            token,
            ({ email }, { data }) => email === textOf(data, 'from'),
          )
          const sessionId = textOf(subject.data, 'sessionId')
          if (account.disabledAtMs !== null) throw accountDisabled()
          if (!(await tokens.isSessionActive(tx, account.id, sessionId))) throw invalidToken()
          if (subject.email === null) throw invalidToken()
          const isOwnSession = await tokens.hasOwnSession(tx, caller, account)
          const changed = await ownership.claim(tx, account, { newEmail: subject.email, isOwnSession, request })
          if (!isOwnSession) return null
          const kept = [sessionId, caller.kind === 'user' ? caller.sessionId : null]
          await sessions.endAll(tx, account.id, { except: kept })
          // Includes tokens mailed to the old address.
          await oneTimeTokens.removeAll(tx, account.id)
          return changed
        }),
      ),
  }
}
