/**
 * The session in cookies, for servers that render pages. Only the server writes them: its pages read and replace the
 * session by requests, so that a page and the server that renders it never hold different refresh tokens.
 */
import { memoryStorage } from '../core/session-storage.ts'
import type { SessionStorage } from '../types/options.ts'

export interface CookieAttributes {
  readonly path: string
  readonly httpOnly: boolean
  readonly sameSite: 'lax'
  readonly secure: boolean
  readonly expires: Date
}

/** The cookies of a request and of its response, as frameworks have them. */
export interface CookieJar {
  get(name: string): string | undefined
  /** Left out where a response can't set cookies any more: the session is then read and never refreshed. */
  set?(name: string, value: string, attributes: CookieAttributes): void
}

export interface CookieOptions {
  /** Name of the cookie. Default: `plinth-session`. */
  readonly name?: string
  /** Whether browsers send the cookie over TLS only. Default: true. */
  readonly secure?: boolean
}

/** Characters of a cookie's value: browsers store at most 4,096 with its name and attributes. */
const chunkChars = 3_600
/** Cookies of one session: servers refuse headers above 16 KiB. */
const chunksMax = 3
/** The longest that browsers keep a cookie, in milliseconds. The server decides how long a session lasts. */
const lifetimeMs = 400 * 24 * 60 * 60_000

interface Stored {
  readonly user: Readonly<Record<string, unknown>>
  readonly expiresAt: number
}

const encode = (text: string): string =>
  btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=+$/, '')

const decode = (value: string): string =>
  new TextDecoder().decode(
    Uint8Array.from(atob(value.replace(/-/g, '+').replace(/_/g, '/')), (char) => char.charCodeAt(0)),
  )

/** The session of the cookies as text, or null. */
export function readSession(jar: CookieJar, { name = 'plinth-session' }: CookieOptions = {}): string | null {
  let value = ''
  for (let at = 0; at < chunksMax; at++) value += jar.get(nameOf(name, at)) ?? ''
  try {
    const text = decode(value)
    const stored = JSON.parse(text) as Stored
    return stored.user ? text : null
  } catch {
    // Not written by this module.
    return null
  }
}

/** Sets the cookies of a session; null deletes them. Throws if the session does not fit into cookies. */
export function writeSession(
  jar: CookieJar,
  text: string | null,
  { name = 'plinth-session', secure = true }: CookieOptions = {},
): void {
  let value = text === null ? '' : encode(text)
  if (value.length > chunkChars) {
    // Metadata of a user can be longer than all cookies.
    const { user, ...session } = JSON.parse(text as string) as Stored
    value = encode(JSON.stringify({ ...session, user: { ...user, metadata: undefined } }))
  }
  if (value.length > chunkChars * chunksMax) throw new TypeError('The session is too long for cookies')
  for (let at = 0; at < chunksMax; at++) {
    const chunk = value.slice(at * chunkChars, (at + 1) * chunkChars)
    const chunkName = nameOf(name, at)
    if (!chunk && jar.get(chunkName) === undefined) continue
    const expires = new Date(chunk ? Date.now() + lifetimeMs : 0)
    jar.set?.(chunkName, chunk, { path: '/', httpOnly: true, sameSite: 'lax', secure, expires })
  }
}

const nameOf = (name: string, at: number): string => (at === 0 ? name : `${name}.${at}`)

/** Whether a key of the client's storage is that of the session, and not of another value of the device. */
export const isSessionKey = (key: string): boolean => !/:(?:[a-z-]+$|upload:|offline:)/.test(key)

/** Where the session can't be written, it must not be refreshed: the new token would be lost. */
function asReadOnly(text: string): string | null {
  const stored = JSON.parse(text) as Stored
  const isExpired = stored.expiresAt <= Date.now()
  return isExpired ? null : JSON.stringify({ ...stored, refreshToken: 'none', expiresAt: Date.now() + lifetimeMs })
}

/** The `storage` of a client that a server creates for one request. */
export function cookieStorage(jar: CookieJar, options?: CookieOptions): SessionStorage {
  const others = memoryStorage()
  let text = readSession(jar, options)
  if (text && !jar.set) text = asReadOnly(text)
  return {
    get: (key) => (isSessionKey(key) ? text : others.get(key)),
    set(key, value) {
      if (!isSessionKey(key)) return others.set(key, value)
      text = value
      writeSession(jar, value, options)
    },
    remove(key) {
      if (!isSessionKey(key)) return others.remove(key)
      text = null
      writeSession(jar, null, options)
    },
  }
}

/** The cookies of a fetch `Request`; `headers` are those of its response. */
export function requestCookies(request: Request): CookieJar & { readonly headers: [name: string, value: string][] } {
  const received = new Map(
    (request.headers.get('cookie') ?? '').split(';').map((pair) => {
      const [name = '', ...value] = pair.split('=')
      return [name.trim(), value.join('=').trim()] as const
    }),
  )
  const written = new Map<string, string>()
  return {
    get: (name) => received.get(name),
    set(name, value, { path, expires, secure }) {
      const attributes = [`Path=${path}`, `Expires=${expires.toUTCString()}`, 'HttpOnly', 'SameSite=Lax']
      // Browsers that refuse secure cookies of a development server would never sign in.
      const isLocal = /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])[:/]/.test(request.url)
      if (secure && !isLocal) attributes.push('Secure')
      written.set(name, [`${name}=${value}`, ...attributes].join('; '))
      if (value) received.set(name, value)
      else received.delete(name)
    },
    get headers() {
      return [...written.values()].map((cookie): [string, string] => ['Set-Cookie', cookie])
    },
  }
}
