/** The area "Users" in a real browser, against a real server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { describeInBrowser } from '../../../../server/tests/harness/processes/chromium.ts'
import { adminUsers, auth } from '../../../../server/tests/harness/users/accounts.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../../harness/browser.ts'
import { startDashboardServer, type TestServer } from '../../harness/dashboard.ts'
import { openSignedIn, type SignedIn } from '../../harness/signed-in.ts'

const password = 'a password of an application user'
const payload = '<img src=x onerror="alert(1)">'

describeInBrowser('Users in the dashboard', 'users in the dashboard', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  beforeAll(async () => {
    server = await startDashboardServer({})
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  async function createUser(email: string, fields: object = {}): Promise<string> {
    const created = await server.service.post(adminUsers, { email, password, ...fields })
    expect(created.status).toBe(201)
    return created.body.user.id
  }
  const userOf = async (id: string) => (await server.service.get(`${adminUsers}/${id}`)).body

  test('a user is found, changed and disabled, and the change undone', async () => {
    const { page } = sheet
    const id = await createUser('grace.hopper@example.com', { displayName: 'Grace Hopper' })
    const userAgent = 'Mozilla/5.0 (X11; Linux x86_64) Firefox/153.0'
    await server.anonymous.post(
      `${auth}/signin`,
      { email: 'grace.hopper@example.com', password },
      { 'user-agent': userAgent },
    )
    await sheet.open('/users', 'Users')
    await takeScreenshots(sheet, 'users')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('searchbox').fill('grace')
    await page.getByRole('button', { name: /Grace Hopper/ }).click()
    await page.getByRole('heading', { level: 1, name: 'Grace Hopper' }).waitFor()
    await page.getByText('Firefox on Linux').waitFor()
    await takeScreenshots(sheet, 'user', { fullPage: true })
    expect(await findBarriers(sheet)).toEqual([])

    await page.getByLabel('Display name').fill('Rear Admiral Hopper')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { level: 1, name: 'Rear Admiral Hopper' }).waitFor()
    expect(await userOf(id)).toMatchObject({ displayName: 'Rear Admiral Hopper' })

    await page.getByRole('textbox', { name: 'Claims' }).fill('{"plan": "pro"')
    expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
    await page.getByRole('textbox', { name: 'Claims' }).fill('{"plan": "pro"}')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Claims saved').waitFor()
    expect(await userOf(id)).toMatchObject({ customClaims: { plan: 'pro' } })

    await page.getByRole('button', { name: 'End this session' }).click()
    await page.getByText('Not signed in anywhere').waitFor()

    await page.getByRole('button', { name: 'Disable', exact: true }).click()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('button', { name: 'Disable', exact: true }).waitFor()
    expect(await userOf(id)).toMatchObject({ disabled: false })
    expectNoFaults(sheet)
  })

  test('a user is invited, and deleted after the address is typed', async () => {
    const { page } = sheet
    await sheet.open('/users', 'Users')
    await page.getByRole('button', { name: 'New user' }).click()
    await page.getByRole('textbox', { name: 'Email', exact: true }).fill('invited@example.com')
    await takeScreenshots(sheet, 'users-new')
    await page.getByRole('button', { name: 'Invite', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'invited@example.com' }).waitFor()
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Delete user…' }).click()
    const confirm = page.getByRole('dialog').getByRole('button', { name: 'Delete user' })
    expect(await confirm.isDisabled()).toBe(true)
    await page.getByRole('dialog').getByRole('textbox').fill('invited@example.com')
    await confirm.click()
    await page.getByRole('heading', { level: 1, name: 'Users' }).waitFor()
    const found = await server.service.get(`${adminUsers}?email=invited@example.com`)
    expect(found.body.users).toEqual([])
    expectNoFaults(sheet)
  })

  test('markup in names, user agents and claims stays text', async () => {
    const { page } = sheet
    const id = await createUser('markup@example.com', { displayName: payload })
    await server.anonymous.post(`${auth}/signin`, { email: 'markup@example.com', password }, { 'user-agent': payload })
    await server.service.request('PUT', `${adminUsers}/${id}/claims`, { body: { note: payload } })
    await server.service.patch(`${adminUsers}/${id}`, { metadata: { [payload]: payload }, role: 'editor' })
    await sheet.open('/users', 'Users')
    await page.getByText(payload).first().waitFor()
    await sheet.open(`/users/${id}`, payload)
    await page.getByText('used just now').waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expectNoFaults(sheet)
  })

  test('a viewer sees users and no action', async () => {
    const id = await createUser('seen@example.com')
    const viewer = await openSignedIn(browser, server, { role: 'viewer' })
    await viewer.open(`/users/${id}`, 'seen@example.com')
    await viewer.page.getByText('Not signed in anywhere').waitFor()
    for (const name of ['Disable', 'More actions', 'Save'])
      expect(await viewer.page.getByRole('button', { name }).count()).toBe(0)
    expect(await viewer.page.getByLabel('Display name').isDisabled()).toBe(true)
    expectNoFaults(viewer)
    await viewer.close()
  })
})
