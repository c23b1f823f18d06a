/**
 * Passkeys in a real browser with the virtual authenticator of Chromium: the options and responses as the browser
 * serializes them. Reported as skipped where Chromium is not installed.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { describeInBrowser, openChromium } from '../../harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../harness/server.ts'
import { signUp, type TestUser } from '../../harness/users/test-user.ts'

/** Runs in the page: registers a passkey with the token, and signs in with it, naming the email if one is given. */
async function registerAndSignIn(token: string, email: string | null) {
  const post = async (path: string, body: object | null, authorization = '') => {
    const headers = {
      ...(body ? { 'Content-Type': 'application/json' } : {}),
      ...(authorization ? { authorization } : {}),
    }
    const init = { method: 'POST', headers, ...(body ? { body: JSON.stringify(body) } : {}) }
    const response = await fetch(`/api/auth/passkeys/${path}`, init)
    return { status: response.status, body: await response.json() }
  }
  const { navigator, PublicKeyCredential } = globalThis as unknown as {
    navigator: { credentials: Record<'create' | 'get', (options: object) => Promise<{ toJSON(): object }>> }
    PublicKeyCredential: Record<
      'parseCreationOptionsFromJSON' | 'parseRequestOptionsFromJSON',
      (json: object) => object
    >
  }
  const creation = await post('register-options', null, `Bearer ${token}`)
  const created = await navigator.credentials.create({
    publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(creation.body.options),
  })
  const registered = await post('register', { response: created.toJSON(), name: 'Browser' }, `Bearer ${token}`)
  const request = await post('auth-options', email === null ? {} : { email })
  const got = await navigator.credentials.get({
    publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(request.body.options),
  })
  return { registered, signedIn: await post('authenticate', { response: got.toJSON() }) }
}

describeInBrowser('passkeys', 'passkeys in a real browser', (chromium) => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer({ config: {} })
  })
  afterAll(() => server.close())

  async function inBrowser(person: TestUser, email: string | null) {
    const browser = await openChromium(chromium)
    try {
      await browser.open(`${server.url.replace('127.0.0.1', 'localhost')}/api/health`)
      await browser.addAuthenticator()
      return await browser.run(registerAndSignIn, person.token, email)
    } finally {
      await browser.close()
    }
  }

  for (const sendsEmail of [false, true])
    test(`[PASSKEY-1] register and sign in ${sendsEmail ? 'with' : 'without'} an email`, async () => {
      const person = await signUp(server)
      const { registered, signedIn } = await inBrowser(person, sendsEmail ? person.email : null)
      expect(registered).toMatchObject({ status: 201, body: { passkey: { name: 'Browser' } } })
      expect(signedIn.status).toBe(200)
      expect(signedIn.body.user.id).toBe(person.id)
    })
})
