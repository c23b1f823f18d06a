/** Validation of redirect URLs: tokens are sent only to URLs that the configuration lists. */
import { invalidField } from '../../../errors.ts'
import { redirectUrlCharsMax } from '../../../limits/users.ts'

export interface RedirectRules {
  /** Exact URLs, and origins, which allow each of their pages. The configuration has validated the schemes. */
  readonly listed: readonly string[]
  /** Whether pages on loopback hosts are allowed, on any port. */
  readonly allowsLocal: boolean
}

const webSchemes = new Set(['http:', 'https:'])
const localHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * Printable ASCII without characters that URL parsers treat differently: browsers read a backslash as a slash and drop
 * tabs and line breaks. Excludes fragments, which the server sets.
 */
const plain = /^[!"$-[\]-~]+$/

/**
 * The normalized URL, exactly as it was checked. Throws 400 naming `field` if it is malformed or not listed.
 */
export function parseRedirectUrl(text: string, { listed, allowsLocal }: RedirectRules, field: string): string {
  const url = text.length <= redirectUrlCharsMax && plain.test(text) ? URL.parse(text) : null
  if (url?.username !== '' || url.password !== '')
    throw invalidField(field, 'pattern', 'must be an absolute URL in ASCII, without a user name or a fragment')
  const isWeb = webSchemes.has(url.protocol)
  const isLocal = allowsLocal && isWeb && localHosts.has(url.hostname)
  if (isLocal || listed.some((entry) => (isWeb ? allowsPage(entry, url) : entry === text)))
    return isWeb ? url.href : text
  throw invalidField(field, 'enum', 'is not an allowed redirect URL; add it to auth.redirectUrls')
}

/** URLs with app schemes are compared as strings instead, because their syntax is up to the app. */
function allowsPage(entry: string, url: URL): boolean {
  const allowed = URL.parse(entry)
  if (!allowed || !webSchemes.has(allowed.protocol)) return false
  return allowed.origin === entry ? allowed.origin === url.origin : allowed.href === url.href
}
