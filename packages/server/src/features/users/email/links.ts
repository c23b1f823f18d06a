/**
 * Targets of the links in mails: pages that the configuration names or allows, never the host of a request header and
 * never an unlisted page. Otherwise the sender of a request would choose who receives the token.
 */
import type { AuthConfig, MailLink } from '../../../config/sections/auth/auth.ts'
import { parseRedirectUrl } from '../oauth/redirects.ts'
import type { UsersParts } from '../parts.ts'

/** Default paths, used if only the public URL of the server is configured. */
const defaultPaths: Readonly<Record<MailLink, string>> = {
  magicLink: '/auth/magic-link',
  passwordReset: '/auth/reset-password',
  emailVerification: '/auth/verify-email',
  emailChange: '/auth/verify-email-change',
}

/** Value of `type` in links to a `redirectUrl`: the endpoint that takes the token. */
const types: Readonly<Record<MailLink, string>> = {
  magicLink: 'magic-link',
  passwordReset: 'reset-password',
  emailVerification: 'verify-email',
  emailChange: 'verify-email-change',
}

/** The link target that a mail request asked for. */
export interface LinkTarget {
  /** Checked against the allowed URLs; null means the configured page. */
  readonly redirectUrl: string | null
  /** Returned to the page as `state`. */
  readonly state: string | null
}

/** The configured page, without `state`. */
export const plainTarget: LinkTarget = { redirectUrl: null, state: null }

/** Throws 400 if `redirectUrl` is malformed or not allowed. */
export function parseLinkTarget(
  { redirectUrls: listed, allowsLocalRedirects: allowsLocal }: AuthConfig,
  given: { readonly redirectUrl?: string | undefined; readonly state?: string | undefined },
): LinkTarget {
  const { redirectUrl, state = null } = given
  if (redirectUrl === undefined) return { redirectUrl: null, state }
  return { redirectUrl: parseRedirectUrl(redirectUrl, { listed, allowsLocal }, 'redirectUrl'), state }
}

/** The URL of the page with the token; the bare token if no page is configured. */
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
