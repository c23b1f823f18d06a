/**
 * Requests that send mails, which need no credentials and may name any address. A response must not reveal whether an
 * account exists, and requests must not flood a mailbox: everything that depends on the address happens after the
 * response, in the queue of the mailer.
 */
import type { JsonObject } from '../../../base/text/json.ts'
import type { Account } from '../accounts/accounts.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import type { LinkTarget } from './links.ts'
import type { TemplatedMail } from './mailer.ts'
import type { MailValues } from './templates.ts'

/** A request, as far as its sender is known. */
export interface EmailRequest {
  /** Normalised. */
  readonly email: string
  /** Language of whoever asks; an account's own counts before. */
  readonly locale: string | null
  readonly client: ClientInfo
  readonly target: LinkTarget
}

/**
 * What every mail about an account says. A name comes up only where the mailbox is known to be the account's: otherwise
 * anybody could have words of theirs sent to anybody.
 */
export function composeMail(
  to: string,
  account: Account | null,
  values: MailValues,
  locale: string | null = null,
): Omit<TemplatedMail, 'template'> {
  const isKnown = account !== null && account.email === to && account.emailVerifiedAtMs !== null
  const displayName = isKnown ? (account.displayName ?? to) : to
  return { to, locale: account?.locale ?? locale, values: { email: to, displayName, ...values } }
}

const minuteMs = 60_000

/** A lifetime as templates say it. */
export const lifetimeValues = (lifetimeMs: number): Pick<MailValues, 'minutes' | 'hours'> => ({
  minutes: String(Math.round(lifetimeMs / minuteMs)),
  hours: String(Math.round(lifetimeMs / minuteMs / 60)),
})

/** A text that the issuer of a token put into it. */
export function textOf(data: JsonObject, name: string): string | null {
  const value = data[name]
  return typeof value === 'string' ? value : null
}
