/** Sign-in through a provider in a browser: popups and redirects, how they end, and providers that isolate popups. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import {
  type Chromium,
  describeInBrowser,
  openChromium,
  type Tab,
} from '../../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { providerOf } from '../../../server/tests/harness/users/oauth.ts'
import { type OidcIssuer, openOidcIssuer } from '../../../server/tests/harness/users/oidc-issuer.ts'
import { openSite, type Site, type SiteGlobals } from '../harness/site.ts'

type Page = SiteGlobals & {
  readonly client: ReturnType<SiteGlobals['plinth']['createClient']>
  /** The last one. */
  readonly popup: Window | null
}

/** Runs in every page: creates the client, and reports what `completeRedirect` has completed. */
async function start(): Promise<void> {
  const page = globalThis as Page
  const client = page.plinth.createClient(location.origin)
  const { open } = page
  Object.assign(page, {
    client,
    open: (...args: Parameters<typeof open>) => Object.assign(page, { popup: open(...args) }).popup,
  })
  const result = await client.auth.completeRedirect().then(
    (session) => session?.user.email ?? null,
    (error: { slug: string }) => error.slug,
  )
  await fetch('/started', { method: 'POST', body: JSON.stringify(result) })
}

/** Runs in a page: signs in. Resolves with the address, or with the slug of the error. */
async function signIn(popup: boolean): Promise<string | null> {
  try {
    const { user } = await (globalThis as Page).client.auth.signInWithProvider('corp', { popup })
    return user.email
  } catch (error) {
    return (error as { slug: string }).slug
  }
}

const isPopupClosed = async (): Promise<boolean> => (globalThis as Page).popup?.closed === true

describeInBrowser('sign-in through a provider', 'providers in a browser', (program) => {
  let browser: Chromium
  let issuer: OidcIssuer
  let server: TestServer
  let site: Site
  /** The provider's page at which a person is chosen, which decides what happens next. */
  let chooser: Bun.Server<undefined>
  let headers: Record<string, string> = {}
  let chosen: (person: string) => void
  let opened: Promise<void>
  let onOpened: () => void
  let choices: Promise<string>
  let onStarted: (result: string | null) => void

  beforeAll(async () => {
    chooser = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        const { pathname, search, searchParams } = new URL(request.url)
        if (pathname === '/choice') {
          onOpened()
          return new Response(`${searchParams.get('to')}&login_hint=${await choices}`)
        }
        const script = `fetch('/choice${search}').then((r) => r.text()).then((url) => { location.href = url })`
        return new Response(`<title>Choose</title><script>${script}</script>`, {
          headers: { 'Content-Type': 'text/html', ...headers },
        })
      },
    })
    site = openSite(async (request) => {
      const { pathname, search } = new URL(request.url)
      if (pathname === '/started') {
        onStarted((await request.json()) as string | null)
        return new Response()
      }
      if (pathname !== '/api/auth/oauth/corp') return undefined
      const answer = await fetch(site.api + pathname + search, { headers: request.headers, redirect: 'manual' })
      const to = encodeURIComponent(answer.headers.get('location') ?? '')
      const moved = new Headers(answer.headers)
      moved.set('location', `${chooser.url}?to=${to}`)
      return new Response(null, { status: 302, headers: moved })
    }, `(${start})()`)
    issuer = await openOidcIssuer({ redirectUris: [`${site.url}/api/auth/oauth/corp/callback`] })
    server = await startServer({
      config: { auth: { redirectUrls: [site.url], providers: { corp: providerOf(issuer) } } },
      settings: { publicUrl: site.url },
    })
    site.api = server.url
  })
  afterAll(async () => {
    issuer.close()
    site.stop()
    await chooser.stop(true)
    await server.close()
  })
  const expectChooser = (): void => {
    ;({ promise: opened, resolve: onOpened } = Promise.withResolvers<void>())
    ;({ promise: choices, resolve: chosen } = Promise.withResolvers<string>())
  }
  /** The result of the next page that starts. */
  const started = (): Promise<string | null> =>
    new Promise((resolve) => {
      onStarted = resolve
    })
  const openPage = async (tab: Tab, path = '/'): Promise<string | null> => {
    const result = started()
    await tab.open(site.url + path)
    return result
  }
  beforeEach(async () => {
    headers = {}
    expectChooser()
    browser = await openChromium(program)
    await openPage(browser)
  })
  afterEach(() => browser.close())

  const emailOf = (tab: Tab): Promise<string | null> =>
    tab.run(async () => (globalThis as Page).client.auth.user?.email ?? null)

  test('a popup signs the page in, and is closed', async () => {
    const signing = browser.click(signIn, true)
    await opened
    chosen('ada')
    expect(await signing).toBe('ada@example.com')
    expect(await emailOf(browser)).toBe('ada@example.com')
    expect(await browser.run(isPopupClosed)).toBe(true)
  })

  test('a popup that its user closes is an error, and the next one signs in', async () => {
    const signing = browser.click(signIn, true)
    await opened
    await browser.closeTab(chooser.url.href)
    await browser.focus()
    expect(await signing).toBe('aborted')
    expectChooser()
    const again = browser.click(signIn, true)
    await opened
    chosen('bea')
    expect(await again).toBe('bea@example.com')
  })

  test('a popup that the browser blocks is an error', async () => {
    expect(await browser.run(signIn, true)).toBe('aborted')
  })

  test('the error of a provider is the error of the call', async () => {
    const signing = browser.click(signIn, true)
    await opened
    chosen('canceling')
    expect(await signing).toBe('access-denied')
    expect(await browser.run(isPopupClosed)).toBe(true)
  })

  test.each(['same-origin', 'same-origin-allow-popups'])(
    'a provider that isolates the popup with the policy %s signs the page in',
    async (policy) => {
      headers = { 'Cross-Origin-Opener-Policy': policy }
      const signing = browser.click(signIn, true)
      await opened
      // Its opener can't close it.
      const closed = browser.nextClosed()
      chosen('cem')
      expect(await signing).toBe('cem@example.com')
      await closed
    },
  )

  test('two tabs with popups sign in apart, and share the last session', async () => {
    const other = await browser.openTab(`${site.url}/other`)
    const first = browser.click(signIn, true)
    await opened
    const choose = chosen
    expectChooser()
    const second = other.click(signIn, true)
    await opened
    chosen('dov')
    expect(await second).toBe('dov@example.com')
    // The provider knows this browser by now.
    choose('dov')
    expect(await first).toBe('dov@example.com')
    expect(await emailOf(browser)).toBe('dov@example.com')
  })

  test('a redirect leaves the page and returns signed in; a link with tokens does not sign in', async () => {
    const left = browser.run(signIn, false).catch(() => null)
    await opened
    const returned = started()
    chosen('fay')
    expect(await returned).toBe('fay@example.com')
    await left
    expect(await emailOf(browser)).toBe('fay@example.com')
    expect(await browser.run(async () => location.href)).toBe(`${site.url}/`)
    const token = await browser.run(async () => (globalThis as Page).client.auth.session?.accessToken)
    await browser.run(() => (globalThis as Page).client.auth.signOut())
    expect(await openPage(browser, `/other#accessToken=${token}&refreshToken=x`)).toBeNull()
    expect(await emailOf(browser)).toBeNull()
  })

  test('a redirect that the provider refuses returns its error, once', async () => {
    const left = browser.run(signIn, false).catch(() => null)
    await opened
    const returned = started()
    chosen('canceling')
    expect(await returned).toBe('access-denied')
    await left
    expect(await browser.run(() => (globalThis as Page).client.auth.completeRedirect())).toBeNull()
  })
})
