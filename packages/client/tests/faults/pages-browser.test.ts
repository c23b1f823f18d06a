/** Pages whose storage is full or forbidden, and pages with two copies of the client, in a real browser. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { manualClock } from '../../../server/src/base/clock.ts'
import { type Chromium, describeInBrowser, openChromium } from '../../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { openSite, type Site, type SiteGlobals } from '../harness/site.ts'

const config = {
  databases: {
    shared: { tables: { own: { schema: {}, access: { read: (user: { id: string } | null) => user !== null } } } },
  },
} as const
const minute = 60_000

type Page = SiteGlobals & {
  clients: ReturnType<SiteGlobals['plinth']['createClient']>[]
  /** The function of each copy. */
  copies: unknown[]
  signOuts: number
}

/** Runs in a page: creates a client, of another copy of the package each time. Resolves with its user. */
async function start(): Promise<string | null> {
  const page = globalThis as unknown as Page
  page.clients ??= []
  page.copies ??= []
  page.signOuts ??= 0
  if (page.clients.length > 0) await import(`/client.js?copy=${page.clients.length}`)
  const client = page.plinth.createClient(location.origin)
  page.clients.push(client)
  page.copies.push(page.plinth.createClient)
  const session = await client.auth.ready
  client.auth.onChange((next) => {
    if (!next) page.signOuts++
  })
  return session?.user.id ?? null
}
/** Runs in a page: what each client lists at once. */
const list = async (): Promise<number[]> =>
  Promise.all((globalThis as unknown as Page).clients.map(async (client) => (await client.db().own.list()).total))
const signIn = async (): Promise<string> =>
  (await (globalThis as unknown as Page).clients[0]?.auth.signInAnonymously())?.user.id ?? ''

describeInBrowser('storage and copies of the client', 'storage and copies in a browser', (program) => {
  const clock = manualClock(Date.now())
  let browser: Chromium
  let server: TestServer
  let site: Site
  let refreshes = 0
  beforeAll(async () => {
    site = openSite((request) => {
      if (request.url.endsWith('/api/auth/refresh')) refreshes++
      return undefined
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

  test('two copies of the client in one page share a session through every expiry', async () => {
    expect(await browser.run(start)).toBeNull()
    const userId = await browser.run(signIn)
    expect(await browser.run(start)).toBe(userId)
    expect(await browser.run(async () => new Set((globalThis as unknown as Page).copies).size)).toBe(2)
    for (let expiry = 1; expiry <= 3; expiry++) {
      clock.advance(16 * minute)
      expect(await browser.run(list)).toEqual([0, 0])
      expect(refreshes).toBeLessThanOrEqual(2 * expiry)
      // Beyond the grace in which the previous token is accepted.
      clock.advance(minute)
    }
    expect(await browser.run(async () => (globalThis as unknown as Page).signOuts)).toBe(0)
    await browser.open(site.url)
    expect(await browser.run(start)).toBe(userId)
  })

  test('storage that is full after the sign-in keeps the session through a refresh and a reload', async () => {
    await browser.run(start)
    const userId = await browser.run(signIn)
    const isFull = await browser.run(async () => {
      for (let size = 2 ** 22; size >= 1; size /= 2)
        for (let at = 0; ; at++)
          try {
            localStorage.setItem(`fill-${size}-${at}`, 'x'.repeat(size))
          } catch {
            break
          }
      try {
        localStorage.setItem('more', 'more')
        return false
      } catch {
        return true
      }
    })
    expect(isFull).toBe(true)
    clock.advance(16 * minute)
    expect(await browser.run(list)).toEqual([0])
    expect(refreshes).toBe(1)
    clock.advance(minute)
    await browser.open(site.url)
    expect(await browser.run(start)).toBe(userId)
    expect(await browser.run(list)).toEqual([0])
  })

  test.each(['reading', 'writing'])(
    'where the browser forbids %s storage, a session lasts as long as the page',
    async (what) => {
      await browser.run(async (forbidden) => {
        const refuse = (): never => {
          throw new DOMException('forbidden', 'SecurityError')
        }
        if (forbidden === 'reading') Object.defineProperty(globalThis, 'localStorage', { get: refuse })
        else Storage.prototype.setItem = refuse
      }, what)
      expect(await browser.run(start)).toBeNull()
      await browser.run(signIn)
      clock.advance(16 * minute)
      expect(await browser.run(list)).toEqual([0])
      await browser.run(async () => (globalThis as unknown as Page).clients[0]?.auth.signOut())
      expect(await browser.run(async () => (globalThis as unknown as Page).clients[0]?.auth.session)).toBeNull()
      await browser.open(site.url)
      expect(await browser.run(start)).toBeNull()
    },
  )
})
