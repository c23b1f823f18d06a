/** Passkeys of the client in a real browser with a virtual authenticator. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { type Chromium, describeInBrowser, openChromium } from '../../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { openSite, type Site, type SiteGlobals } from '../harness/site.ts'

type Page = SiteGlobals & { readonly client: ReturnType<SiteGlobals['plinth']['createClient']> }
interface Passkey {
  readonly id: string
  readonly name: string
}

/** Runs in every page. */
function start(): void {
  Object.assign(globalThis, { client: (globalThis as Page).plinth.createClient(location.origin) })
}

/** Runs in a page: signs up and adds a passkey. */
async function signUpWithPasskey(
  email: string,
): Promise<{ userId: string; added: object; listed: readonly Passkey[] }> {
  const { auth } = (globalThis as Page).client
  const { user } = await auth.signUp({ email, password: 'a lighthouse at sea' })
  const added = await auth.passkeys.add('This device')
  return { userId: user.id, added, listed: (await auth.passkeys.list()) as Passkey[] }
}

/** Runs in a page: signs in. Resolves with the user, or with the slug of the error. */
async function signIn(): Promise<string> {
  const { auth } = (globalThis as Page).client
  try {
    const result = await auth.signInWithPasskey()
    return 'session' in result ? result.session.user.id : 'mfa'
  } catch (error) {
    return (error as { slug: string }).slug
  }
}

describeInBrowser('passkeys of the client', 'passkeys of the client in a browser', (program) => {
  let browser: Chromium
  let server: TestServer
  let site: Site
  beforeAll(async () => {
    site = openSite(undefined, `(${start})()`)
    server = await startServer({ config: { auth: { passkeys: { rpId: 'localhost', origins: [site.url] } } } })
    site.api = server.url
  })
  afterAll(async () => {
    site.stop()
    await server.close()
  })
  beforeEach(async () => {
    browser = await openChromium(program)
    await browser.open(site.url)
  })
  afterEach(() => browser.close())

  test('a passkey is added, listed, signs in without a password, and is removed', async () => {
    await browser.addAuthenticator()
    const { userId, added, listed } = await browser.run(signUpWithPasskey, 'passkey@client.example')
    expect(listed).toEqual([added as Passkey])
    expect(listed[0]?.name).toBe('This device')
    await browser.run(() => (globalThis as Page).client.auth.signOut())
    expect(await browser.run(signIn)).toBe(userId)
    expect(await browser.run(async () => (globalThis as Page).client.auth.user?.email ?? null)).toBe(
      'passkey@client.example',
    )
    // One authenticator has one passkey of an account.
    expect(
      await browser.run(() =>
        (globalThis as Page).client.auth.passkeys.add().then(
          () => 'added',
          (error: { slug: string }) => error.slug,
        ),
      ),
    ).toBe('aborted')
    const left = await browser.run(async (id) => {
      const { passkeys } = (globalThis as Page).client.auth
      const removed = await passkeys.remove(id)
      return [removed === undefined, (await passkeys.list()).length] as const
    }, listed[0]?.id ?? '')
    expect(left).toEqual([true, 0])
    await browser.run(() => (globalThis as Page).client.auth.signOut())
    expect(await browser.run(signIn)).toBe('invalid-credentials')
    expect(await browser.run(async () => (globalThis as Page).client.auth.session)).toBeNull()
  })

  test('a browser without an authenticator, or a user who refuses, is an error and changes nothing', async () => {
    await browser.run(async () => {
      const refuse = () => Promise.reject(new DOMException('refused', 'NotAllowedError'))
      Object.assign(navigator.credentials, { create: refuse, get: refuse })
    })
    const added = await browser.run((email) => {
      const { auth } = (globalThis as Page).client
      return auth
        .signUp({ email, password: 'a lighthouse at sea' })
        .then(() => auth.passkeys.add())
        .then(
          () => 'added',
          (error: { slug: string }) => error.slug,
        )
    }, 'refusing@client.example')
    expect(added).toBe('aborted')
    expect(await browser.run(async () => (await (globalThis as Page).client.auth.passkeys.list()).length)).toBe(0)
    expect(await browser.run(signIn)).toBe('aborted')
    expect(await browser.run(async () => (globalThis as Page).client.auth.user?.email ?? null)).toBe(
      'refusing@client.example',
    )
  })
})
