/** Password reset by a link mailed to the address of the account. */
import { accountDisabled, invalidToken } from '../../../errors.ts'
import { passwordResetLifetimeMs } from '../../../limits/users.ts'
import type { UsersParts } from '../parts.ts'
import type { MailLinkTo } from './links.ts'
import type { EmailOwnership } from './ownership.ts'
import { composeMail, type EmailRequest, lifetimeValues } from './requests.ts'

export interface PasswordReset {
  /** Mails a link if there is an enabled account. Rejects with 429. */
  request(request: EmailRequest): Promise<void>
  /**
   * Sets the password, ends every session of the user and invalidates all pending tokens of the account. `caller` is a
   * `callerKey`. Rejects with 400 for an invalid password, 401 for an invalid token, 403 `Account is disabled`.
   */
  reset(token: string, newPassword: string, caller: string): Promise<void>
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

    async reset(token, newPassword, caller) {
      passwords.check(newPassword, 'newPassword')
      // No password is hashed for an invalid token.
      if (!(await oneTimeTokens.find(database, purpose, token))) throw invalidToken()
      const passwordHash = await passwords.hash(newPassword, caller)
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
