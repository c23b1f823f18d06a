/**
 * Mail requests, which need no credentials and may name any address. A response must not reveal whether an account
 * exists, and requests must not flood a mailbox: everything that depends on the address happens after the response, in
 * the queue of the mailer.
 */
import type { JsonObject } from '../../../base/text/json.ts'
import type { Account } from '../accounts/account.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import type { LinkTarget } from './links.ts'
import type { TemplatedMail } from './mailer.ts'
import type { MailValues } from './templates.ts'

/** A parsed mail request. */
export interface EmailRequest {
  /** Normalized. */
  readonly email: string
  /** Locale of the request; the locale of an account takes precedence. */
  readonly locale: string | null
  readonly client: ClientInfo
  readonly target: LinkTarget
}

/**
 * A mail about an account. Includes the display name only if the account has verified the address; otherwise anyone
 * could send text of their choice to any mailbox.
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

/** A lifetime as template values. */
export const lifetimeValues = (lifetimeMs: number): Pick<MailValues, 'minutes' | 'hours'> => ({
  minutes: String(Math.round(lifetimeMs / minuteMs)),
  hours: String(Math.round(lifetimeMs / minuteMs / 60)),
})

/** A string member of the data of a token; null if missing. */
export function textOf(data: JsonObject, name: string): string | null {
  const value = data[name]
  return typeof value === 'string' ? value : null
}
