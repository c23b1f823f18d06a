/** A new password for whoever holds the mailbox of an account. */
import { accountDisabled, invalidToken } from '../../../errors.ts'
import { passwordResetLifetimeMs } from '../../../limits/users.ts'
import type { UsersParts } from '../parts.ts'
import type { MailLinkTo } from './links.ts'
import type { EmailOwnership } from './ownership.ts'
import { composeMail, type EmailRequest, lifetimeValues } from './requests.ts'

export interface PasswordReset {
  /** Has a link mailed where there is an account that may be signed in to. Rejects with 429. */
  request(request: EmailRequest): Promise<void>
  /**
   * Sets the password and ends every session of the user, and everything else that was issued for the account. Rejects
   * with 400 for a password that is none, 401 for a token that is none, 403 `Account is disabled`.
   */
  reset(token: string, newPassword: string): Promise<void>
}

type Deps = UsersParts & { readonly linkTo: MailLinkTo; readonly ownership: EmailOwnership }

const purpose = 'password-reset'

export function createPasswordReset(deps: Deps): PasswordReset {
  const { database, accounts, passwords, sessions, oneTimeTokens, mailer, attempts, linkTo, ownership } = deps
  return {
    async request({ email, locale, client, target }) {
      await attempts.countMail(email, client)
      mailer.sendLater('password-reset', async () => {
        const account = await accounts.findByEmail(database, email)
        if (!account || account.disabledAtMs !== null) return null
        const input = { purpose, userId: account.id, email, lifetimeMs: passwordResetLifetimeMs } as const
        const token = await database.write((tx) => oneTimeTokens.issue(tx, input))
        const link = linkTo('passwordReset', token, target)
        return composeMail(email, account, { link, ...lifetimeValues(passwordResetLifetimeMs) }, locale)
      })
    },

    async reset(token, newPassword) {
      passwords.check(newPassword, 'newPassword')
      // Nobody has a password hashed for a token they made up.
      if (!(await oneTimeTokens.find(database, purpose, token))) throw invalidToken()
      const passwordHash = await passwords.hash(newPassword)
      const account = await database.write(async (tx) => {
        const known = await oneTimeTokens.find(tx, purpose, token)
        const owner = known?.userId ? await accounts.find(tx, known.userId, 'lock') : null
        if (!owner || owner.email !== known?.email || !(await oneTimeTokens.redeem(tx, purpose, token)))
          throw invalidToken()
        if (owner.disabledAtMs !== null) throw accountDisabled()
        await oneTimeTokens.removeAll(tx, owner.id)
        await sessions.endAll(tx, owner.id)
        return ownership.claim(tx, owner, {}, { passwordHash })
      })
      if (account.email !== null)
        mailer.send({ ...composeMail(account.email, account, {}), template: 'password-changed' })
    },
  }
}
