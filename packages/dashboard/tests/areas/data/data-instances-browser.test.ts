/** The choice of an instance, and what leads from record to record. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { open } from '../../../../server/tests/harness/config.ts'
import { describeInBrowser } from '../../../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, type Sheet, takeScreenshots } from '../../harness/browser.ts'
import { startDashboardServer, type TestServer } from '../../harness/dashboard.ts'
import { openSignedIn } from '../../harness/signed-in.ts'

const config = {
  databases: {
    workspace: {
      instance: true,
      access: () => true,
      tables: { tasks: { schema: { text: { type: 'string' } }, access: open } },
    },
  },
} as const
const tenants = Array.from({ length: 70 }, (_, at) => `tenant-${String(at).padStart(3, '0')}`)

describeInBrowser('Instances in the dashboard', 'the instances of Data', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: Sheet
  let page: Page
  beforeAll(async () => {
    server = await startDashboardServer(config)
    for (const id of [...tenants, 'acme', 'Big.Corp'])
      await server.service.post(`/api/db/workspace/${id}/tables/tasks`, { id: 't1', text: `Task of ${id}` })
    browser = await openBrowser(program)
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
  })
  beforeEach(async () => {
    sheet = await openSignedIn(browser, server)
    page = sheet.page
  })
  afterEach(() => sheet.close())

  const box = () => page.getByRole('textbox', { name: 'Instance of workspace' })
  const choice = (id: string) => page.locator('.data-instance', { has: page.getByText(id, { exact: true }) })

  test('an instance is found by its beginning, by a part, by paging, or opened by its id', async () => {
    await page.goto(`${server.url}/dashboard/data/workspace`)
    await choice('acme').first().waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-instances')
    await page.getByRole('button', { name: 'More' }).click()
    await choice('tenant-050').waitFor()
    await box().fill('tenant-06')
    await choice('tenant-069').waitFor()
    await choice('acme').first().waitFor({ state: 'detached' })
    await box().fill('orp')
    await page.getByText('None has data.', { exact: false }).waitFor()
    await page.getByRole('checkbox', { name: 'Anywhere in the id' }).click({ force: true })
    await choice('Big.Corp').click()
    await page.getByRole('link', { name: 'tasks' }).click()
    await page.getByRole('gridcell', { name: 'Task of Big.Corp' }).waitFor()
    await box().fill('a b/../c')
    await page.getByText('Ids have letters', { exact: false }).waitFor()
    await box().fill('not-there-yet')
    await page.keyboard.press('Enter')
    await page.getByText('No records yet').waitFor()
    expect(page.url()).toContain('/data/workspace/not-there-yet/tasks')
    await box().click()
    await page.getByRole('list', { name: 'Instances: In use' }).getByText('Big.Corp').click()
    await page.getByRole('gridcell', { name: 'Task of Big.Corp' }).waitFor()
    expectNoFaults(sheet)
  })
})
