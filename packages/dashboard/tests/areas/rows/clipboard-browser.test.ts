/** Ranges of cells in a real browser: selection, copy, fill, paste, undo, refused cells. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { open } from '../../../../server/tests/harness/config.ts'
import { describeInBrowser } from '../../../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, type Sheet, takeScreenshots } from '../../harness/browser.ts'
import { signIn, startDashboardServer, type TestServer } from '../../harness/dashboard.ts'
import { openSignedIn } from '../../harness/signed-in.ts'

const config = {
  databases: {
    shared: {
      tables: {
        products: {
          schema: {
            name: { type: 'string' },
            price: { type: 'number', max: 100 },
            active: { type: 'boolean' },
            text: { type: 'text' },
            code: { type: 'string', unique: true },
          },
          access: open,
        },
      },
    },
  },
} as const
const products = '/api/db/shared/tables/products'
const long = `${'long '.repeat(100)}end`

describeInBrowser('The cells of the dashboard', 'ranges of cells', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: Sheet
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
    await server.service.post(`${products}/batch-by-filter`, { action: 'delete' })
    const inserts = Array.from({ length: 6 }, (_, at) => ({
      id: `p${at}`,
      name: `Name ${at}`,
      price: at,
      active: at % 2 === 0,
      text: at === 1 ? long : `Text "${at}"\tand more`,
    }))
    expect((await server.service.post(`${products}/batch`, { inserts })).status).toBe(200)
    sheet = await openSignedIn(browser, server, { permissions: ['clipboard-read', 'clipboard-write'] })
    page = sheet.page
    await page.goto(`${server.url}/dashboard/data/shared/products?columns=id,name,price,active,text&sort=id:asc`)
    await cell('Name 0').waitFor()
  })
  afterEach(() => sheet.close())

  const cell = (name: string) => page.getByRole('gridcell', { name, exact: true })
  const press = async (...keys: string[]): Promise<void> => {
    for (const key of keys) await page.keyboard.press(key)
  }
  const stored = async () => (await server.service.get(`${products}?sort=id:asc`)).body.items
  const copied = (): Promise<string> => page.evaluate(() => navigator.clipboard.readText())
  const paste = async (text: string): Promise<void> => {
    await page.evaluate((value) => navigator.clipboard.writeText(value), text)
    await press('Control+v')
  }

  test('a range is selected by keys and by mouse, and copied in full length', async () => {
    await cell('Name 0').click()
    await press('Shift+ArrowDown', 'Shift+ArrowRight', 'Control+c')
    await page.getByText('Copied 4 cells.').waitFor()
    expect(await copied()).toBe('Name 0\t0\nName 1\t1')
    await cell('p1').hover()
    await page.mouse.down()
    await cell('Name 2').hover()
    await page.mouse.up()
    expect(await page.locator('.data-cell.is-in-range').count()).toBe(4)
    await cell('Name 0').click()
    await page
      .locator('.data-row')
      .nth(1)
      .locator('.data-cell')
      .last()
      .click({ modifiers: ['Shift'] })
    await press('Control+c')
    await page.getByText('Copied 8 cells.').waitFor()
    expect(await copied()).toBe(`Name 0\t0\ttrue\t"Text ""0""\tand more"\nName 1\t1\tfalse\t${long}`)
    await press('Control+a')
    expect(await page.locator('.data-cell.is-in-range').count()).toBe(30)
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-range')
    expectNoFaults(sheet)
  })

  test('cells are pasted over a range, and the change is undone', async () => {
    await cell('Name 1').click()
    await paste('First\t10\ttrue\r\n"Two\nlines"\t11\tfalse\r\n')
    await page.getByText('6 cells of 2 records saved').waitFor()
    expect((await stored()).slice(1, 3)).toMatchObject([
      { name: 'First', price: 10, active: true, text: long },
      { name: 'Two\nlines', price: 11, active: false },
    ])
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('Undone.').waitFor()
    expect((await stored()).slice(1, 3)).toMatchObject([
      { name: 'Name 1', price: 1, active: false, text: long },
      { name: 'Name 2', price: 2, active: true },
    ])
    expectNoFaults(sheet)
  })

  test('the first row of a range fills the others, and undo restores a long text', async () => {
    await page.locator('.data-row').first().locator('.data-cell').last().click()
    await press('Shift+ArrowDown', 'Shift+ArrowDown', 'Control+d')
    await page.getByText('2 cells of 2 records saved').waitFor()
    expect((await stored()).slice(0, 3).map(({ text }: { text: string }) => text)).toEqual(
      Array(3).fill('Text "0"\tand more'),
    )
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('Undone.').waitFor()
    expect((await stored())[1].text).toBe(long)
    expectNoFaults(sheet)
  })

  test('a fill takes complete values, empty ones too, and a spreadsheet’s booleans are read', async () => {
    await server.service.patch(`${products}/p3`, { name: null })
    await page.getByRole('button', { name: 'Reload' }).click()
    const text = (row: number) => page.locator('.data-row').nth(row).locator('.data-cell').last()
    await text(1).click()
    await press('Shift+ArrowDown', 'Control+d')
    await page.getByText('1 cell of 1 record saved').waitFor()
    expect((await stored())[2].text).toBe(long)
    // In one row, the row above is repeated.
    await page.locator('.data-row').nth(4).locator('.data-cell').nth(1).click()
    await press('Control+d')
    await page.getByText('1 cell of 1 record saved').nth(1).waitFor()
    expect((await stored())[4].name).toBeNull()
    await page.locator('.data-row').nth(1).locator('.data-cell').nth(3).click()
    await paste('TRUE')
    await page.getByText('1 cell of 1 record saved').nth(2).waitFor()
    expect((await stored())[1].active).toBe(true)
    expectNoFaults(sheet)
  })

  test('the handle of a range fills the cells that it is dragged over, with one undo', async () => {
    const at = (row: number, column: number) => page.locator('.data-row').nth(row).locator('.data-cell').nth(column)
    const drag = async (row: number, column: number): Promise<void> => {
      await page.locator('.data-fill-handle').hover()
      await page.mouse.down()
      await at(row, column).hover()
      await page.locator('.data-fill-outline').waitFor()
    }
    await at(1, 1).click()
    await press('Shift+ArrowDown', 'Shift+ArrowRight')
    await drag(5, 2)
    await takeScreenshots(sheet, 'data-fill')
    await page.mouse.up()
    await page.getByText('6 cells of 3 records saved').waitFor()
    expect((await stored()).slice(1)).toMatchObject([
      { name: 'Name 1', price: 1 },
      { name: 'Name 2', price: 2 },
      { name: 'Name 1', price: 1 },
      { name: 'Name 2', price: 2 },
      { name: 'Name 1', price: 1 },
    ])
    expect(await page.locator('.data-cell.is-in-range').count()).toBe(10)
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('Undone.').waitFor()
    expect((await stored()).map(({ name }: { name: string }) => name)).toEqual(
      Array.from({ length: 6 }, (_, row) => `Name ${row}`),
    )
    // Upwards and sideways too; Escape changes nothing.
    await at(2, 1).click()
    await drag(0, 1)
    await press('Escape')
    await page.mouse.up()
    await at(2, 2).click()
    await drag(2, 1)
    await page.mouse.up()
    await page.getByText('1 cell of 1 record saved').waitFor()
    await at(3, 1).click()
    await drag(2, 1)
    await page.mouse.up()
    await page.getByText('1 cell of 1 record saved').nth(1).waitFor()
    expect((await stored()).map(({ name }: { name: string }) => name)).toEqual([
      'Name 0',
      'Name 1',
      'Name 3',
      'Name 3',
      'Name 4',
      'Name 5',
    ])
    expectNoFaults(sheet)
  })

  test('a fill leaves and names records with another version, and values that must be unique', async () => {
    sheet.allow(/4(?:09|12)/)
    await page.goto(`${server.url}/dashboard/data/shared/products?columns=id,name,code&sort=id:asc`)
    await cell('Name 0').click()
    await server.service.patch(`${products}/p2`, { name: 'Theirs' })
    await press('Shift+ArrowDown', 'Shift+ArrowDown', 'Shift+ArrowDown', 'Control+d')
    const dialog = page.getByRole('dialog', { name: '1 cell not saved' })
    await dialog.getByText('the record has changed').waitFor()
    await dialog.getByText('p2').waitFor()
    await page.getByText('2 cells of 2 records saved').waitFor()
    await press('Escape')
    expect((await stored()).slice(0, 4).map(({ name }: { name: string }) => name)).toEqual([
      'Name 0',
      'Name 0',
      'Theirs',
      'Name 0',
    ])
    await page.locator('.data-row').first().locator('.data-cell').last().click()
    await paste('unique')
    await page.getByText('1 cell of 1 record saved').waitFor()
    await press('Shift+ArrowDown', 'Shift+ArrowDown', 'Control+d')
    const refused = page.getByRole('dialog', { name: '2 cells not saved' })
    await refused.getByText('p1').waitFor()
    await refused.getByText('p2').waitFor()
    expect((await stored()).map(({ code }: { code: string }) => code ?? null).slice(0, 3)).toEqual([
      'unique',
      null,
      null,
    ])
    expectNoFaults(sheet)
  })

  test('invalid cells are named before anything is changed', async () => {
    await cell('Name 0').click()
    await paste('A\tcheap\nB\t5')
    const dialog = page.getByRole('dialog', { name: 'Change 3 cells?' })
    await dialog.getByText('is not a number').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-paste')
    expect((await stored())[0].name).toBe('Name 0')
    await dialog.getByRole('button', { name: 'Change 3 cells' }).click()
    await page.getByText('3 cells of 2 records saved').waitFor()
    expect((await stored()).slice(0, 2)).toMatchObject([
      { name: 'A', price: 0 },
      { name: 'B', price: 5 },
    ])
    expectNoFaults(sheet)
  })

  test('records that were changed meanwhile, and values that the server refuses, are left and named', async () => {
    sheet.allow(/4(?:00|12)/)
    await server.service.patch(`${products}/p1`, { name: 'Theirs' })
    await cell('Name 0').click()
    await paste('A\t1\nB\t2\nC\t500\nD\t4')
    const dialog = page.getByRole('dialog', { name: /cells? not saved/ })
    await dialog.getByText('the record has changed').first().waitFor()
    await dialog.getByText('p2').first().waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-paste-refused')
    expect((await stored()).slice(0, 4)).toMatchObject([
      { name: 'A', price: 1 },
      { name: 'Theirs', price: 1 },
      { name: 'Name 2', price: 2 },
      { name: 'D', price: 4 },
    ])
    expectNoFaults(sheet)
  })

  test('a viewer copies and changes nothing', async () => {
    await signIn(sheet, server, 'viewer')
    await page.reload()
    await cell('Name 0').click()
    await paste('A')
    await press('Shift+ArrowDown', 'Control+d', 'Control+c')
    await page.getByText('Copied 2 cells.').waitFor()
    expect(await copied()).toBe('Name 0\nName 1')
    expect((await stored())[0].name).toBe('Name 0')
    expectNoFaults(sheet)
  })
})
