/** The area "Home" in a real browser, against a real server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { buildDashboard } from '../../../../scripts/build/dashboard.ts'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { unlimitedRates } from '../../../server/tests/harness/users/accounts.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'

type Auth = { id: string } | null
const text = { type: 'string' } as const
const config = {
  rateLimits: unlimitedRates,
  databases: {
    shared: {
      tables: {
        guestbook: { schema: { text }, access: { read: true, insert: true } },
        news: { schema: { title: text }, access: { read: true } },
        orders: {
          schema: { customerId: text, status: text, at: { type: 'datetime' } },
          indexes: [{ fields: ['status'] }, { fields: ['status', 'at'] }],
          access: { read: (auth: Auth) => auth && { customerId: auth.id } },
        },
      },
    },
  },
} as const

describeInBrowser('Home of the dashboard', 'the first page of the dashboard', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  beforeAll(async () => {
    await buildDashboard()
    server = await startServer({ config })
    browser = await openBrowser(program)
    for (let page = 0; page < 6; page++) {
      const inserts = Array.from({ length: 200 }, (_, at) => ({ customerId: `c${at % 40}`, status: 'open' }))
      await server.service.post('/api/db/shared/tables/orders/batch', { inserts })
    }
    for (let at = 0; at < 40; at++) await server.as('c1').get('/api/db/shared/tables/orders?sort=at:desc')
    sheet = await openSignedIn(browser, server)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  test('[SYS-27] advice has its reason and the code to copy, and is dismissed for a while', async () => {
    const { page } = sheet
    await sheet.open('/', 'Home')
    const open = page.locator('summary', { hasText: 'Anyone can create records' })
    await open.click()
    await page.getByText('a script can fill, change or empty it').waitFor()
    await page.getByText('insert: (auth) => auth && { userId: auth.id },').waitFor()
    await page.getByText('Lists would use an index on customerId, at').waitFor()
    await page.getByRole('img', { name: 'Requests of the last hour by minute' }).waitFor()
    await takeScreenshots(sheet, 'home-advice', { height: 1000 })
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('button', { name: 'Dismiss for 7 days' }).first().click()
    await open.waitFor({ state: 'detached' })
    await page.reload()
    await page.getByText('Lists would use an index on customerId, at').waitFor()
    await page.getByRole('button', { name: 'Show 1 dismissed' }).click()
    await open.waitFor()
    await open.click()
    await page.locator('details[open]').getByRole('link', { name: 'Open' }).click()
    await page.waitForURL(/rules\/matrix\?search=guestbook/)
    expectNoFaults(sheet)
  })

  test('another administrator has not dismissed it, and a viewer cannot', async () => {
    const viewer = await openSignedIn(browser, server, { role: 'viewer' })
    await viewer.open('/', 'Home')
    const open = viewer.page.locator('summary', { hasText: 'Anyone can create records' })
    await open.click()
    await viewer.page.getByText('a script can fill').waitFor()
    expect(await viewer.page.getByRole('button', { name: 'Dismiss for 7 days' }).count()).toBe(0)
    expectNoFaults(viewer)
    await viewer.close()
  })

  test('a server without tables shows the first steps', async () => {
    const empty = await startServer({ config: { rateLimits: unlimitedRates } })
    const owner = await openSignedIn(browser, empty)
    try {
      await owner.open('/', 'Home')
      await owner.page.getByText('Your first table').waitFor()
      await owner.page.getByText(`'${empty.url}',`).waitFor()
      await takeScreenshots(owner, 'home-empty', { height: 1000 })
      expect(await findBarriers(owner)).toEqual([])
      expectNoFaults(owner)
    } finally {
      await owner.close()
      await empty.close()
    }
  })
})
