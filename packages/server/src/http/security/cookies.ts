/** Reads and writes single cookies (RFC 6265). */
import { cookieHeaderCharsMax } from '../../limits/dashboard.ts'

/** The value of a cookie of the request; null if there is none. A longer header is not searched. */
export function readCookie(headers: Headers, name: string): string | null {
  const header = headers.get('cookie')
  if (header === null || header.length > cookieHeaderCharsMax) return null
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
  }
  return null
}

export interface CookieOptions {
  readonly isSecure: boolean
  /** 0 deletes the cookie. */
  readonly maxAgeSeconds: number
}

/** A `Set-Cookie` value for a cookie that no script reads and no other site's page sends. */
export const formatCookie = (name: string, value: string, { isSecure, maxAgeSeconds }: CookieOptions): string =>
  `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
