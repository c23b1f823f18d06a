/** Where a browser may be sent with somebody's tokens: only to what the configuration lists. */
import { invalidField } from '../../../errors.ts'
import { redirectUrlCharsMax } from '../../../limits/users.ts'

export interface RedirectRules {
  /** Exact URLs, and origins, which stand for every page of theirs; `config/auth` has judged their schemes. */
  readonly listed: readonly string[]
  /** Whether pages of this machine are as good as listed, on any port. */
  readonly allowsLocal: boolean
}

const webSchemes = new Set(['http:', 'https:'])
const localHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * Printable ASCII without what parsers disagree about: browsers read a backslash as a slash, and drop tabs and line
 * breaks. A fragment would be written over by ours.
 */
const plain = /^[!"$-[\]-~]+$/

/**
 * The URL in the one spelling in which it was judged. Throws 400 naming `field` for one that is malformed or not
 * listed.
 */
export function parseRedirectUrl(text: string, { listed, allowsLocal }: RedirectRules, field: string): string {
  const url = text.length <= redirectUrlCharsMax && plain.test(text) ? URL.parse(text) : null
  if (url?.username !== '' || url.password !== '')
    throw invalidField(field, 'pattern', 'must be an absolute URL in ASCII, without a user name or a fragment')
  const isWeb = webSchemes.has(url.protocol)
  const isLocal = allowsLocal && isWeb && localHosts.has(url.hostname)
  if (isLocal || listed.some((entry) => (isWeb ? allowsPage(entry, url) : entry === text)))
    return isWeb ? url.href : text
  throw invalidField(field, 'enum', 'is not among the allowed redirect URLs')
}

/** URLs of apps are compared as they are written instead: how to read them is for the app. */
function allowsPage(entry: string, url: URL): boolean {
  const allowed = URL.parse(entry)
  if (!allowed || !webSchemes.has(allowed.protocol)) return false
  return allowed.origin === entry ? allowed.origin === url.origin : allowed.href === url.href
}
