/** A minimal browser for sign-ins through providers: follows redirects and keeps cookies per host. */

export interface OAuthBrowserOptions {
  /** The public URL of the server, and the URL at which it listens. */
  readonly publicUrl: string
  readonly serverUrl: () => string
}

export interface Visit {
  readonly status: number
  /** The absolute URL of a redirect, or null. */
  readonly location: string | null
  readonly text: string
  readonly headers: Headers
}

export interface OAuthBrowser {
  /** Cookies by host, as name to value. */
  readonly cookies: ReadonlyMap<string, ReadonlyMap<string, string>>
  visit(url: string, init?: RequestInit): Promise<Visit>
  /** Starts a sign-in; returns the URL at the provider. */
  startSignIn(path: string): Promise<string>
  /** Follows redirects up to a URL with this prefix, which is returned and not visited. */
  follow(url: string, until: string): Promise<string>
  /** Visits the callback; returns the parameters in the fragment of the page that it redirects to. */
  openCallback(url: string): Promise<Readonly<Record<string, string>>>
}

const redirectsMax = 10

export function createOAuthBrowser({ publicUrl, serverUrl }: OAuthBrowserOptions): OAuthBrowser {
  const cookies = new Map<string, Map<string, string>>()

  async function visit(url: string, init: RequestInit = {}): Promise<Visit> {
    const { host } = new URL(url)
    const jar = cookies.get(host) ?? new Map<string, string>()
    cookies.set(host, jar)
    const headers = new Headers(init.headers)
    // `SameSite=Lax` withholds cookies from a form that another site posts.
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

  async function redirectOf(url: string): Promise<string> {
    const { status, location, text } = await visit(url)
    if (location === null) throw new Error(`${url} did not redirect: ${status} ${text.slice(0, 300)}`)
    return location
  }

  return {
    cookies,
    visit,
    startSignIn: (path) => redirectOf(publicUrl + path),
    async follow(url, until) {
      let at = url
      for (let steps = 0; !at.startsWith(until); steps++) {
        if (steps === redirectsMax) throw new Error(`${url} does not redirect to ${until}`)
        at = await redirectOf(at)
      }
      return at
    },
    async openCallback(url) {
      const { status, location, text } = await visit(url)
      if (status !== 302) throw new Error(`the callback did not redirect: ${status} ${text.slice(0, 300)}`)
      return fragmentOf(location ?? '')
    },
  }
}

/** A URL with another scheme, such as an app's, is kept as it is. */
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
