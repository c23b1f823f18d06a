/** Passkeys and second factors in a real browser: the virtual authenticator of Chromium, and codes of an app. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { createAdministrator } from '../../server/tests/harness/dashboard/administrators.ts'
import { describeInBrowser, virtualAuthenticator } from '../../server/tests/harness/processes/chromium.ts'
import { codeOf } from '../../server/tests/harness/users/test-user.ts'
import { expectNoFaults, findBarriers, openBrowser, openSheet, type Sheet, takeScreenshots } from './harness/browser.ts'
import { startDashboardServer, type TestServer } from './harness/dashboard.ts'
import { readQrCode } from './harness/qr-code.ts'

/** An authenticator that has no passkey yet and confirms by itself. */
async function addAuthenticator({ context, page }: Sheet) {
  const session = await context.newCDPSession(page)
  await session.send('WebAuthn.enable')
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: virtualAuthenticator,
  })
  return {
    /** Whether the person confirms, as with a finger. */
    setVerified: (isUserVerified: boolean) =>
      session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
    credentials: async () => (await session.send('WebAuthn.getCredentials', { authenticatorId })).credentials,
  }
}

/** Runs in the page: registers a passkey with the token of a user, as an application does. */
async function registerPasskey(token: string): Promise<number> {
  const post = async (path: string, body?: object): Promise<Response> =>
    fetch(`/api/auth/passkeys/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, ...(body ? { 'Content-Type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
  const { options } = (await (await post('register-options')).json()) as {
    options: PublicKeyCredentialCreationOptionsJSON
  }
  const created = await navigator.credentials.create({
    publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
  })
  return (await post('register', { response: (created as PublicKeyCredential).toJSON(), name: 'Laptop' })).status
}

describeInBrowser('Signing in to the dashboard', 'signing in to the dashboard', (program) => {
  let browser: Browser
  let sheet: Sheet
  beforeAll(async () => {
    browser = await openBrowser(program)
  })
  afterAll(() => browser.close())
  beforeEach(async () => {
    sheet = await openSheet(browser)
    // Without a session, the page learns it from a refusal.
    sheet.allow(/401 GET .*\/api\/session/)
    sheet.allow(/status of 401/)
  })
  afterEach(() => sheet.close())

  const fill = async (page: Page, { email, password }: { email: string; password: string }): Promise<void> => {
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  }
  const signOut = async (page: Page): Promise<void> => {
    await page.getByRole('button', { name: /^Account of/ }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to Plinth' }).waitFor()
  }
  const atHome = (page: Page): Promise<void> => page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()

  test('[DASH-8] a passkey signs in alone, also where a second factor is required', async () => {
    const { page } = sheet
    const server = await startDashboardServer({ dashboard: { requireMfa: true } })
    try {
      // Passkeys belong to a host name.
      const url = server.url.replace('127.0.0.1', 'localhost')
      const owner = await createAdministrator(server, 'owner')
      const authenticator = await addAuthenticator(sheet)
      await page.goto(`${url}/dashboard`)
      await page.getByRole('heading', { name: 'Sign in to Plinth' }).waitFor()
      const { email, password } = owner
      const { body } = await server.anonymous.post('/api/auth/signin', { email, password })
      expect(await page.evaluate(registerPasskey, body.accessToken)).toBe(201)
      expect(await authenticator.credentials()).toHaveLength(1)

      await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
      await atHome(page)
      expect((await server.service.get(`/api/auth/admin/users/${owner.id}/credentials`)).body.passkeys).toMatchObject([
        { name: 'Laptop', lastUsedAt: expect.any(String) },
      ])
      await signOut(page)
      expectNoFaults(sheet)

      // Who does not confirm is not signed in, and may try again.
      await authenticator.setVerified(false)
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
      await page.getByText('No passkey was used.').waitFor()
      await takeScreenshots(sheet, 'sign-in-passkey-canceled')
      expect(await findBarriers(sheet)).toEqual([])
      await authenticator.setVerified(true)
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
      await atHome(page)

      // A passkey that the server no longer knows is refused.
      await signOut(page)
      const passkeys = (await server.service.get(`/api/auth/admin/users/${owner.id}/credentials`)).body.passkeys
      const token = (await server.anonymous.post('/api/auth/signin', { email, password })).body.accessToken
      const removed = await server.anonymous.delete(`/api/auth/passkeys/${passkeys[0].id}`, {
        authorization: `Bearer ${token}`,
      })
      expect(removed.status).toBe(200)
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
      await page.getByText('The passkey was not accepted.').waitFor()
      expect(await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]))).toBe('[{},{}]')
    } finally {
      await server.close()
    }
  })

  test('[DASH-8] where a second factor is required, the first sign-in enrolls an authenticator app', async () => {
    const { page } = sheet
    const server: TestServer = await startDashboardServer({}, { mode: 'release' })
    try {
      const owner = await createAdministrator(server, 'owner')
      await page.goto(`${server.url}/dashboard`)
      await fill(page, owner)
      await page.getByText('This server requires a second factor').waitFor()
      const qrCode = page.getByRole('img', { name: 'QR code of the key below, for an authenticator app' })
      await qrCode.waitFor()
      await takeScreenshots(sheet, 'enroll-factor')
      expect(await findBarriers(sheet)).toEqual([])
      const [key = '', codes = ''] = await page.locator('pre').allTextContents()
      const secret = key.replaceAll(/\s/g, '')
      expect(secret).toMatch(/^[A-Z2-7]{32}$/)
      const link = await page.getByRole('link', { name: 'open it on this device' }).getAttribute('href')
      expect(link).toStartWith(`otpauth://totp/`)
      expect(link).toContain(secret)
      expect(await readQrCode(qrCode)).toBe(link ?? '')
      expect(await page.getByRole('button', { name: 'Continue' }).isDisabled()).toBe(true)
      await page.getByRole('checkbox', { name: 'I have stored the recovery codes' }).check()
      await page.getByRole('button', { name: 'Continue' }).click()

      await page.getByLabel('Code of your authenticator app').fill('000000')
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByText('The code is wrong or was used before.').waitFor()
      await takeScreenshots(sheet, 'sign-in-code')
      expect(await findBarriers(sheet)).toEqual([])
      await page.getByLabel('Code of your authenticator app').fill(codeOf(secret, Date.now()))
      await page.keyboard.press('Enter')
      await atHome(page)
      expect((await server.service.get(`/api/auth/admin/users/${owner.id}/credentials`)).body.factor).not.toBeNull()
      await signOut(page)

      // From now on the app is required; a recovery code replaces it once.
      const recovery = codes.split('\n')[0] ?? ''
      for (const [at, shown] of [
        [0, null],
        [1, 'The code is wrong or was used before.'],
      ] as const) {
        await fill(page, owner)
        await page.getByLabel('Code of your authenticator app').waitFor()
        await page.getByRole('button', { name: 'Use a recovery code' }).click()
        await page.getByLabel('Recovery code').fill(recovery)
        await page.keyboard.press('Enter')
        if (shown === null) {
          await atHome(page)
          await signOut(page)
        } else await page.getByText(shown).waitFor()
        expect(at).toBeLessThan(2)
      }
      await page.getByRole('button', { name: 'Back' }).click()
      await page.getByLabel('Email').waitFor()
    } finally {
      await server.close()
    }
  })

  test('a passkey continues a session that has ended', async () => {
    const { page } = sheet
    const server = await startDashboardServer({})
    try {
      const url = server.url.replace('127.0.0.1', 'localhost')
      const owner = await createAdministrator(server, 'owner')
      await addAuthenticator(sheet)
      await page.goto(`${url}/dashboard`)
      await fill(page, owner)
      await atHome(page)
      const { email, password } = owner
      const { body } = await server.anonymous.post('/api/auth/signin', { email, password })
      expect(await page.evaluate(registerPasskey, body.accessToken)).toBe(201)
      // The session ends; the dialog over the page takes the passkey.
      await sheet.context.clearCookies()
      await page.getByRole('link', { name: 'Users', exact: true }).click()
      const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
      await dialog.getByRole('button', { name: 'Sign in with a passkey' }).click()
      await dialog.waitFor({ state: 'detached' })
      await page.getByText(email).first().waitFor()
    } finally {
      await server.close()
    }
  })
})
