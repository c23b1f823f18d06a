/**
 * Signing in by mail: a link, or a six-digit code. Both prove the mailbox, so both let in whoever is not here yet,
 * where people may sign up at all; what the answer to a proof is, is `sign-in`'s.
 */
import type { Transaction } from '../../../engines/sql/sql.ts'
import { invalidCredentials, invalidToken } from '../../../errors.ts'
import { emailCodeLifetimeMs, magicLinkLifetimeMs } from '../../../limits/users.ts'
import { retryOnUniqueConflict } from '../oauth/identities.ts'
import type { UsersParts } from '../parts.ts'
import type { ClientInfo, MfaRequired, SignedIn } from '../sessions/complete-sign-in.ts'
import type { MailLinkTo } from './links.ts'
import type { TokenSubject } from './one-time-tokens.ts'
import type { EmailOwnership } from './ownership.ts'
import { composeMail, type EmailRequest, lifetimeValues, textOf } from './requests.ts'

type Outcome = SignedIn | MfaRequired

export interface EmailSignIn {
  /** Has a link mailed, if it would let in. Rejects with 429. */
  requestLink(request: EmailRequest): Promise<void>
  /** Rejects with 401 for a token that lets nobody in, and as `completeSignIn` does. */
  redeemLink(token: string, client: ClientInfo): Promise<Outcome>
  /** Has a code mailed, if it would let in. Rejects with 429. */
  requestCode(request: EmailRequest): Promise<void>
  /** Rejects with 401 for a code that lets nobody in, 429 for too many tries, and as `completeSignIn` does. */
  redeemCode(email: string, code: string, client: ClientInfo): Promise<Outcome>
}

type Deps = UsersParts & { readonly linkTo: MailLinkTo; readonly ownership: EmailOwnership }

export function createEmailSignIn(deps: Deps): EmailSignIn {
  const { database, accounts, completeSignIn, oneTimeTokens, mailer, attempts, clock, config, linkTo, ownership } = deps

  /** Whoever holds the mailbox that the subject names; null where nobody is to be let in. */
  async function enter(tx: Transaction, { userId, email, data }: TokenSubject, client: ClientInfo) {
    if (email === null) return null
    const account = await accounts.findByEmail(tx, email, 'lock')
    // What was made for an account is for nobody else, even if the address has gone over to them.
    if (userId !== null && account?.id !== userId) return null
    if (account) return completeSignIn(tx, await ownership.claim(tx, account), client)
    if (!config().signup) return null
    const locale = textOf(data, 'locale')
    const newcomer = await accounts.insert(tx, { email, emailVerifiedAtMs: clock.now(), locale })
    return completeSignIn(tx, newcomer, client)
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
        database.write(async (tx) => {
          const known = await oneTimeTokens.find(tx, 'magic-link', token)
          // Accounts are locked before tokens, everywhere: two who wait for each other would both wait long.
          if (known?.email) await accounts.findByEmail(tx, known.email, 'lock')
          const subject = known && (await oneTimeTokens.redeem(tx, 'magic-link', token))
          return subject && enter(tx, subject, client)
        }),
      )
      if (!outcome) throw invalidToken()
      return outcome
    },

    async requestCode({ email, locale, client }) {
      await attempts.countMail(email, client)
      mailer.sendLater('email-otp', async () => {
        const account = await accounts.findByEmail(database, email)
        // Also where it lets nobody in: a wrong code must be the same work whether or not there is an account.
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
        database.write(async (tx) => {
          await accounts.findByEmail(tx, email, 'lock')
          // Null is committed too: a wrong code counts.
          const subject = await oneTimeTokens.redeemCode(tx, 'email-otp', { email, code, source: client.address })
          return subject && enter(tx, subject, client)
        }),
      )
      if (!outcome) throw invalidCredentials('Invalid code')
      return outcome
    },
  }
}
