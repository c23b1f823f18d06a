/** The area "Stores" in a real browser, against real servers. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { buildDashboard } from '../../../../scripts/build/dashboard.ts'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { unlimitedRates } from '../../../server/tests/harness/users/accounts.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'

const markup = '<img src=x onerror="alert(1)">'
const config = {
  rateLimits: unlimitedRates,
  dashboard: { requireMfa: false },
  kv: { settings: {}, other: {} },
  sql: { reports: {} },
  vector: { docs: { dimensions: 3 } },
}

describeInBrowser('Stores in the dashboard', 'stores in the dashboard', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  beforeAll(async () => {
    await buildDashboard()
    server = await startServer({ config })
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  async function perform(path: string, body: object): Promise<Record<string, unknown>> {
    const answer = await server.service.post(path, body)
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text}`)
    return answer.body
  }
  const set = (key: string, value: unknown, ttl?: number) =>
    perform('/api/kv/settings', { action: 'set', key, value, ...(ttl === undefined ? {} : { ttl }) })
  const storedValue = async (key: string) => (await perform('/api/kv/settings', { action: 'get', key })).value

  test('an entry is found by its prefix, changed with its lifetime, created and deleted', async () => {
    const { page } = sheet
    await set('theme:dark', { accent: 'blue' }, 3600)
    await set('theme:light', { accent: 'red' })
    await set('limit', 12)
    await sheet.open('/stores', 'Stores')
    await page.getByRole('button', { name: 'theme:dark' }).waitFor()
    await takeScreenshots(sheet, 'stores-kv')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('searchbox').fill('theme:')
    await page.getByRole('button', { name: 'limit' }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'theme:dark' }).click()
    await page.getByLabel('Value').waitFor()
    expect(Number(await page.getByLabel('Lifetime in seconds').inputValue())).toBeGreaterThan(3000)
    await takeScreenshots(sheet, 'stores-kv-entry')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByLabel('Value').fill('{"accent": ')
    expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
    await page.getByLabel('Value').fill('{"accent": 12345678901234567890}')
    await page.getByText('Integers beyond').waitFor()
    await page.getByLabel('Value').fill('{"accent": "green"}')
    await page.getByLabel('Lifetime in seconds').fill('5')
    await page.getByText('Must be a whole number').waitFor()
    await page.getByLabel('Lifetime in seconds').fill('120')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Entry saved').waitFor()
    expect(await storedValue('theme:dark')).toEqual({ accent: 'green' })
    const { body } = await server.service.get('/api/kv/settings/entry?key=theme:dark')
    expect(Date.parse(body.expiresAt) - Date.parse(body.writtenAt)).toBe(120_000)

    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'New entry' }).click()
    await page.getByLabel('Key', { exact: true }).fill('theme:new')
    await page.getByLabel('Value').fill('[1, 2]')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Delete entry…' }).waitFor()
    expect(await storedValue('theme:new')).toEqual([1, 2])
    await sheet.open('/stores/kv/settings?key=theme%3Alight', 'Stores')
    await page.getByRole('button', { name: 'Delete entry…' }).click()
    await page.getByRole('button', { name: 'Delete entry', exact: true }).click()
    await page.getByText('Entry deleted').waitFor()
    await page.getByRole('button', { name: 'theme:light' }).waitFor({ state: 'detached' })
    expect(await storedValue('theme:light')).toBeNull()
    await sheet.open('/stores/kv/other', 'Stores')
    await page.getByText('No entries yet').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
  })

  test('statements run, and an error names its place', async () => {
    const { page } = sheet
    const editor = page.getByRole('textbox', { name: 'Statement' })
    await sheet.open('/stores/sql', 'Stores')
    await editor.fill('CREATE TABLE sales (region TEXT, amount REAL, note TEXT)')
    await editor.press('Control+Enter')
    await page.getByText('The statement gave no rows').waitFor()
    await editor.fill(`INSERT INTO sales VALUES ('north', 12.5, NULL), ('south', 7, '${markup}')`)
    await page.getByRole('button', { name: 'Run' }).click()
    await page.getByText('2 changed').waitFor()
    await editor.fill('SELECT * FROM sales ORDER BY region')
    await editor.press('Control+Enter')
    await page.getByText('2 rows').waitFor()
    await page.getByRole('cell', { name: 'NULL' }).waitFor()
    await page.getByRole('cell', { name: markup }).waitFor()
    await takeScreenshots(sheet, 'stores-sql')
    expect(await findBarriers(sheet)).toEqual([])
    expect(await page.locator('main img').count()).toBe(0)
    await page.reload()
    expect(await editor.inputValue()).toBe('SELECT * FROM sales ORDER BY region')
    expectNoFaults(sheet)

    await editor.fill('SELECT region,\n  amuont FROM sales')
    await editor.press('Control+Enter')
    await page.getByText('Line 2, column 3').waitFor()
    await page.getByRole('button', { name: 'Select it' }).click()
    const selected = await editor.evaluate((area) => {
      const { value, selectionStart, selectionEnd } = area as HTMLTextAreaElement
      return value.slice(selectionStart, selectionEnd)
    })
    expect(selected).toBe('amuont')
    await takeScreenshots(sheet, 'stores-sql-error')
    expect(await findBarriers(sheet)).toEqual([])
    expect(sheet.takeFaults()).toEqual([expect.stringContaining('400 POST'), expect.stringContaining('status of 400')])
  })

  test('an index is searched by a vector and by an id', async () => {
    const { page } = sheet
    const vectors = [
      { id: 'a', values: [1, 0, 0], metadata: { title: markup } },
      { id: 'b', values: [0.9, 0.1, 0] },
      { id: 'c', values: [0, 0, 1] },
    ]
    await perform('/api/vector/docs', { action: 'upsert', vectors })
    await sheet.open('/stores/vector', 'Stores')
    await page.getByText('3 vectors').waitFor()
    const target = page.getByLabel('Vector or id')
    await target.fill('[1, 0]')
    await page.getByText('Must have 3 numbers, not 2.').waitFor()
    await target.fill('[1, 0, 0]')
    await page.getByRole('button', { name: 'Search', exact: true }).click()
    const rows = page.getByRole('region', { name: 'Matches' }).getByRole('row')
    await rows.nth(3).waitFor()
    expect(await rows.nth(1).textContent()).toMatch(/^a1\.0000/)
    await takeScreenshots(sheet, 'stores-vector')
    expect(await findBarriers(sheet)).toEqual([])
    await target.fill('c')
    await page.getByRole('button', { name: 'Search', exact: true }).click()
    await page.waitForFunction(() => location.search.includes('target=c'))
    await page.reload()
    await rows.nth(1).waitFor()
    expect(await target.inputValue()).toBe('c')
    expect(await page.locator('main img').count()).toBe(0)
    expectNoFaults(sheet)
  })

  test('markup in keys and values stays text', async () => {
    const { page } = sheet
    await set(markup, { [markup]: markup })
    await sheet.open(`/stores/kv/settings?key=${encodeURIComponent(markup)}`, 'Stores')
    await page.getByLabel('Value').waitFor()
    expect(await page.getByLabel('Value').inputValue()).toContain(JSON.stringify(markup))
    expect(await page.locator('main img, .panel img').count()).toBe(0)
    expectNoFaults(sheet)
  })

  test('a viewer reads entries and has no console', async () => {
    await set('seen', 'by a viewer')
    const viewer = await openSignedIn(browser, server, { role: 'viewer' })
    await viewer.open('/stores/sql/reports', 'Stores')
    await viewer.page.getByRole('button', { name: 'seen' }).click()
    await viewer.page.getByLabel('Value').waitFor()
    for (const name of ['New entry', 'Save', 'Delete entry…', 'Run'])
      expect(await viewer.page.getByRole('button', { name }).count()).toBe(0)
    expect(await viewer.page.getByRole('navigation', { name: 'Stores' }).getByRole('link').count()).toBe(1)
    expectNoFaults(viewer)
    await viewer.close()
  })

  test('in release mode a statement that writes is confirmed first', async () => {
    const released = await startServer({ config, mode: 'release' })
    const signedIn = await openSignedIn(browser, released)
    const { page } = signedIn
    const editor = page.getByRole('textbox', { name: 'Statement' })
    await signedIn.open('/stores/sql', 'Stores')
    await editor.fill("SELECT 'delete'")
    await editor.press('Control+Enter')
    await page.getByText('1 row').waitFor()
    await editor.fill('CREATE TABLE notes (text TEXT)')
    await editor.press('Control+Enter')
    await page.getByText('Change the database?').waitFor()
    const tables = () => released.service.post('/api/sql/reports', { query: 'SELECT * FROM notes' })
    expect((await tables()).status).toBe(400)
    await page.getByRole('button', { name: 'Run statement' }).click()
    await page.getByText('The statement gave no rows').waitFor()
    expect((await tables()).status).toBe(200)
    expectNoFaults(signedIn)
    await signedIn.close()
    await released.close()
  })

  test('without stores the page shows how one is declared', async () => {
    const bare = await startServer({ config: { rateLimits: unlimitedRates } })
    const signedIn = await openSignedIn(browser, bare)
    await signedIn.open('/stores/vector', 'Stores')
    await signedIn.page.getByText('No vector indexes yet').waitFor()
    await takeScreenshots(signedIn, 'stores-empty')
    expect(await findBarriers(signedIn)).toEqual([])
    expectNoFaults(signedIn)
    await signedIn.close()
    await bare.close()
  })
})
