/** Verification of the address of an account. */
import type { Caller } from '../../../access/caller.ts'
import { emailVerificationLifetimeMs } from '../../../limits/users.ts'
import type { Account } from '../accounts/account.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import type { UsersParts } from '../parts.ts'
import { createAccountTokens } from './account-tokens.ts'
import type { LinkTarget, MailLinkTo } from './links.ts'
import type { EmailOwnership } from './ownership.ts'
import { composeMail, lifetimeValues } from './requests.ts'

export interface EmailVerification {
  /** Mails a verification link to the address of the user, unless it is verified. Rejects with 429. */
  request(userId: string, client: ClientInfo, target: LinkTarget): Promise<void>
  /**
   * Mails a verification link to a new account if the configuration asks for it. Never rejects: if the mail cannot be
   * sent, the user can request another.
   */
  welcome(account: Account, client: ClientInfo, target: LinkTarget): Promise<void>
  /**
   * Verifies the address. Unless `caller` is signed in to the account, removes every credential set up before
   * (`ownership`). Resolves with the account of a caller who is. Rejects with 401 for an invalid token.
   */
  verify(token: string, caller: Caller): Promise<Account | null>
}

type Deps = UsersParts & { readonly linkTo: MailLinkTo; readonly ownership: EmailOwnership }

export function createEmailVerification(deps: Deps): EmailVerification {
  const { database, oneTimeTokens, mailer, attempts, config, linkTo, ownership } = deps
  const tokens = createAccountTokens(deps)

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
    request: async (userId, client, target) => mailVerification(await tokens.getAccount(userId), client, target),

    async welcome(account, client, target) {
      if (config().mail?.verifiesSignups) await mailVerification(account, client, target).catch(() => undefined)
    },

    verify: (token, caller) =>
      database.write(async (tx) => {
        const { account } = await tokens.redeem(
          tx,
          'email-verification',
          token,
          ({ email }, known) => email === known.email,
        )
        const isOwnSession = await tokens.hasOwnSession(tx, caller, account)
        const verified = await ownership.claim(tx, account, { isOwnSession })
        return isOwnSession ? verified : null
      }),
  }
}
