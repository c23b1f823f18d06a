/** Sessions in cookies: what the server stores, what it refuses, and renders that can't write, over HTTP. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../../server/src/base/clock.ts'
import { describeServer } from '../../../server/tests/harness/server.ts'
import { auth, createClient, records } from '../../src/index.ts'
import { type CookieJar, cookieStorage, handleSession, requestCookies } from '../../src/ssr/index.ts'

const clock = manualClock(Date.now())
const config = {
  databases: {
    shared: {
      tables: { own: { schema: { text: { type: 'string' } }, access: { read: (user: unknown) => user !== null } } },
    },
  },
} as const
const password = 'a lighthouse at sea'

/** The cookies of a browser, as several requests in turn send and receive them. */
function openBrowser(url = 'https://app.example/') {
  const cookies = new Map<string, string>()
  const attributes = new Map<string, string>()
  return {
    cookies,
    attributes,
    request: (path = '', init?: RequestInit) => {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      return new Request(url + path, { ...init, headers: { cookie, ...init?.headers } })
    },
    receive(headers: readonly (readonly [string, string])[]): void {
      for (const [, text] of headers) {
        const [, name = '', value = '', rest = ''] = /^([^=]+)=([^;]*); (.*)$/.exec(text) ?? []
        attributes.set(name, rest)
        if (Date.parse(/Expires=([^;]+)/.exec(rest)?.[1] ?? '') > Date.now()) cookies.set(name, value)
        else cookies.delete(name)
      }
    },
  }
}

