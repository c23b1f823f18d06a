/** Parses query strings strictly: every parameter at most once, every percent sequence valid UTF-8. */
import { invalidField } from '../../errors.ts'

const none: Readonly<Record<string, string>> = Object.freeze(Object.create(null) as Record<string, string>)

/** Path and query string of a request's URL, without scheme, host and fragment. */
export interface Target {
  readonly path: string
  /** Without the question mark; empty if there is none. */
  readonly query: string
}

/** Splits a URL as the runtime provides it: absolute, or only a path where `Host` is not a host name. */
export function parseTarget(url: string): Target {
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  const hash = url.indexOf('#', start)
  const end = hash < 0 ? url.length : hash
  const question = url.indexOf('?', start)
  if (question < 0 || question > end) return { path: url.slice(start, end), query: '' }
  return { path: url.slice(start, question), query: url.slice(question + 1, end) }
}

/** The decoded parameters in an object without a prototype. Throws 400 for a duplicate or malformed encoding. */
export function parseQueryString(query: string): Readonly<Record<string, string>> {
  if (query === '') return none
  const parameters = Object.create(null) as Record<string, string>
  for (let start = 0; start <= query.length; ) {
    const ampersand = query.indexOf('&', start)
    const end = ampersand < 0 ? query.length : ampersand
    if (end > start) {
      const equals = query.indexOf('=', start)
      const split = equals < 0 || equals > end ? end : equals
      const name = decode(query.slice(start, split), query.slice(start, split))
      if (name in parameters) throw invalidField(name, 'max', 'is given more than once')
      parameters[name] = decode(query.slice(split + 1, end), name)
    }
    start = end + 1
  }
  return parameters
}

function decode(text: string, name: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch {
    throw invalidField(name, 'pattern', 'is not percent-encoded UTF-8')
  }
}
