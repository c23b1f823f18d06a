/**
 * Where the links in mails lead: pages that the configuration names or allows. Never to where a header says the server
 * is, and never to a page that is not listed: a request for a mail to someone else would choose who gets the token.
 */
import type { AuthConfig, MailLink } from '../../../config/sections/auth/auth.ts'
import { parseRedirectUrl } from '../oauth/redirects.ts'
import type { UsersParts } from '../parts.ts'

/** Pages an app is expected to have when only the address of the server is configured. */
const defaultPaths: Readonly<Record<MailLink, string>> = {
  magicLink: '/auth/magic-link',
  passwordReset: '/auth/reset-password',
  emailVerification: '/auth/verify-email',
  emailChange: '/auth/verify-email-change',
}

/** Tells a page to which several kinds of links lead which kind this one is: the name of the endpoint for its token. */
const types: Readonly<Record<MailLink, string>> = {
  magicLink: 'magic-link',
  passwordReset: 'reset-password',
  emailVerification: 'verify-email',
  emailChange: 'verify-email-change',
}

/** What a request for a mail wants of its link. */
export interface LinkTarget {
  /** Allowed already; null: the configured page. */
  readonly redirectUrl: string | null
  /** Handed back to the page. */
  readonly state: string | null
}

/** The configured page, and nothing to hand back. */
export const plainTarget: LinkTarget = { redirectUrl: null, state: null }

/** Throws 400 for a `redirectUrl` that is malformed or not allowed. */
export function parseLinkTarget(
  { redirectUrls: listed, allowsLocalRedirects: allowsLocal }: AuthConfig,
  given: { readonly redirectUrl?: string | undefined; readonly state?: string | undefined },
): LinkTarget {
  const { redirectUrl, state = null } = given
  if (redirectUrl === undefined) return { redirectUrl: null, state }
  return { redirectUrl: parseRedirectUrl(redirectUrl, { listed, allowsLocal }, 'redirectUrl'), state }
}

/** A page with a token for it. Where no page is known, the bare token, to be pasted. */
export type MailLinkTo = (link: MailLink, token: string, target?: LinkTarget) => string

export function createMailLinks({ config, publicUrl }: Pick<UsersParts, 'config' | 'publicUrl'>): MailLinkTo {
  return (link, token, { redirectUrl, state } = plainTarget) => {
    const base = publicUrl()
    const configured = config().mail?.links[link] ?? (base === null ? null : base + defaultPaths[link])
    const page = redirectUrl ?? configured
    if (page === null) return token
    const url = new URL(page)
    url.searchParams.set('token', token)
    if (redirectUrl !== null) url.searchParams.set('type', types[link])
    if (state !== null) url.searchParams.set('state', state)
    return url.href
  }
}
