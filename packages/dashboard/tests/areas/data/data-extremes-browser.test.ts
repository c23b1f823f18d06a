/** Data at the limits of the server: 500 columns, records of megabytes, 100,000 instances, and ends in the middle. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { instancePath } from '../../../../server/src/engines/sqlite/instances/instance-database.ts'
import { tableFieldsMax } from '../../../../server/src/limits/api.ts'
import { recordBytesMax } from '../../../../server/src/limits/writes.ts'
import { open } from '../../../../server/tests/harness/config.ts'
import { describeInBrowser } from '../../../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../../harness/browser.ts'
import { startDashboardServer, type TestServer } from '../../harness/dashboard.ts'
import { openSignedIn, type SignedIn } from '../../harness/signed-in.ts'

const types = ['string', 'number', 'boolean', 'json', 'datetime', 'text'] as const
const nameOf = (at: number): string => `a_long_name_of_column_${String(at).padStart(3, '0')}`
const broad = Array.from({ length: tableFieldsMax }, (_, at) => ({ name: nameOf(at), type: types[at % types.length] }))
const cellOf = (row: number, at: number): unknown =>
  [`${row} at ${at}`, row + at, at % 12 === 2, { at }, '2026-11-24T09:30:00.000Z', `line ${row}\nof ${at}`][at % 6]

const config = {
  databases: {
    shared: {
      tables: {
        broad: { schema: Object.fromEntries(broad.map(({ name, type }) => [name, { type } as const])), access: open },
        large: {
          schema: {
            title: { type: 'string' },
            body: { type: 'text' },
            more: { type: 'text' },
            data: { type: 'json' },
            other: { type: 'json' },
          },
          access: open,
        },
      },
    },
    workspace: {
      instance: true,
      access: () => true,
      tables: { tasks: { schema: { text: { type: 'string' } }, access: open } },
    },
  },
} as const
const tables = '/api/db/shared/tables'
const tenantCount = 100_000
const tenantOf = (at: number): string => `tenant-${String(at).padStart(6, '0')}`

describeInBrowser('Data at its limits', 'the limits of Data', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  let page: Page
  beforeAll(async () => {
    server = await startDashboardServer(config)
    browser = await openBrowser(program)
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
  })
  beforeEach(async () => {
    sheet = await openSignedIn(browser, server, { permissions: ['clipboard-read', 'clipboard-write'] })
    page = sheet.page
  })
  afterEach(() => sheet.close())

  const show = (path: string): Promise<unknown> => page.goto(`${server.url}/dashboard/data/${path}`)
  const cell = (name: string) => page.getByRole('gridcell', { name, exact: true })
  const columnCount = async () => Number(await page.getByRole('grid').getAttribute('aria-colcount')) - 1
  /** The sizes of the responses with records from now on. */
  const watchSizes = (): number[] => {
    const sizes: number[] = []
    page.on('response', async (response) => {
      if (response.url().includes('/tables/')) sizes.push((await response.body().catch(() => Buffer.alloc(0))).length)
    })
    return sizes
  }
  const insert = async (path: string, body: object): Promise<void> => {
    const { status, text } = await server.service.post(path, body)
    if (status >= 300) throw new Error(`${path}: ${status} ${text}`)
  }

  test('of 500 columns those in view are drawn, any can be hidden and moved, and the record has all', async () => {
    const inserts = Array.from({ length: 50 }, (_, row) => ({
      id: `r${String(row).padStart(2, '0')}`,
      ...Object.fromEntries(broad.map(({ name }, at) => [name, cellOf(row, at)])),
    }))
    await insert(`${tables}/broad/batch`, { inserts })
    const sizes = watchSizes()
    await show('shared/broad')
    await cell('0 at 0').waitFor()
    expect(await columnCount()).toBe(tableFieldsMax + 3)
    await page.getByRole('grid').evaluate((grid) => grid.scrollTo(grid.scrollWidth, 0))
    await cell('1 at 498').waitFor()
    expect(await page.locator('.data-cell').count()).toBeLessThan(500)
    expect(Math.max(...sizes)).toBeLessThan(100_000)

    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByRole('searchbox', { name: 'Find a column' }).fill('250')
    await page.getByRole('checkbox', { name: nameOf(250) }).click({ force: true })
    await page.getByText(`${tableFieldsMax + 2}/${tableFieldsMax + 3}`).waitFor()
    await page.getByRole('searchbox', { name: 'Find a column' }).fill('column_001')
    await page.getByRole('button', { name: `Move ${nameOf(1)} to the left` }).click()
    await page.waitForURL((url) => (url.searchParams.get('columns') ?? '').includes(`${nameOf(1)},${nameOf(0)}`))
    expect(await findBarriers(sheet)).toEqual([])
    expect(page.url().length).toBeLessThan(1_000)
    await page.reload()
    await cell('0 at 0').waitFor()
    expect(await columnCount()).toBe(tableFieldsMax + 2)
    expect((await page.locator('.data-heading-name').allTextContents()).slice(0, 3)).toEqual([
      'id',
      nameOf(1),
      nameOf(0),
    ])

    await show('shared/broad?row=r07')
    const panel = page.getByRole('dialog')
    await panel.getByRole('textbox', { name: nameOf(499) }).waitFor()
    await panel.getByRole('searchbox', { name: 'Find a field' }).fill('column_30')
    await panel.getByRole('textbox', { name: nameOf(0) }).waitFor({ state: 'detached' })
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-broad-record')
    await panel.getByRole('textbox', { name: nameOf(300) }).fill('Changed')
    await panel.getByRole('searchbox', { name: 'Find a field' }).fill('no such')
    await panel.getByText('No field has this in its name.').waitFor()
    await panel.getByRole('button', { name: 'Save' }).click()
    await page.getByText(`${nameOf(300)} saved`).waitFor()
    const { body } = await server.service.get(`${tables}/broad/r07`)
    expect([body[nameOf(300)], body[nameOf(306)]]).toEqual(['Changed', '7 at 306'])
    expectNoFaults(sheet)
  })

  test('a record of megabytes has short cells, opens, and is changed without its long values', async () => {
    // The most that one request may have is less than a record may.
    const body = `${'long text '.repeat(90_000)}end`
    const data = { lines: Array.from({ length: 60_000 }, (_, at) => `line ${at}`) }
    await insert(`${tables}/large`, { id: 'l1', title: 'Large', body })
    for (const change of [{ more: body }, { data }, { other: data }])
      expect((await server.service.patch(`${tables}/large/l1`, change)).status).toBe(200)
    const sizes = watchSizes()
    await show('shared/large')
    await cell('Large').waitFor()
    expect(Math.max(...sizes)).toBeLessThan(10_000)
    expect(
      await page
        .locator('.data-row')
        .first()
        .evaluate((row) => row.textContent?.length ?? 0),
    ).toBeLessThan(1_000)
    await page.getByRole('grid').focus()
    await page.keyboard.press('Space')
    const panel = page.getByRole('dialog')
    const all = panel.getByRole('button', { name: `Show all ${body.length.toLocaleString('en')} characters` })
    await all.first().waitFor()
    expect(await panel.evaluate((element) => element.textContent?.length ?? 0)).toBeLessThan(15_000)
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-large-record')
    await panel.getByRole('textbox', { name: 'title' }).fill('Larger')
    const sent = page.waitForRequest((request) => request.method() === 'PATCH')
    await panel.getByRole('button', { name: 'Save' }).click()
    expect((await sent).postData()).toBe('{"title":"Larger"}')
    await page.getByText('title saved').waitFor()
    expect((await server.service.get(`${tables}/large/l1`)).body).toMatchObject({ title: 'Larger', body, data })
    expectNoFaults(sheet)
  })

  test('five megabytes that are pasted into a form are refused by the server, and kept', async () => {
    const body = 'x'.repeat(5_000_000)
    expect(body.length).toBeGreaterThan(recordBytesMax)
    sheet.allow(/413/)
    await show('shared/large?new=1')
    const panel = page.getByRole('dialog')
    await panel.getByRole('textbox', { name: 'title' }).fill('Too large')
    await page.evaluate((text) => navigator.clipboard.writeText(text), body)
    for (const name of ['body', 'data']) {
      await panel.getByRole('textbox', { name }).focus()
      await page.keyboard.press('Control+v')
      await panel.getByText('Show all 5,000,000 characters').first().waitFor()
    }
    await panel.getByRole('button', { name: 'Insert' }).click()
    await panel.getByText('is not valid JSON', { exact: false }).waitFor()
    await panel.getByRole('button', { name: 'Clear' }).last().click()
    await panel.getByRole('button', { name: 'Insert' }).click()
    await panel.getByRole('alert').waitFor()
    await takeScreenshots(sheet, 'data-too-large')
    expect(await panel.getByRole('textbox', { name: 'title' }).inputValue()).toBe('Too large')
    await panel.getByText('Show all 5,000,000 characters').waitFor()
    const { items } = (await server.service.get(`${tables}/large?filter=[["title","==","Too%20large"]]&fields=id`)).body
    expect(items).toEqual([])
    expectNoFaults(sheet)
  })

  test('one of 100,000 instances is found by its beginning, by a part, and by paging', async () => {
    const folders = new Set<string>()
    for (let at = 0; at < tenantCount; at++) {
      const path = instancePath(server.dataFolder, 'workspace', tenantOf(at))
      const folder = dirname(path)
      if (!folders.has(folder)) mkdirSync(folder, { recursive: true })
      folders.add(folder)
      writeFileSync(path, '')
    }
    await insert(`/api/db/workspace/${tenantOf(54_321)}/tables/tasks`, { text: 'Found' })
    const choices = page.locator('.data-instance')
    const choice = (id: string) => choices.filter({ has: page.getByText(id, { exact: true }) })
    await show('workspace')
    await choice(tenantOf(29)).waitFor()
    expect(await choices.count()).toBeLessThan(100)
    await page.getByRole('button', { name: 'More' }).click()
    await choice(tenantOf(59)).waitFor()
    const box = page.getByRole('textbox', { name: 'Instance of workspace' })
    await box.fill('tenant-09999')
    await choice(tenantOf(99_999)).waitFor()
    await choice(tenantOf(29)).waitFor({ state: 'detached' })
    await box.fill('54321')
    await page.getByText('None has data.', { exact: false }).waitFor()
    await page.getByRole('checkbox', { name: 'Anywhere in the id' }).click({ force: true })
    await choice(tenantOf(54_321)).click()
    await page.getByRole('link', { name: 'tasks' }).click()
    await cell('Found').waitFor()
    expectNoFaults(sheet)
  })

  test('a session that ends while a record is written: the form continues after signing in', async () => {
    await insert(`${tables}/large`, { id: 'l2', title: 'Before' })
    sheet.allow(/401/)
    await show('shared/large?new=1')
    const panel = page.getByRole('dialog', { name: 'New record' })
    await panel.getByRole('textbox', { name: 'title' }).fill('Typed before the end')
    await sheet.context.clearCookies()
    await panel.getByRole('button', { name: 'Insert' }).click()
    const ended = page.getByRole('dialog', { name: 'Your session has ended' })
    await ended.getByLabel('Password').fill('not the password')
    await page.keyboard.press('Enter')
    await ended.getByRole('alert').waitFor()
    await ended.getByLabel('Password').fill(sheet.administrator.password)
    await page.keyboard.press('Enter')
    await page.getByText('Record inserted').waitFor()
    await page.keyboard.press('Escape')

    // The new row moves the others, which must not happen between two clicks.
    await panel.waitFor({ state: 'hidden' })
    await cell('Typed before the end').waitFor()
    await cell('Before').dblclick()
    await page.getByRole('textbox', { name: 'title of l2' }).fill('Typed in a cell')
    await sheet.context.clearCookies()
    await page.keyboard.press('Enter')
    await ended.getByLabel('Password').fill(sheet.administrator.password)
    await page.keyboard.press('Enter')
    await page.getByText('title saved').waitFor()
    expect((await server.service.get(`${tables}/large/l2`)).body.title).toBe('Typed in a cell')
    expectNoFaults(sheet)
  })

  test('[DASH-14] without the dashboard there is no page, and an open one says so', async () => {
    await show('shared/large')
    await page.getByRole('grid').waitFor()
    sheet.allow(/404|503/)
    try {
      await server.reload({ ...config, dashboard: false })
      await page.getByRole('button', { name: 'Reload' }).click()
      await page.getByRole('alert').first().waitFor()
      expect((await page.goto(`${server.url}/dashboard/data`))?.status()).toBe(404)
    } finally {
      await server.reload(config)
    }
    await show('shared/large')
    await page.getByRole('grid').waitFor()
    expectNoFaults(sheet)
  })
})
