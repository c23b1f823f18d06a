/**
 * Sign-in by mail, with a link or a six-digit code. Both prove ownership of the mailbox, so they also create accounts
 * if sign-up is open.
 */
import type { Transaction } from '../../../engines/sql/sql.ts'
import { invalidCredentials, invalidToken } from '../../../errors.ts'
import { emailCodeLifetimeMs, magicLinkLifetimeMs } from '../../../limits/users.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import { retryOnUniqueConflict } from '../oauth/identities.ts'
import type { UsersParts } from '../parts.ts'
import type { MfaRequired } from '../sessions/complete-sign-in.ts'
import type { SignedIn } from '../sessions/signed-in.ts'
import type { MailLinkTo } from './links.ts'
import type { TokenSubject } from './one-time-tokens.ts'
import type { EmailOwnership } from './ownership.ts'
import { composeMail, type EmailRequest, lifetimeValues, textOf } from './requests.ts'

type Outcome = SignedIn | MfaRequired

export interface EmailSignIn {
  /** Mails a link if it could be used to sign in. Rejects with 429. */
  requestLink(request: EmailRequest): Promise<void>
  /** Rejects with 401 for an invalid token, and as `completeSignIn` does. */
  redeemLink(token: string, client: ClientInfo): Promise<Outcome>
  /** Mails a code if it could be used to sign in. Rejects with 429. */
  requestCode(request: EmailRequest): Promise<void>
  /** Rejects with 401 for an invalid code, 429 for too many attempts, and as `completeSignIn` does. */
  redeemCode(email: string, code: string, client: ClientInfo): Promise<Outcome>
}

type Deps = UsersParts & { readonly linkTo: MailLinkTo; readonly ownership: EmailOwnership }

export function createEmailSignIn(deps: Deps): EmailSignIn {
  const { database, accounts, hooks, completeSignIn, oneTimeTokens, mailer, attempts, clock, config } = deps
  const { linkTo, ownership } = deps

  /** Signs in the owner of the mailbox, creating an account if needed; null if the sign-in is not allowed. */
  async function signInOwner(tx: Transaction, { userId, email, data }: TokenSubject, client: ClientInfo) {
    if (email === null) return null
    const account = await accounts.findByEmail(tx, email, 'lock')
    // A token issued for one account is invalid for another, even if the address has moved to it.
    if (userId !== null && account?.id !== userId) return null
    if (account) return completeSignIn(tx, await ownership.claim(tx, account), client)
    if (!config().signup) return null
    const locale = textOf(data, 'locale')
    const origin = { provider: 'email', request: client.request }
    const created = await accounts.insert(tx, { email, emailVerifiedAtMs: clock.now(), locale }, origin)
    return completeSignIn(tx, created, client)
  }

  return {
    async requestLink({ email, locale, client, target }) {
      await attempts.countMail(email, client)
      mailer.sendLater('magic-link', async () => {
        const account = await accounts.findByEmail(database, email)
        if (!account && !config().signup) return null
        const token = await database.write((tx) =>
          oneTimeTokens.issue(tx, {
            purpose: 'magic-link',
            userId: account?.id ?? null,
            email,
            data: { locale },
            lifetimeMs: magicLinkLifetimeMs,
          }),
        )
        const link = linkTo('magicLink', token, target)
        return composeMail(email, account, { link, ...lifetimeValues(magicLinkLifetimeMs) }, locale)
      })
    },

    async redeemLink(token, client) {
      const outcome = await retryOnUniqueConflict(() =>
        hooks.write(async (tx) => {
          const known = await oneTimeTokens.find(tx, 'magic-link', token)
          // Lock order, here and everywhere: accounts before tokens, to avoid deadlocks.
          if (known?.email) await accounts.findByEmail(tx, known.email, 'lock')
          const subject = known && (await oneTimeTokens.redeem(tx, 'magic-link', token))
          return subject && signInOwner(tx, subject, client)
        }),
      )
      if (!outcome) throw invalidToken()
      return outcome
    },

    async requestCode({ email, locale, client }) {
      await attempts.countMail(email, client)
      mailer.sendLater('email-otp', async () => {
        const account = await accounts.findByEmail(database, email)
        // Issued even if it cannot be used, so that verifying a wrong code takes the same work with and without an
        // account.
        const code = await database.write((tx) =>
          oneTimeTokens.issueCode(tx, {
            purpose: 'email-otp',
            userId: account?.id ?? null,
            email,
            data: { locale },
            source: client.address,
            lifetimeMs: emailCodeLifetimeMs,
          }),
        )
        if (!account && !config().signup) return null
        return composeMail(email, account, { code, ...lifetimeValues(emailCodeLifetimeMs) }, locale)
      })
    },

    async redeemCode(email, code, client) {
      await attempts.countSignIn(email, client)
      const outcome = await retryOnUniqueConflict(() =>
        hooks.write(async (tx) => {
          await accounts.findByEmail(tx, email, 'lock')
          // Null is committed as well, so that the wrong code counts.
          const subject = await oneTimeTokens.redeemCode(tx, 'email-otp', { email, code, source: client.address })
          return subject && signInOwner(tx, subject, client)
        }),
      )
      if (!outcome) throw invalidCredentials('Invalid code')
      return outcome
    },
  }
}
