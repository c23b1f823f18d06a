/** The area "Push" in a real browser: a message with a preview, a confirmation, and its results. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import type { Browser } from 'playwright-core'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { openPushEndpoint } from '../../../server/tests/harness/push/push-endpoint.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { startDashboardServer, type TestServer } from '../harness/dashboard.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'
import { xssPayloads } from '../harness/xss-payloads.ts'

const ecdh = createECDH('prime256v1')
const publicKey = ecdh.generateKeys('base64url')
const privateKey = Buffer.from(ecdh.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url')

describeInBrowser('Push in the dashboard', 'push in the dashboard', (program) => {
  const pushes = openPushEndpoint(publicKey, { now: () => Date.now() })
  const vapid = { subject: 'mailto:ops@example.com', publicKey, privateKey, localServices: [pushes.origin] }
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  const phone = pushes.subscribe()
  beforeAll(async () => {
    server = await startDashboardServer({ push: { vapid }, rateLimits: { push: { requests: 1_000_000 } } })
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server)
    for (const [user, { token }] of [
      ['ann', phone],
      ['bob', pushes.subscribe()],
    ] as const)
      expect((await server.as(user).post('/api/push/register', { deviceId: 'd', token, platform: 'web' })).status).toBe(
        200,
      )
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
    await pushes.close()
  })

  test('a message to a user is previewed, confirmed and sent, and its result is in the log', async () => {
    const { page } = sheet
    await sheet.open('/push', 'Push')
    await page.getByText('No messages in the last 24 hours').waitFor()
    await page.getByLabel('User id').first().fill('unknown-user')
    await page.getByText('No device would receive it.').waitFor()
    expect(await page.getByRole('button', { name: 'Send…' }).isDisabled()).toBe(true)
    await page.getByLabel('User id').first().fill('ann')
    await page.getByText('Reaches 1 device (1 web).').waitFor()
    await page.getByLabel('Title').fill('Your move')
    await page.getByLabel('Text').fill('Bob has accepted your queen.')
    await page.getByLabel('Link').fill('https://app.example.org/games/7')
    await page.getByLabel('Data').fill('{"game": 7')
    expect(await page.getByRole('button', { name: 'Send…' }).isDisabled()).toBe(true)
    await page.getByLabel('Data').fill('{"game": 7}')
    await page.locator('.push-preview').getByText('Bob has accepted your queen.').waitFor()
    await takeScreenshots(sheet, 'push')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('button', { name: 'Send…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Send this message?' })
    await dialog.getByText('goes to 1 device (1 web)').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await dialog.getByRole('button', { name: 'Send message' }).click()
    await page.getByText('Sent to 1 of 1 devices').waitFor()
    await page.getByRole('table', { name: 'Messages' }).getByText('Your move').waitFor()
    expect(phone.taken.map(({ json }) => json)).toEqual([
      {
        title: 'Your move',
        body: 'Bob has accepted your queen.',
        data: { game: 7, url: 'https://app.example.org/games/7' },
      },
    ])
    await takeScreenshots(sheet, 'push-sent', { fullPage: true })
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
  })

  test('a message to all devices needs the typed confirmation', async () => {
    const { page } = sheet
    await sheet.open('/push', 'Push')
    await page.getByRole('combobox', { name: 'To' }).click()
    await page.getByRole('option', { name: 'All devices' }).click()
    await page.getByText('Reaches 2 devices (2 web).').waitFor()
    await page.getByLabel('Title').fill('To everyone')
    await page.getByLabel('Text').fill('The games begin at eight.')
    await page.getByRole('button', { name: 'Send…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Send this message?' })
    expect(await dialog.getByRole('button', { name: 'Send message' }).isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill('all devices')
    await takeScreenshots(sheet, 'push-confirm')
    await dialog.getByRole('button', { name: 'Send message' }).click()
    await page.getByText('The message is being sent').waitFor()
    const table = page.getByRole('table', { name: 'Messages' })
    await page.getByRole('button', { name: 'Reload the log' }).click()
    await table.getByText('To everyone').first().waitFor()
    expectNoFaults(sheet)
  })

  test('titles and texts that look like markup are shown as text', async () => {
    const { page } = sheet
    let executed = 0
    await page.exposeFunction('xss', () => void executed++)
    for (const text of xssPayloads)
      await server.service.post('/api/push/send', { userId: 'ann', title: text, body: text })
    await sheet.open('/push', 'Push')
    await page
      .getByText(xssPayloads.at(-1) as string)
      .first()
      .waitFor()
    for (const text of xssPayloads.slice(0, 12)) {
      await page.getByLabel('Title').fill(text)
      await page.getByLabel('Text').fill(text)
      await page.getByLabel('Link').fill(text)
    }
    expect(executed).toBe(0)
    expectNoFaults(sheet)
  })

  test('a viewer sees the log and cannot send', async () => {
    const viewer = await openSignedIn(browser, server, { role: 'viewer' })
    try {
      await viewer.open('/push', 'Push')
      await viewer.page.getByRole('table', { name: 'Messages' }).waitFor()
      expect(await viewer.page.getByRole('button', { name: 'Send…' }).count()).toBe(0)
      expectNoFaults(viewer)
    } finally {
      await viewer.close()
    }
  })
})
