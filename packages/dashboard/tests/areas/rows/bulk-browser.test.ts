/** Bulk changes of the area "Data" in a real browser: preview, progress, cancellation, refused records. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { open } from '../../../../server/tests/harness/config.ts'
import { openFunctionProject } from '../../../../server/tests/harness/functions.ts'
import { describeInBrowser } from '../../../../server/tests/harness/processes/chromium.ts'
import {
  expectNoFaults,
  findBarriers,
  openBrowser,
  openSheet,
  type Sheet,
  takeScreenshots,
} from '../../harness/browser.ts'
import { signIn, startDashboardServer, type TestServer } from '../../harness/dashboard.ts'

const project = openFunctionProject(`
export const gate = before('shared.posts', ['update'], async ({ row, previous }, ctx) => {
  if (previous.title === 'Locked') throw new HttpError(422, 'locked', 'A locked post stays as it is')
  if (row.status !== 'archived') return row
  for (;;) {
    const { items } = await ctx.service.db('shared').gates.list()
    if (items.length === 0) return row
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
})
`)
const config = {
  databases: {
    shared: {
      tables: {
        posts: {
          schema: {
            title: { type: 'string', required: true },
            status: { type: 'string', enum: ['draft', 'live', 'archived'] },
            views: { type: 'number', max: 1_000 },
          },
          search: ['title'],
          access: open,
        },
        gates: { access: open },
      },
    },
  },
} as const
const posts = '/api/db/shared/tables/posts'

describeInBrowser('Bulk changes of the dashboard', 'bulk changes', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: Sheet
  let page: Page
  beforeAll(async () => {
    server = await startDashboardServer(config, { settings: { projectFolder: project.folder } })
    browser = await openBrowser(program)
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
    project.remove()
  })
  beforeEach(async () => {
    for (let processed = 1; processed > 0; )
      processed = (await server.service.post(`${posts}/batch-by-filter`, { action: 'delete' })).body.processed
    for (let at = 0; at < 1_200; at += 400) {
      const inserts = Array.from({ length: 400 }, (_, next) => ({
        id: `p${String(at + next).padStart(4, '0')}`,
        title: at + next === 3 ? 'Locked' : `Post ${at + next}`,
        status: next % 2 === 0 ? 'draft' : 'live',
        views: next,
      }))
      expect((await server.service.post(`${posts}/batch`, { inserts })).status).toBe(200)
    }
    sheet = await openSheet(browser)
    page = sheet.page
  })
  afterEach(() => sheet.close())

  const show = async (path: string): Promise<void> => {
    await page.goto(`${server.url}/dashboard/data/${path}`)
    await page.getByRole('grid').waitFor()
  }
  const choose = async (action: string): Promise<void> => {
    await page.getByRole('button', { name: 'All records' }).click()
    await page.getByRole('menuitem', { name: action }).click()
  }
  const count = async (filter: unknown): Promise<number> =>
    (await server.service.get(`${posts}?limit=1&filter=${encodeURIComponent(JSON.stringify(filter))}`)).body.total
  const drafts = encodeURIComponent('[["status","==","draft"]]')

  test('records that match are changed after a preview, and refused ones are named', async () => {
    await signIn(sheet, server)
    await show(`shared/posts?filter=${encodeURIComponent('[["status","==","live"]]')}`)
    await choose('Change matching…')
    const dialog = page.getByRole('dialog', { name: 'Change matching records' })
    await dialog.getByRole('heading', { name: '600 records' }).waitFor()
    await dialog.getByRole('combobox', { name: 'Field 1' }).click()
    await page.getByRole('option', { name: 'views' }).click()
    await dialog.getByRole('textbox', { name: 'New value of views' }).fill('many')
    await dialog.getByText('views is not a number').waitFor()
    await dialog.getByRole('textbox', { name: 'New value of views' }).fill('7')
    await dialog.getByRole('button', { name: 'Another field' }).click()
    await dialog.getByRole('combobox', { name: 'Field 2' }).click()
    await page.getByRole('option', { name: 'status' }).click()
    await dialog.getByRole('combobox', { name: 'New value of status' }).click()
    await page.getByRole('option', { name: 'draft' }).click()
    const start = dialog.getByRole('button', { name: 'Change 600 records' })
    expect(await start.isDisabled()).toBe(true)
    await dialog
      .getByRole('cell', { name: /live becomes draft/ })
      .first()
      .waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-bulk-change')
    await dialog.getByRole('textbox', { name: /Type posts/ }).fill('posts')
    await page.keyboard.press('Enter')
    await dialog.getByText('599 records changed, 1 refused').waitFor()
    await dialog.getByText('A locked post stays as it is').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-bulk-refused')
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await page.getByText('1 record', { exact: true }).waitFor()
    expect(await count([['views', '==', 7]])).toBe(599)
    expectNoFaults(sheet)
  })

  test('a job is followed by its banner, also after a reload, and canceled', async () => {
    await signIn(sheet, server)
    await server.service.post('/api/db/shared/tables/gates', { id: 'closed' })
    await show(`shared/posts?filter=${drafts}`)
    await choose('Change matching…')
    const dialog = page.getByRole('dialog', { name: 'Change matching records' })
    await dialog.getByRole('combobox', { name: 'Field 1' }).click()
    await page.getByRole('option', { name: 'status' }).click()
    await dialog.getByRole('combobox', { name: 'New value of status' }).click()
    await page.getByRole('option', { name: 'archived' }).click()
    await dialog.getByRole('textbox', { name: /Type posts/ }).fill('posts')
    await dialog.getByRole('button', { name: 'Change 600 records' }).click()
    await dialog.getByText('0 of 600 records changed').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-bulk-running')
    await page.reload()
    await page.getByText('0 of 600 records changed').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-bulk-banner')
    await page.getByRole('button', { name: 'All records' }).click()
    expect(await page.getByRole('menuitem', { name: 'Delete matching…' }).getAttribute('aria-disabled')).toBe('true')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Cancel job' }).click()
    await page.getByText(/Canceled after 0 records/).waitFor()
    await server.service.delete('/api/db/shared/tables/gates/closed')
    expect(await count([['status', '==', 'archived']])).toBe(0)
    expectNoFaults(sheet)
  })

  test('records that match are deleted by keyboard alone', async () => {
    await signIn(sheet, server)
    await show(`shared/posts?filter=${drafts}`)
    await page.getByRole('button', { name: 'All records' }).focus()
    await page.keyboard.press('Enter')
    // Keys reach the menu once an item is highlighted.
    await page.locator('[role=menuitem][data-highlighted]').waitFor()
    await page.keyboard.press('d')
    await page.locator('[role=menuitem][data-highlighted]', { hasText: 'Delete matching…' }).waitFor()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Delete matching records' })
    await dialog.getByRole('heading', { name: '600 records' }).waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-bulk-delete')
    await page.keyboard.type('posts')
    await page.keyboard.press('Enter')
    await dialog.getByText('600 records deleted').waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('No record matches').waitFor()
    expect(await count([])).toBe(600)
    expectNoFaults(sheet)
  })

  test('a viewer is offered no change', async () => {
    await signIn(sheet, server, 'viewer')
    await show('shared/posts')
    expect(await page.getByRole('menuitem', { name: 'Delete matching…' }).count()).toBe(0)
    expectNoFaults(sheet)
  })

  test('the results of a search are exported, changed and deleted', async () => {
    await signIn(sheet, server)
    await show(`shared/posts?q=${encodeURIComponent('post 11')}&filter=${drafts}`)
    await page.locator('.data-total', { hasText: '55 records' }).waitFor()
    await choose('Export…')
    const exporting = page.getByRole('dialog', { name: 'Export posts' })
    await exporting.getByText('55 records of this view, in the order of their ids').waitFor()
    const download = page.waitForEvent('download')
    await exporting.getByRole('button', { name: 'Export' }).click()
    const lines = (await Bun.file(await (await download).path()).text()).trim().split('\r\n')
    expect(lines).toHaveLength(56)
    await choose('Change matching…')
    const dialog = page.getByRole('dialog', { name: 'Change matching records' })
    await dialog.getByRole('heading', { name: '55 records' }).waitFor()
    await dialog.getByText('Search: post 11').waitFor()
    await dialog.getByRole('combobox', { name: 'Field 1' }).click()
    await page.getByRole('option', { name: 'views' }).click()
    await dialog.getByRole('textbox', { name: 'New value of views' }).fill('999')
    await takeScreenshots(sheet, 'data-bulk-search')
    await dialog.getByRole('textbox', { name: /Type posts/ }).fill('posts')
    await page.keyboard.press('Enter')
    await dialog.getByText('55 records changed.', { exact: true }).waitFor()
    expect(await count([['views', '==', 999]])).toBe(55)
    expectNoFaults(sheet)
  })
})
