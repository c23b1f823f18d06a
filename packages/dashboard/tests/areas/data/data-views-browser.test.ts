/** Saved views of a table: names, the one that is shown first, the order and the widths of columns. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { open } from '../../../../server/tests/harness/config.ts'
import { describeInBrowser } from '../../../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, openSheet, takeScreenshots } from '../../harness/browser.ts'
import { setSession, signIn, startDashboardServer, type TestServer } from '../../harness/dashboard.ts'

const config = {
  databases: {
    shared: {
      tables: {
        notes: {
          schema: { title: { type: 'string' }, status: { type: 'string' }, views: { type: 'number' } },
          access: open,
        },
      },
    },
  },
} as const

describeInBrowser('Views of the dashboard', 'the saved views of Data', (program) => {
  let browser: Browser
  let server: TestServer
  beforeAll(async () => {
    server = await startDashboardServer(config)
    const inserts = Array.from({ length: 12 }, (_, at) => ({
      id: `n${at}`,
      title: `Note ${at}`,
      status: at % 2 ? 'open' : 'closed',
      views: at,
    }))
    await server.service.post('/api/db/shared/tables/notes/batch', { inserts })
    browser = await openBrowser(program)
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
  })

  const path = (query = ''): string => `${server.url}/dashboard/data/shared/notes${query}`
  const headings = (page: Page): Promise<string[]> => page.locator('.data-heading-name').allTextContents()
  const savedTo = (page: Page, name: string) =>
    page.waitForResponse((response) => response.url().endsWith(`/${name}`) && response.request().method() === 'PUT')

  test('a view is saved, shown first, renamed and deleted; another administrator has none', async () => {
    const sheet = await openSheet(browser)
    const { page } = sheet
    await signIn(sheet, server)
    await page.goto(path())
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByRole('checkbox', { name: 'views' }).click({ force: true })
    await page.getByRole('button', { name: 'Move status to the left' }).click()
    expect(await findBarriers(sheet)).toEqual([])
    await page.keyboard.press('Escape')
    await page.getByRole('columnheader', { name: 'title' }).getByRole('button').click()
    await page.waitForURL(/sort=title/)
    const shown = ['id', 'status', 'title', 'createdAt', 'updatedAt']
    expect(await headings(page)).toEqual(shown)
    const search = new URL(page.url()).search

    await page.getByRole('button', { name: 'Views', exact: true }).click()
    await page.getByRole('textbox', { name: 'Name of a new view' }).fill('By title')
    await page.keyboard.press('Enter')
    await page
      .getByRole('list', { name: 'Saved views' })
      .getByRole('button', { name: 'By title', exact: true })
      .waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-views')
    await page.getByRole('button', { name: 'Actions of By title' }).click()
    const isSet = savedTo(page, '%24table')
    await page.getByRole('menuitem', { name: 'Show first' }).click()
    await isSet

    await page.goto(path())
    await page.waitForURL(/sort=title/)
    expect(new URL(page.url()).searchParams.get('columns')).toBe(new URLSearchParams(search).get('columns'))
    expect(await headings(page)).toEqual(shown)
    // A URL with a view of its own is what it says.
    await page.goto(path('?sort=views:desc'))
    await page.getByRole('gridcell', { name: 'Note 11' }).waitFor()
    expect(await headings(page)).toContain('views')

    await page.getByRole('button', { name: 'Views', exact: true }).click()
    await page.getByRole('button', { name: 'Actions of By title' }).click()
    await page.getByRole('menuitem', { name: 'Rename' }).click()
    await page.getByRole('textbox', { name: 'New name of By title' }).fill('Titles / 1')
    expect(await page.getByRole('button', { name: 'Rename' }).isDisabled()).toBe(true)
    await page.getByRole('textbox', { name: 'New name of By title' }).fill('Überschriften 🙂')
    await page.keyboard.press('Enter')
    const renamed = page.getByRole('button', { name: 'Überschriften 🙂 default' })
    await renamed.click()
    await page.waitForURL(/sort=title/)

    const other = await openSheet(browser)
    await signIn(other, server)
    await other.page.goto(path())
    await other.page.getByRole('gridcell', { name: 'Note 11' }).waitFor()
    await other.page.getByRole('button', { name: 'Views', exact: true }).click()
    await other.page.getByText('A view keeps filter', { exact: false }).waitFor()
    expect(other.page.url()).not.toContain('sort=')
    expectNoFaults(other)
    await other.close()

    await page.getByRole('button', { name: 'Überschriften' }).first().click()
    await page.getByRole('button', { name: 'Actions of Überschriften 🙂' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByText('A view keeps filter', { exact: false }).waitFor()
    await page.goto(path())
    await page.getByRole('gridcell', { name: 'Note 11' }).waitFor()
    expect(page.url()).not.toContain('sort=')
    expectNoFaults(sheet)
    await sheet.close()
  })

  test('the widths of columns are there in another browser; a viewer keeps none', async () => {
    const sheet = await openSheet(browser)
    const { page } = sheet
    const administrator = await signIn(sheet, server)
    await page.goto(path())
    const heading = page.getByRole('columnheader', { name: 'title' })
    const before = await heading.boundingBox()
    const handle = await heading.locator('.data-resizer').boundingBox()
    if (!before || !handle) throw new Error('no column')
    const isSaved = savedTo(page, '%24table')
    await page.mouse.move(handle.x + handle.width / 2, handle.y + 5)
    await page.mouse.down()
    await page.mouse.move(handle.x + handle.width / 2 + 90, handle.y + 5, { steps: 4 })
    await page.mouse.up()
    await isSaved
    const again = await openSheet(browser)
    await setSession(again, server, administrator)
    await again.page.goto(path())
    await again.page.getByRole('gridcell', { name: 'Note 11' }).waitFor()
    const width = async (on: Page) => (await on.getByRole('columnheader', { name: 'title' }).boundingBox())?.width
    await again.page.waitForFunction(
      (wanted) =>
        [...document.querySelectorAll('.data-heading')].some(
          (one) => one.textContent === 'title' && Math.round(one.getBoundingClientRect().width) === wanted,
        ),
      Math.round(before.width + 90),
    )
    expect(await width(again.page)).toBe(before.width + 90)
    expectNoFaults(again)
    await again.close()
    const viewer = await openSheet(browser)
    await signIn(viewer, server, 'viewer')
    await viewer.page.goto(path())
    await viewer.page.getByRole('button', { name: 'Views', exact: true }).click()
    await viewer.page.getByText('A view keeps filter', { exact: false }).waitFor()
    expect(await viewer.page.getByRole('textbox', { name: 'Name of a new view' }).count()).toBe(0)
    expectNoFaults(viewer)
    await viewer.close()
    expectNoFaults(sheet)
    await sheet.close()
  })
})
