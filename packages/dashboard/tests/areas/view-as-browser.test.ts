/** Viewing as a user in a real browser: the frame, the data and files, and that every tab shows it. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { store } from '../../../server/tests/harness/storage/files.ts'
import { adminUsers } from '../../../server/tests/harness/users/accounts.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { startDashboardServer, type TestServer } from '../harness/dashboard.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'

type Auth = { readonly id: string } | null
const text = { type: 'string' } as const
const config = {
  databases: {
    shared: {
      tables: {
        orders: {
          schema: { buyer: text, item: text, margin: text },
          hidden: ['margin'],
          access: { read: (auth: Auth) => auth !== null && { buyer: auth.id } },
        },
        internal: { schema: { note: text } },
      },
    },
  },
  storage: {
    buckets: {
      letters: {
        access: {
          write: true,
          read: (auth: Auth) => auth !== null && { uploadedBy: auth.id },
        },
      },
    },
  },
} as const

describeInBrowser('Viewing as a user in the dashboard', 'viewing as a user', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  let annId = ''
  beforeAll(async () => {
    server = await startDashboardServer(config)
    browser = await openBrowser(program)
    const created = await server.service.post(adminUsers, { email: 'ann@example.com', password: 'a long password' })
    annId = created.body.user.id
    for (const [id, buyer, item] of [
      ['o1', annId, 'Globe'],
      ['o2', 'bob', 'Sextant'],
    ])
      await server.service.post('/api/db/shared/tables/orders', { id, buyer, item, margin: 'forty percent' })
    for (const user of [annId, 'bob'])
      await store(server.as(user), 'letters', { key: `${user}.txt`, content: `of ${user}`, type: 'text/plain' })
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })
  beforeEach(async () => {
    sheet = await openSignedIn(browser, server)
  })
  afterEach(() => sheet.close())

  const frameOf = (page: Page) => page.locator('.shell.is-viewing')
  const pillOf = (page: Page) => page.getByRole('region', { name: 'Viewing as a user' })
  const start = async (page: Page): Promise<void> => {
    await sheet.open(`/users/${annId}`, 'ann@example.com')
    await page.getByRole('button', { name: 'View as user' }).click()
    await pillOf(page).waitFor()
  }

  test('data and files are those of the user, nothing can be changed, and the whole frame says so', async () => {
    const { page } = sheet
    await sheet.open('/data/shared/orders', 'orders')
    await page.getByRole('gridcell', { name: 'Sextant' }).waitFor()
    await page.getByRole('gridcell', { name: 'forty percent' }).first().waitFor()
    await start(page)
    await page.waitForURL(/\/dashboard\/data$/)
    expect(await pillOf(page).textContent()).toContain('Viewing as ann@example.com')
    expect(await frameOf(page).evaluate((shell) => getComputedStyle(shell, '::after').borderTopWidth)).toBe('5px')
    expect(await page.getByRole('navigation', { name: 'Areas' }).getByRole('listitem').allTextContents()).toEqual([
      'Data',
      'Files',
    ])
    await page.getByRole('link', { name: 'orders' }).click()
    await page.getByRole('gridcell', { name: 'Globe' }).waitFor()
    expect(await page.getByRole('gridcell', { name: 'Sextant' }).count()).toBe(0)
    expect(await page.getByText('forty percent').count()).toBe(0)
    expect(await page.getByRole('columnheader', { name: 'margin' }).count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Insert' }).count()).toBe(0)
    await page.getByRole('gridcell', { name: 'Globe' }).dblclick()
    expect(await page.getByRole('textbox', { name: 'item of o1' }).count()).toBe(0)
    await sheet.open('/data/shared/orders', 'orders')
    await page.getByRole('gridcell', { name: 'Globe' }).waitFor()
    await takeScreenshots(sheet, 'view-as-data')
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)

    // The rule of this table refuses, and the page shows what the user would get.
    sheet.allow(/403/)
    await page.getByRole('link', { name: 'internal' }).click()
    await page.getByText('Access denied').first().waitFor()
    await takeScreenshots(sheet, 'view-as-denied')

    await sheet.open('/files/letters', 'letters')
    await page.getByText(`${annId}.txt`).waitFor()
    expect(await page.getByText('bob.txt').count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Upload' }).count()).toBe(0)
    await page.getByText(`${annId}.txt`).click()
    await page.getByText(`of ${annId}`).waitFor()
    expect(await page.getByRole('button', { name: 'Copy signed link' }).count()).toBe(0)
    await takeScreenshots(sheet, 'view-as-files')
    expect(await findBarriers(sheet)).toEqual([])

    await page.goto(`${server.url}/dashboard/users`)
    await page.getByText('Users has no view of a user').waitFor()
    await pillOf(page).getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('heading', { level: 1, name: 'ann@example.com' }).waitFor()
    expect(await frameOf(page).count()).toBe(0)
    await sheet.open('/data/shared/orders', 'orders')
    await page.getByRole('gridcell', { name: 'Sextant' }).waitFor()
    expectNoFaults(sheet)
  })

  test('another tab of the session shows the frame before any of the data, and leaves it when the view ends', async () => {
    const { page, context } = sheet
    const other = await context.newPage()
    await other.goto(`${server.url}/dashboard/data/shared/orders`)
    await other.getByRole('gridcell', { name: 'Sextant' }).waitFor()
    await start(page)
    await other.getByRole('link', { name: 'internal' }).click()
    await pillOf(other).waitFor()
    await other.goto(`${server.url}/dashboard/data/shared/orders`)
    await other.getByRole('gridcell', { name: 'Globe' }).waitFor()
    await pillOf(page).getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('heading', { level: 1, name: 'ann@example.com' }).waitFor()
    await other.getByRole('button', { name: 'Reload' }).click()
    await frameOf(other).waitFor({ state: 'detached' })
    await other.getByRole('gridcell', { name: 'Sextant' }).waitFor()
    await other.close()
  })

  test('a change in a tab that has not noticed yet is refused, and the tab shows the view', async () => {
    const { page, context } = sheet
    const other = await context.newPage()
    await other.goto(`${server.url}/dashboard/data/shared/orders?new=1`)
    await other.getByRole('textbox', { name: 'item' }).fill('Written in the wrong tab')
    await start(page)
    await other.getByRole('button', { name: 'Insert', exact: true }).last().click()
    await pillOf(other).waitFor()
    await other.getByRole('gridcell', { name: 'Globe' }).waitFor()
    expect(await other.getByRole('dialog').count()).toBe(0)
    const { body } = await server.service.get('/api/db/shared/tables/orders')
    expect(body.items.map(({ item }: { item: string }) => item)).not.toContain('Written in the wrong tab')
    await pillOf(page).getByRole('button', { name: 'Stop' }).click()
    await frameOf(page).waitFor({ state: 'detached' })
    await other.close()
  })
})
