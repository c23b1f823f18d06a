/** A browser as far as sign-ins through providers need one: it follows redirects, and keeps cookies to their hosts. */
import { expect } from 'bun:test'

export interface OAuthBrowserOptions {
  /** Where the server says it is, and where it really is. */
  readonly publicUrl: string
  readonly serverUrl: () => string
}

export interface Visit {
  readonly status: number
  /** Where it leads, absolute; null where it leads nowhere. */
  readonly location: string | null
  readonly text: string
  readonly headers: Headers
}

export interface OAuthBrowser {
  /** Cookies by host, as name to value. */
  readonly cookies: ReadonlyMap<string, ReadonlyMap<string, string>>
  visit(url: string, init?: RequestInit): Promise<Visit>
  /** Leaves for a provider; gives the address there. */
  leave(path: string): Promise<string>
  /** Follows redirects until one leads to an address that begins so, which is not visited. */
  follow(url: string, until: string): Promise<string>
  /** Visits the callback; gives what the fragment of the page says that it led to. */
  comeBack(url: string): Promise<Readonly<Record<string, string>>>
}

const redirectsMax = 10

export function createOAuthBrowser({ publicUrl, serverUrl }: OAuthBrowserOptions): OAuthBrowser {
  const cookies = new Map<string, Map<string, string>>()

  async function visit(url: string, init: RequestInit = {}): Promise<Visit> {
    const { host } = new URL(url)
    const jar = cookies.get(host) ?? new Map<string, string>()
    cookies.set(host, jar)
    const headers = new Headers(init.headers)
    // What `SameSite=Lax` means for a form that another site posts.
    if ((init.method ?? 'GET') === 'GET')
      headers.set('Cookie', [...jar].map(([name, value]) => `${name}=${value}`).join('; '))
    const real = url.startsWith(publicUrl) ? serverUrl() + url.slice(publicUrl.length) : url
    const response = await fetch(real, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) keep(jar, line)
    const location = response.headers.get('location')
    return {
      status: response.status,
      location: location === null ? null : resolve(location, url),
      text: await response.text(),
      headers: response.headers,
    }
  }

  async function lead(url: string): Promise<string> {
    const { status, location, text } = await visit(url)
    if (location === null) throw new Error(`${url} leads nowhere: ${status} ${text.slice(0, 300)}`)
    return location
  }

  return {
    cookies,
    visit,
    leave: (path) => lead(publicUrl + path),
    async follow(url, until) {
      let at = url
      for (let steps = 0; !at.startsWith(until); steps++) {
        if (steps === redirectsMax) throw new Error(`${url} does not lead to ${until}`)
        at = await lead(at)
      }
      return at
    },
    async comeBack(url) {
      const { status, location, text } = await visit(url)
      expect([status, status === 302 ? '' : text]).toEqual([302, ''])
      return fragmentOf(location ?? '')
    },
  }
}

/** Addresses of apps are not for this browser to understand. */
const resolve = (location: string, base: string): string =>
  /^[a-z][a-z0-9+.-]*:/i.test(location) ? location : new URL(location, base).href

export const fragmentOf = (url: string): Readonly<Record<string, string>> =>
  Object.fromEntries(new URLSearchParams(url.split('#')[1] ?? ''))

function keep(jar: Map<string, string>, line: string): void {
  const [pair = '', ...attributes] = line.split(';').map((part) => part.trim())
  const at = pair.indexOf('=')
  const name = pair.slice(0, at)
  if (attributes.includes('Max-Age=0')) jar.delete(name)
  else jar.set(name, pair.slice(at + 1))
}
