/** Changes of a table as a patch: the page makes it, and the server understands what it says. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { buildDashboard } from '../../../../../scripts/build/dashboard.ts'
import { open } from '../../../../server/tests/harness/config.ts'
import { describeInBrowser } from '../../../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../../../server/tests/harness/server.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../../harness/browser.ts'
import { startDashboardServer } from '../../harness/dashboard.ts'
import { openSignedIn, type SignedIn } from '../../harness/signed-in.ts'

const posts = {
  schema: {
    title: { type: 'string', required: true },
    status: { type: 'string', enum: ['draft', 'live'] },
    note: { type: 'string' },
  },
  indexes: [{ fields: ['status'] }],
  search: ['title'],
  hidden: ['note'],
  access: open,
} as const
const config = { databases: { shared: { tables: { posts, loose: { access: open } } } } } as const
const base = '/api/db/shared/tables/posts'

describeInBrowser('Changes of tables in the dashboard', 'changes of tables', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  beforeAll(async () => {
    server = await startDashboardServer(config)
    await server.service.post(`${base}/batch`, {
      inserts: [
        { id: 'p1', title: 'First' },
        { id: 'p2', title: 'Second' },
      ],
    })
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server, { permissions: ['clipboard-read', 'clipboard-write'] })
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  const form = () => sheet.page.locator('.shape-form')
  const choose = async (label: string, option: string): Promise<void> => {
    await form().getByRole('combobox', { name: label, exact: true }).click()
    await sheet.page.getByRole('option', { name: option, exact: true }).click()
  }
  const add = () => form().getByRole('button', { name: 'Add to the patch' }).click()
  /** The text that is copied in a step. */
  const patch = async (at = 0): Promise<string> => {
    await sheet.page.locator('.shape-steps .copy-button').nth(at).click()
    return sheet.page.evaluate(() => navigator.clipboard.readText())
  }

  test('fields and indexes are added as a patch, which the server loads as it says', async () => {
    const { page } = sheet
    const before = await server.dump(base)
    await sheet.open('/data/shared/posts?tab=schema', /posts/)
    await page.getByRole('button', { name: 'Change the table' }).click()
    await form().getByLabel('Name').fill('Title')
    await add()
    await page.getByText('is the name of another field').waitFor()
    await form().getByLabel('Name').fill('rank')
    await choose('Type', 'number')
    await form().getByLabel('Default').fill('one')
    await add()
    await page.getByText('is not valid JSON').waitFor()
    await form().getByLabel('Default').fill('1')
    await form().getByRole('checkbox', { name: 'Required' }).check({ force: true })
    await add()
    await choose('Change', 'Add an index')
    await form().getByLabel('Fields').fill('rank, createdAt')
    await add()
    await choose('Change', 'Remove an index')
    await choose('Index', 'status')
    await add()
    await page.getByRole('region', { name: 'Changed lines' }).getByText("rank: { type: 'number'").waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-shape', { height: 1000 })
    expect((await patch()).split('\n')).toEqual([
      '--- plinth.config.ts',
      '+++ plinth.config.ts',
      '@@ databases.shared.tables.posts @@',
      "   status: { type: 'string', enum: ['draft', 'live'] },",
      "   note: { type: 'string' },",
      "+  rank: { type: 'number', required: true, default: 1 },",
      ' },',
      ' indexes: [',
      "-  { fields: ['status'] },",
      "+  { fields: ['rank', 'createdAt'] },",
      ' ],',
      " search: ['title'],",
    ])
    await page.reload()
    await page.getByRole('list', { name: 'Changes' }).getByText('Add the field rank').waitFor()
    await page.getByRole('button', { name: 'Leave out: Remove the index of status' }).click()
    await page.getByRole('list', { name: 'Changes' }).getByText('Remove the index').waitFor({ state: 'detached' })
    expect(await server.dump(base)).toEqual(before)
    expectNoFaults(sheet)

    const { schema, indexes } = posts
    const rank = { type: 'number', required: true, default: 1 } as const
    const changed = { ...posts, schema: { ...schema, rank }, indexes: [...indexes, { fields: ['rank', 'createdAt'] }] }
    await server.reload({ databases: { shared: { tables: { posts: changed, loose: { access: open } } } } })
    expect((await server.service.get(`${base}/p1`)).body.rank).toBe(1)
    // The changes are made, so that none is left.
    await page.reload()
    await page.getByRole('row', { name: /rank.*number/ }).waitFor()
    expect(await page.locator('.shape-steps').count()).toBe(0)
    expectNoFaults(sheet)
    await server.reload(config).catch(() => {})
  })

  test('a renamed field takes two patches and commands between them', async () => {
    const { page } = sheet
    await sheet.open('/data/shared/posts?tab=schema&shape=[]', /posts/)
    await choose('Change', 'Rename a field')
    await choose('Field', 'title')
    await form().getByLabel('New name').fill('headline')
    await add()
    await page.getByText('Rename title to headline').waitFor()
    expect(await page.locator('.shape-steps li').count()).toBe(4)
    expect(await patch(0)).toContain("+  headline: { type: 'string' },")
    expect(await patch(1)).toContain('plinth import shared.posts title.csv --map title=headline --upsert id')
    expect(await patch(2)).toContain("+search: ['headline'],")
    expect(await patch(3)).toBe('plinth migrate --apply')
    await page.getByText('are not in the patch').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-shape-rename', { height: 1400 })
    expectNoFaults(sheet)
  })

  test('it is offered neither for tables without declared fields nor in release mode', async () => {
    const { page } = sheet
    await sheet.open('/data/shared/loose?tab=schema&shape=[]', /loose/)
    await page.getByText('records may have any').waitFor()
    expect(await page.getByRole('button', { name: 'Change the table' }).count()).toBe(0)
    expect(await page.locator('.shape-form').count()).toBe(0)
    await buildDashboard()
    const release = await startServer({ config: { ...config, dashboard: { requireMfa: false } }, mode: 'release' })
    const owner = await openSignedIn(browser, release)
    try {
      await owner.open('/data/shared/posts?tab=schema&shape=[]', /posts/)
      await owner.page.getByText('hidden from users').waitFor()
      expect(await owner.page.getByRole('button', { name: 'Change the table' }).count()).toBe(0)
      expect(await owner.page.locator('.shape-form').count()).toBe(0)
      expectNoFaults(owner)
    } finally {
      await owner.close()
      await release.close()
    }
    expectNoFaults(sheet)
  })
})
