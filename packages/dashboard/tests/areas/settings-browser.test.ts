/** The area "Settings" in a real browser, against a real server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { createAdministrator } from '../../../server/tests/harness/dashboard/administrators.ts'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { adminUsers } from '../../../server/tests/harness/users/accounts.ts'
import { mailAuth } from '../../../server/tests/harness/users/mail-config.ts'
import { type Mailbox, openMailbox } from '../../../server/tests/harness/users/mailbox.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { startDashboardServer, type TestServer } from '../harness/dashboard.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'

const payload = '<img src=x onerror=alert(1)>'

describeInBrowser('Settings in the dashboard', 'settings in the dashboard', (program) => {
  let browser: Browser
  let mailbox: Mailbox
  let server: TestServer
  let sheet: SignedIn
  beforeAll(async () => {
    mailbox = await openMailbox()
    const templates = { de: { 'magic-link': { subject: `Anmelden ${payload}`, text: `${payload}\n\n{{link}}\n` } } }
    server = await startDashboardServer({
      auth: { mail: { ...mailAuth(mailbox).mail, templates } },
      changes: { retention: '2d' },
      serviceKeys: [{ name: 'worker', key: 'key-of-a-worker-0123456789', scopes: ['db:table:*:read', 'push:*:*:*'] }],
    })
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
    await mailbox?.close()
  })

  test('the audit log shows what was changed, as text, and its chain is verified', async () => {
    const { page } = sheet
    const { client, email } = sheet.administrator
    const created = await client.post('/api/auth/admin/users', {
      email: 'audited@example.com',
      password: 'a long password',
    })
    const id = created.body.user.id
    expect((await client.patch(`${adminUsers}/${id}`, { displayName: payload })).status).toBe(200)
    await sheet.open('/settings?tab=audit', 'Settings')
    await page.getByRole('button', { name: 'admin.updateUser' }).first().waitFor()
    await page.getByRole('searchbox', { name: /Action/ }).fill('admin.updateUser')
    await page.waitForURL(/action=admin.updateUser/)
    await page.getByRole('row', { name: new RegExp(`admin.updateUser.*${email}`) }).waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('button', { name: 'Verify the chain' }).click()
    await page.getByText('none changed or removed').waitFor()
    await takeScreenshots(sheet, 'settings-audit')
    await page.getByRole('button', { name: 'admin.updateUser' }).first().click()
    await page.getByRole('dialog').getByText(payload).first().waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'settings-audit-entry')
    await page.keyboard.press('Escape')
    expectNoFaults(sheet)
  })

  test('an administrator loses access after a confirmation, and the last owner does not', async () => {
    const { page } = sheet
    const { email } = await createAdministrator(server, 'support')
    await sheet.open('/settings', 'Settings')
    await page.getByRole('button', { name: `Remove access of ${email}` }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove access' }).click()
    await page.getByRole('button', { name: `Remove access of ${email}` }).waitFor({ state: 'detached' })
    await takeScreenshots(sheet, 'settings-administrators')
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
    sheet.allow(/409/)
    await page.getByRole('button', { name: `Remove access of ${sheet.administrator.email}` }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove access' }).click()
    await page.getByText('The last owner must stay one').waitFor()
    expectNoFaults(sheet)
  })

  test('the server shows its engines, limits and retention', async () => {
    const { page } = sheet
    await sheet.open('/settings?tab=server', 'Settings')
    const retention = page.getByRole('table', { name: 'Retention' })
    await retention.getByRole('row', { name: /Change log.*2 days, at most 1 GiB in each database.*changes/ }).waitFor()
    await page.getByText('Atlas', { exact: true }).waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'settings-server', { height: 1400 })
    expectNoFaults(sheet)
  })

  test('service keys are listed, and a new one is made in the page alone', async () => {
    const { page } = sheet
    await sheet.open('/settings?tab=keys', 'Settings')
    await page.getByRole('row', { name: /worker serviceKeys db:table:\*:read push:\*:\*:\* Never/ }).waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'settings-keys')
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByText('A key has this name.').waitFor()
    const requests: string[] = []
    page.on('request', (request) => requests.push(`${request.method()} ${request.url()} ${request.postData()}`))
    await page.getByRole('textbox', { name: 'Name' }).fill('night-worker')
    const variable = page.getByText(/^NIGHT_WORKER_KEY=[\w-]{43}$/)
    await variable.waitFor()
    const key = (await variable.textContent())?.split('=')[1] ?? ''
    await page.getByText("name: 'night-worker'").waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'settings-new-key')
    expect(key).toHaveLength(43)
    expect(requests.filter((request) => request.includes(key) || request.startsWith('POST'))).toEqual([])
    await page.keyboard.press('Escape')
    expectNoFaults(sheet)
  })

  test('a mail is shown in each of its languages in a frame that runs nothing, and sent as a test', async () => {
    const { page } = sheet
    await sheet.open('/settings?tab=mails', 'Settings')
    const frame = page.frameLocator('iframe')
    await frame.getByRole('link', { name: 'Sign in to Atlas' }).waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'settings-mails', { height: 1000 })
    await page.getByRole('combobox', { name: 'Language' }).click()
    await page.getByRole('option', { name: 'German' }).click()
    await page.waitForURL(/language=de/)
    await frame.getByText(payload, { exact: true }).first().waitFor()
    expect(await frame.locator('img').count()).toBe(0)
    expect(await page.locator('iframe').getAttribute('sandbox')).toBe('')
    await page.getByRole('button', { name: 'Send to me' }).click()
    await page.getByText(`Sent to ${sheet.administrator.email}`).waitFor()
    expect((await mailbox.next(sheet.administrator.email)).subject).toBe(`Anmelden ${payload}`)
    await page.getByRole('combobox', { name: 'Form' }).click()
    await page.getByRole('option', { name: 'Plain text' }).click()
    await page.getByText('https://app.example.org/magic?token=').waitFor()
    expectNoFaults(sheet)
  })

  test('a viewer sees both and changes nothing', async () => {
    const viewer = await openSignedIn(browser, server, { role: 'viewer' })
    await viewer.open('/settings', 'Settings')
    await viewer.page.getByRole('table', { name: 'Administrators' }).waitFor()
    expect(await viewer.page.getByRole('button', { name: /Remove access/ }).count()).toBe(0)
    expectNoFaults(viewer)
    await viewer.close()
  })
})
