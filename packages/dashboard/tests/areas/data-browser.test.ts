/** The area "Data" in a real browser: grid, filters, editing, conflicts, undo, records by type, and hostile values. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { open } from '../../../server/tests/harness/config.ts'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, type Sheet, takeScreenshots } from '../harness/browser.ts'
import { startDashboardServer, type TestServer } from '../harness/dashboard.ts'
import { openSignedIn } from '../harness/signed-in.ts'
import { xssPayloads } from '../harness/xss-payloads.ts'

const wideSchema = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`c${at}`, { type: 'string' as const }]))
const config = {
  databases: {
    shared: {
      tables: {
        authors: { schema: { name: { type: 'string' } }, search: ['name'], access: open },
        posts: {
          schema: {
            title: { type: 'string', required: true, unique: true },
            body: { type: 'text' },
            status: { type: 'string', enum: ['draft', 'live'] },
            views: { type: 'number' },
            featured: { type: 'boolean' },
            publishedAt: { type: 'datetime' },
            meta: { type: 'json' },
            location: { type: 'geo' },
            authorId: { type: 'string', references: 'authors' },
            note: { type: 'string' },
          },
          hidden: ['note'],
          search: ['title'],
          indexes: [{ fields: ['views'] }],
          access: open,
        },
        wide: { schema: wideSchema, access: open },
        loose: { access: open },
        many: { schema: { number: { type: 'number' }, note: { type: 'string' } }, access: open },
        hostile: {
          schema: { text: { type: 'text' }, data: { type: 'json' }, line: { type: 'string' } },
          search: ['text'],
          access: open,
        },
        empty: { schema: { title: { type: 'string' } }, access: open },
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
const post = {
  id: 'p1',
  title: 'First',
  body: 'Several\nlines',
  status: 'draft',
  views: 7,
  featured: true,
  publishedAt: '2026-11-24T09:30:00.000Z',
  meta: { tags: ['a'] },
  location: [13.4, 52.5],
  authorId: 'ada',
  note: 'hidden',
} as const
const rowsOfMany = 5_000

async function fill({ service }: TestServer): Promise<void> {
  const send = async (path: string, body: object): Promise<void> => {
    const { status, text } = await service.post(path, body)
    if (status >= 300) throw new Error(`${path}: ${status} ${text}`)
  }
  await send(`${tables}/authors/batch`, {
    inserts: [
      { id: 'ada', name: 'Ada Lovelace' },
      { id: 'grace', name: 'Grace Hopper' },
    ],
  })
  const others = Array.from({ length: 120 }, (_, at) => ({
    id: `q${at}`,
    title: `Post ${at}`,
    views: at * 10,
    status: 'live',
  }))
  await send(`${tables}/posts/batch`, { inserts: [post, ...others] })
  const wide = Array.from({ length: 60 }, (_, row) =>
    Object.fromEntries(Object.keys(wideSchema).map((name) => [name, `${row} ${name}`])),
  )
  await send(`${tables}/wide/batch`, { inserts: wide })
  await send(`${tables}/loose`, { id: 'l1', anything: 'goes', count: 2, nested: { deep: true } })
  for (let at = 0; at < rowsOfMany; at += 500) {
    const inserts = Array.from({ length: 500 }, (_, row) => ({
      id: `m${String(at + row).padStart(6, '0')}`,
      number: at + row,
    }))
    await send(`${tables}/many/batch`, { inserts })
  }
  const hostile = xssPayloads.map((text, at) => ({ id: `x${at}`, text, line: text, data: { [text]: text } }))
  await send(`${tables}/hostile/batch`, { inserts: hostile })
  await send('/api/db/workspace/acme/tables/tasks', { id: 't1', text: 'Task of acme' })
}

const cell = (page: Page, name: string) => page.getByRole('gridcell', { name, exact: true })

describeInBrowser('The data of the dashboard', 'the area Data', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: Sheet
  let page: Page
  beforeAll(async () => {
    server = await startDashboardServer(config)
    await fill(server)
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

  const show = async (path: string): Promise<void> => {
    await page.goto(`${server.url}/dashboard/data/${path}`)
  }
  const stored = async (path: string) => (await server.service.get(`${tables}/${path}`)).body

  test('a table is shown with filter, order, search and columns of its URL', async () => {
    await show('shared/posts')
    await cell(page, 'First').waitFor()
    await page.getByText('121 records').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data')
    await show('shared/posts?columns=title,status,views')
    await page.getByRole('columnheader', { name: 'views' }).getByRole('button').click()
    await page.getByRole('columnheader', { name: 'views' }).getByRole('button').click()
    await cell(page, '1190').waitFor()
    expect(page.url()).toContain('sort=views%3Adesc')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByRole('combobox', { name: 'Field' }).click()
    await page.getByRole('option', { name: 'status' }).click()
    await page.getByRole('combobox', { name: 'Value' }).click()
    await page.getByRole('option', { name: 'draft' }).click()
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('1 record', { exact: true }).waitFor()
    await cell(page, 'First').waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Remove the condition status is draft' }).click()
    await page.getByText('121 records').waitFor()
    await page.getByRole('searchbox', { name: 'Search' }).fill('first')
    await page.getByText('1 record', { exact: true }).waitFor()
    await cell(page, 'First').waitFor()
    expect(await page.getByRole('columnheader', { name: 'highlights' }).count()).toBe(0)
    expectNoFaults(sheet)
  })

  test('a cell is edited by keyboard, and the change undone', async () => {
    await show('shared/posts?sort=title:asc')
    await cell(page, 'First').waitFor()
    await page.getByRole('grid').focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('Enter')
    await page.getByRole('textbox', { name: 'title of p1' }).fill('Renamed')
    await page.keyboard.press('Enter')
    await cell(page, 'Renamed').waitFor()
    expect((await stored('posts/p1')).title).toBe('Renamed')
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('Undone.').waitFor()
    await cell(page, 'First').waitFor()
    expect((await stored('posts/p1')).title).toBe('First')
    expectNoFaults(sheet)
  })

  test('a change of another writer is shown beside one’s own, and neither is lost', async () => {
    await show('shared/posts?sort=title:asc')
    await cell(page, 'First').dblclick()
    await server.service.patch(`${tables}/posts/p1`, { title: 'Theirs' })
    sheet.allow(/412/)
    await page.getByRole('textbox', { name: 'title of p1' }).fill('Mine')
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'The record was changed meanwhile' })
    await dialog.getByText('Theirs').waitFor()
    await dialog.getByText('Mine', { exact: true }).first().waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-conflict')
    expect((await stored('posts/p1')).title).toBe('Theirs')
    await dialog.getByRole('button', { name: 'Overwrite with mine' }).click()
    await page.getByText('title saved').waitFor()
    expect((await stored('posts/p1')).title).toBe('Mine')
    await server.service.patch(`${tables}/posts/p1`, { title: 'First' })
    expectNoFaults(sheet)
  })

  test('the panel shows every field by its type, keeps invalid text, and saves what was changed', async () => {
    await show('shared/posts?row=p1')
    const panel = page.getByRole('dialog')
    await panel.getByText('Ada Lovelace').waitFor()
    await panel.getByRole('textbox', { name: 'meta' }).waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-record')
    await panel.getByRole('textbox', { name: 'publishedAt' }).fill('the day before yesterday')
    await panel.getByRole('button', { name: 'Save' }).click()
    await panel.getByText('publishedAt is not a time').waitFor()
    expect(await panel.getByRole('textbox', { name: 'publishedAt' }).inputValue()).toBe('the day before yesterday')
    await panel.getByRole('textbox', { name: 'publishedAt' }).fill('2027-01-01T00:00:00Z')
    await panel.getByRole('textbox', { name: 'Latitude' }).fill('48.2')
    await panel.getByRole('textbox', { name: 'meta' }).fill('{"tags":[]}')
    await panel.getByRole('button', { name: 'Choose' }).click()
    await page.getByRole('button', { name: /Grace Hopper/ }).click()
    await panel.getByRole('combobox', { name: 'featured' }).click()
    await page.getByRole('option', { name: 'false' }).click()
    await panel.getByRole('button', { name: 'Save' }).click()
    await page.getByText('featured, publishedAt, meta, location, authorId saved').waitFor()
    expect(await stored('posts/p1')).toMatchObject({
      publishedAt: '2027-01-01T00:00:00.000Z',
      location: [13.4, 48.2],
      meta: { tags: [] },
      authorId: 'grace',
      featured: false,
      note: 'hidden',
    })
    await page.keyboard.press('Escape')
    await panel.waitFor({ state: 'detached' })
    expect(page.url()).not.toContain('row=')
    await server.service.patch(`${tables}/posts/p1`, { ...post, id: undefined })
    expectNoFaults(sheet)
  })

  test('a refused insert says which field is wrong, and keeps the form', async () => {
    await show('shared/posts?new=1')
    sheet.allow(/40[09]/)
    const panel = page.getByRole('dialog')
    await panel.getByRole('textbox', { name: 'title' }).fill('Post 1')
    await panel.getByRole('textbox', { name: 'views' }).fill('many')
    await panel.getByRole('button', { name: 'Insert' }).click()
    await panel.getByText('views is not a number').waitFor()
    await panel.getByRole('textbox', { name: 'views' }).fill('3')
    await panel.getByRole('button', { name: 'Insert' }).click()
    await panel.getByRole('alert').waitFor()
    await panel.getByRole('textbox', { name: 'title' }).fill('A title of its own')
    await panel.getByRole('button', { name: 'Insert' }).click()
    await page.getByText('Record inserted').waitFor()
    const { items } = await stored(`posts?filter=${encodeURIComponent('[["title","==","A title of its own"]]')}`)
    expect(items).toMatchObject([{ views: 3 }])
    await server.service.delete(`${tables}/posts/${items[0].id}`)
    expectNoFaults(sheet)
  })

  test('selected records are deleted after their table was typed', async () => {
    await server.service.post(`${tables}/empty/batch`, { inserts: [{ id: 'e1' }, { id: 'e2' }, { id: 'e3' }] })
    await show('shared/empty')
    await page.getByRole('checkbox', { name: 'Select record e1' }).click({ force: true })
    await page.getByRole('checkbox', { name: 'Select record e3' }).click({ force: true, modifiers: ['Shift'] })
    await page.getByText('3 selected').waitFor()
    await page.getByRole('button', { name: 'Delete' }).click()
    const dialog = page.getByRole('dialog')
    const confirm = dialog.getByRole('button', { name: 'Delete 3 records' })
    expect(await confirm.isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill('empty')
    await confirm.click()
    await page.getByText('No records yet').waitFor()
    expect((await stored('empty')).items).toEqual([])
    await takeScreenshots(sheet, 'data-empty')
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
  })

  test('any part of many rows and columns is shown, with small responses', async () => {
    const sizes: number[] = []
    page.on('response', async (response) => {
      if (response.url().includes('/tables/')) sizes.push((await response.body().catch(() => Buffer.alloc(0))).length)
    })
    await show('shared/many')
    await page.getByText('5,000 records').waitFor()
    const scroll = (top: number, left = 0): Promise<void> =>
      page.getByRole('grid').evaluate((grid, [y, x]) => grid.scrollTo(x, y), [top, left] as const)
    await scroll(2_500 * 34)
    await cell(page, '2505').waitFor()
    await scroll(10_000_000)
    await cell(page, '4999').waitFor()
    await page.getByRole('grid').focus()
    await page.keyboard.press('Control+Home')
    await cell(page, 'm000000').waitFor()
    await page.keyboard.press('Control+a')
    await page.keyboard.press('Control+c')
    await page.getByText('At most 20,000 cells are copied at once.').waitFor()
    await page.keyboard.press('Control+d')
    await page.getByText('At most 20,000 cells are changed at once.').waitFor()
    expect(await page.locator('.data-row').count()).toBeLessThan(60)
    await show('shared/wide')
    await cell(page, '0 c0').waitFor()
    await scroll(0, 20_000)
    await cell(page, '5 c100').waitFor()
    await scroll(60 * 34, 100_000)
    await cell(page, '59 c199').waitFor()
    expect(Math.max(...sizes)).toBeLessThan(100_000)
    expectNoFaults(sheet)
  })

  test('hostile texts are shown as text, in the grid, the panel, filters and addresses', async () => {
    const calls: string[] = []
    await page.exposeFunction('xss', () => void calls.push(page.url()))
    await show('shared/hostile')
    await page.getByText(`${xssPayloads.length} records`).waitFor()
    for (const top of [0, 600, 1_200, 1_800]) {
      await page.getByRole('grid').evaluate((grid, y) => grid.scrollTo(0, y), top)
      await page.locator('.data-pending').first().waitFor({ state: 'detached' })
    }
    for (const [at, text] of xssPayloads.entries()) {
      const filter = encodeURIComponent(JSON.stringify([['line', '==', text]]))
      if (at % 8 === 0) {
        await show(`shared/hostile?row=x${at}&filter=${filter}`)
        await page.getByRole('dialog').getByRole('textbox', { name: 'data' }).waitFor()
      }
    }
    const text = encodeURIComponent(xssPayloads[0] ?? '')
    await page.goto(`${server.url}/dashboard/data/${text}/${text}?tab=${text}&sort=${text}`)
    await page.getByText('There is no table').waitFor()
    expect(calls).toEqual([])
    expectNoFaults(sheet)
  })

  test('tables without declared fields, and tables of an instance', async () => {
    await show('shared/loose')
    await cell(page, 'goes').waitFor()
    await show('shared/loose?row=l1')
    await page.getByRole('dialog').getByRole('textbox', { name: 'nested' }).waitFor()
    await show('workspace')
    await page.getByRole('textbox', { name: 'Instance of workspace' }).fill('acme')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'tasks' }).click()
    await cell(page, 'Task of acme').waitFor()
    expectNoFaults(sheet)
  })

  test('the schema and the code of a table', async () => {
    await show('shared/posts?tab=schema')
    await page.getByText('hidden from users').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-schema')
    await show('shared/posts?tab=api')
    await page.getByText('plinth.db("shared").posts', { exact: false }).first().waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-api')
    expectNoFaults(sheet)
  })
})
