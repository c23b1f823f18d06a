/**
 * Where the links in mails lead: pages that the configuration names. Never to where a request says the server is, since
 * whoever asks for a mail to somebody else would choose the page that gets the token.
 */
import type { MailLink } from '../../config/auth.ts'
import type { UsersParts } from './parts.ts'

/** Pages an app is expected to have when only the address of the server is configured. */
const defaultPaths: Readonly<Record<MailLink, string>> = {
  magicLink: '/auth/magic-link',
  passwordReset: '/auth/reset-password',
  emailVerification: '/auth/verify-email',
  emailChange: '/auth/verify-email-change',
}

/** A page with a token for it. Where no page is known, the bare token, to be pasted. */
export type MailLinkTo = (link: MailLink, token: string) => string

export function createMailLinks({ config, publicUrl }: Pick<UsersParts, 'config' | 'publicUrl'>): MailLinkTo {
  return (link, token) => {
    const base = publicUrl()
    const page = config().mail?.links[link] ?? (base === null ? null : base + defaultPaths[link])
    if (page === null) return token
    const url = new URL(page)
    url.searchParams.set('token', token)
    return url.href
  }
}
