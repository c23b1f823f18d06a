/** A site that a server renders for its users: one session in cookies for the server and all tabs of a browser. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { manualClock } from '../../../server/src/base/clock.ts'
import {
  type Chromium,
  describeInBrowser,
  openChromium,
  type Tab,
} from '../../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { auth, createClient, records } from '../../src/index.ts'
import { cookieStorage, handleSession, requestCookies } from '../../src/ssr/index.ts'
import { openSite, page, type Site, type SiteGlobals } from '../harness/site.ts'

const config = {
  databases: {
    shared: {
      tables: {
        notes: {
          schema: { ownerId: { type: 'string' }, text: { type: 'string' } },
          access: {
            read: (user: { id: string } | null) => user && { ownerId: user.id },
            insert: (user: { id: string } | null) => user !== null,
          },
        },
      },
    },
  },
} as const

type Page = SiteGlobals & { readonly client: ReturnType<typeof connect> }
const connect = () => createClient<typeof config>('', [auth, records])

/** Runs in every page: creates the client, with the session of the server. */
function start(): void {
  const { plinth, ssr } = globalThis as Page
  Object.assign(globalThis, { client: plinth.createClient(location.origin, { storage: ssr.pageStorage() }) })
}

describeInBrowser('rendered pages', 'rendered pages in a browser', (program) => {
  const clock = manualClock(Date.now())
  let browser: Chromium
  let server: TestServer
  let site: Site
  let refreshes = 0

  /** What the server shows its user. */
  async function render(request: Request): Promise<Response> {
    const cookies = requestCookies(request)
    const client = createClient<typeof config>(site.api, [auth, records], { storage: cookieStorage(cookies) })
    try {
      const session = await client.auth.ready
      const { items } = session ? await client.db().notes.sort('text').list() : { items: [] }
      const list = createElement(
        'ul',
        null,
        items.map(({ id, text }) => createElement('li', { key: id }, text)),
      )
      return page(renderToString(session ? list : createElement('p', null, 'signed out')), script, cookies.headers)
    } finally {
      client.close()
    }
  }
  const script = `(${start})()`

  beforeAll(async () => {
    site = openSite(async (request) => {
      const { pathname } = new URL(request.url)
      if (pathname === '/api/auth/refresh') refreshes++
      if (pathname === '/') return render(request)
      if (pathname !== '/plinth-session') return undefined
      const cookies = requestCookies(request)
      const response = await handleSession(request, cookies)
      for (const [name, value] of cookies.headers) response.headers.append(name, value)
      return response
    })
    server = await startServer({ config, clock })
    site.api = server.url
  })
  afterAll(async () => {
    site.stop()
    await server.close()
  })
  beforeEach(async () => {
    refreshes = 0
    browser = await openChromium(program)
    await browser.open(site.url)
  })
  afterEach(() => browser.close())

  const bodyOf = (tab: Tab): Promise<string> =>
    tab.run(async () => [...document.querySelectorAll('p, li')].map(({ textContent }) => textContent).join(' '))
  const signUp = (email: string): Promise<void> =>
    browser.run(async (address) => {
      const { client } = globalThis as Page
      const { user } = await client.auth.signUp({ email: address, password: 'a lighthouse at sea' })
      for (const text of ['one', 'two']) await client.db().notes.insert({ ownerId: user.id, text })
    }, email)
  const state = (tab: Tab): Promise<readonly [email: string | null, notes: number | string]> =>
    tab.run(async () => {
      const { auth, db } = (globalThis as Page).client
      await auth.ready
      const notes = await db()
        .notes.count()
        .catch((error: { slug: string }) => error.slug)
      return [auth.user?.email ?? null, notes] as const
    })

  test('the server renders the rows of the user who signed in in the page, until the user signs out', async () => {
    expect(await bodyOf(browser)).toBe('signed out')
    await signUp('ann@client.example')
    // Scripts can't read it, and nothing is kept beside it.
    expect(await browser.run(async () => [document.cookie, Object.keys(localStorage).join()])).toEqual([
      '',
      `plinth:${site.url}:device`,
    ])
    await browser.open(site.url)
    expect(await bodyOf(browser)).toBe('one two')
    expect(await state(browser)).toEqual(['ann@client.example', 2])
    await browser.run(() => (globalThis as Page).client.auth.signOut())
    await browser.open(site.url)
    expect(await bodyOf(browser)).toBe('signed out')
    expect(await state(browser)).toEqual([null, 'authentication-required'])
  })

  test('tabs follow each other, and a tab continues with the tokens that the server has refreshed', async () => {
    await signUp('ben@client.example')
    const other = await browser.openTab(site.url)
    expect(await bodyOf(other)).toBe('one two')
    for (let expiry = 1; expiry <= 3; expiry++) {
      clock.advance(16 * 60_000)
      // Rendering refreshes, and its answer has the new cookie; the other tab finds it instead of refreshing.
      await other.open(site.url)
      expect(await bodyOf(other)).toBe('one two')
      clock.advance(60_000)
      expect(await state(browser)).toEqual(['ben@client.example', 2])
      expect(await state(other)).toEqual(['ben@client.example', 2])
    }
    expect(refreshes).toBe(0)
    // And the reverse: a page refreshes, and the server renders with its tokens.
    clock.advance(16 * 60_000)
    expect(await state(browser)).toEqual(['ben@client.example', 2])
    expect(refreshes).toBe(1)
    clock.advance(60_000)
    await other.open(site.url)
    expect(await bodyOf(other)).toBe('one two')
    const ended = other.run(
      () =>
        new Promise<boolean>((resolve) => {
          ;(globalThis as Page).client.auth.onChange((next) => {
            if (!next) resolve(true)
          })
        }),
    )
    await other.run(() => (globalThis as Page).client.auth.ready)
    await browser.run(() => (globalThis as Page).client.auth.signOut())
    expect(await ended).toBe(true)
  })
})