describeServer('sessions in cookies', { config, clock }, (server) => {
  /** What a server does for one request of the browser. */
  const render = async <Result>(
    browser: ReturnType<typeof openBrowser>,
    work: (client: ReturnType<typeof connect>) => Promise<Result>,
  ): Promise<Result> => {
    const jar = requestCookies(browser.request())
    const client = connect(jar)
    try {
      return await work(client)
    } finally {
      client.close()
      browser.receive(jar.headers)
    }
  }
  const connect = (jar: CookieJar) =>
    createClient<typeof config>(server.url, [auth, records], { storage: cookieStorage(jar), retries: 0 })
  let users = 0
  const signUp = (browser: ReturnType<typeof openBrowser>) =>
    render(browser, ({ auth }) => auth.signUp({ email: `cookie-${++users}@client.example`, password }))

  test('a server signs a user in, renders as the user and signs out', async () => {
    const browser = openBrowser()
    const { user } = await signUp(browser)
    expect([...browser.attributes.values()]).toEqual([
      expect.stringMatching(/^Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax; Secure$/),
    ])
    expect(await render(browser, async ({ auth }) => (await auth.ready)?.user)).toEqual(user)
    expect((await render(browser, (client) => client.db().own.list())).total).toBe(0)
    await render(browser, ({ auth }) => auth.signOut())
    expect(browser.cookies.size).toBe(0)
    expect(await render(browser, ({ auth }) => auth.ready)).toBeNull()
  })

  test('a development server at localhost sets cookies without TLS', async () => {
    const browser = openBrowser('http://localhost:3000/')
    await signUp(browser)
    expect([...browser.attributes.values()].join()).not.toContain('Secure')
    expect((await render(browser, (client) => client.db().own.list())).total).toBe(0)
  })

  test('twenty requests at once with an expired token keep the session', async () => {
    const browser = openBrowser()
    await signUp(browser)
    for (let expiry = 0; expiry < 3; expiry++) {
      clock.advance(16 * 60_000)
      const totals = await Promise.all(
        Array.from({ length: 20 }, () => render(browser, async (client) => (await client.db().own.list()).total)),
      )
      expect(totals).toEqual(Array(20).fill(0))
      // Beyond the grace in which the previous refresh token is accepted.
      clock.advance(60_000)
    }
    await render(browser, ({ auth }) => auth.refresh())
    expect(await render(browser, async ({ auth }) => (await auth.ready) !== null)).toBe(true)
  })

  test('a render that cannot set cookies reads the session and never refreshes it', async () => {
    const browser = openBrowser()
    await signUp(browser)
    const { get } = requestCookies(browser.request())
    const readOnly = connect({ get })
    expect((await readOnly.db().own.list()).total).toBe(0)
    clock.advance(16 * 60_000)
    await expect(readOnly.db().own.list()).rejects.toMatchObject({ status: 401 })
    await expect(connect({ get }).db().own.list()).rejects.toMatchObject({ status: 401 })
    clock.advance(60_000)
    // The refresh token was not used up.
    expect((await render(browser, (client) => client.db().own.list())).total).toBe(0)
  })

  test('long sessions are divided into cookies; metadata that fits nowhere is left out', async () => {
    const browser = openBrowser()
    const { user } = await signUp(browser)
    await render(browser, ({ auth }) => auth.updateProfile({ metadata: { long: 'ä'.repeat(7_000) } }))
    const kept = await render(browser, async ({ auth }) => (await auth.ready)?.user)
    expect(kept).toMatchObject({ id: user.id, email: user.email })
    expect(browser.cookies.size).toBe(1)
    const jar = requestCookies(browser.request())
    const storage = cookieStorage(jar)
    const session = JSON.parse((await storage.get('plinth:https://api.example')) as string)
    const long = JSON.stringify({ ...session, accessToken: 'x'.repeat(3_000) })
    await storage.set('plinth:https://api.example', long)
    browser.receive(jar.headers)
    expect([...browser.cookies.keys()]).toEqual(['plinth-session', 'plinth-session.1'])
    for (const value of browser.cookies.values()) expect(value.length).toBeLessThan(3_700)
    const again = requestCookies(browser.request())
    expect(await cookieStorage(again).get('plinth:https://api.example')).toBe(long)
    await cookieStorage(again).set('plinth:https://api.example', JSON.stringify(session))
    browser.receive(again.headers)
    expect([...browser.cookies.keys()]).toEqual(['plinth-session'])
    const tooLong = JSON.stringify({ ...session, accessToken: 'x'.repeat(20_000) })
    expect(() => cookieStorage(again).set('plinth:https://api.example', tooLong)).toThrow(TypeError)
  })

  test('other values of the device are no session, and damaged cookies neither', async () => {
    const browser = openBrowser()
    await signUp(browser)
    const jar = requestCookies(browser.request())
    const storage = cookieStorage(jar)
    for (const key of ['plinth:http://[::1]:80:device', 'plinth:https://a.example:upload:["a","b:c"]']) {
      await storage.set(key, 'value')
      expect(await storage.get(key)).toBe('value')
      await storage.remove(key)
      expect(await storage.get(key)).toBeNull()
    }
    expect(jar.headers).toEqual([])
    for (const key of ['plinth:http://[::1]:80', 'plinth:http://[::a]', 'plinth:https://a.example/api', 'plinth:'])
      expect(await storage.get(key)).toContain('accessToken')
    for (const value of ['', 'x', '%%%', 'bnVsbA', 'e30']) {
      browser.cookies.set('plinth-session', value)
      expect(await render(browser, ({ auth }) => auth.ready)).toBeNull()
    }
  })

  test('the endpoint serves its own pages only, and stores nothing but sessions', async () => {
    const browser = openBrowser()
    await signUp(browser)
    const call = async (method: string, body?: string, headers: Record<string, string> = {}) => {
      const request = browser.request('plinth-session', { method, headers, ...(body !== undefined && { body }) })
      const jar = requestCookies(request)
      const response = await handleSession(request, jar)
      return { status: response.status, set: jar.headers.length, response }
    }
    const { response } = await call('GET')
    expect(response.headers.get('cache-control')).toBe('no-store')
    const text = await response.text()
    for (const site of ['cross-site', 'same-site', 'none'])
      for (const method of ['GET', 'PUT', 'DELETE'])
        expect(await call(method, method === 'PUT' ? text : undefined, { 'sec-fetch-site': site })).toMatchObject({
          status: 403,
          set: 0,
        })
    for (const body of ['', 'null', '{}', '[1]', JSON.stringify({ user: {} }), `${text}x`])
      expect(await call('PUT', body)).toMatchObject({ status: 400, set: 0 })
    // A form of another site can send it without a preflight.
    expect(await call('POST', text)).toMatchObject({ status: 405, set: 0 })
    expect(await call('PUT', text, { 'sec-fetch-site': 'same-origin' })).toMatchObject({ status: 204, set: 1 })
    expect(await call('DELETE')).toMatchObject({ status: 204, set: 1 })
  })
})
