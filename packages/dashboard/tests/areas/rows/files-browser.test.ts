/** Imports and exports of the area "Data" in a real browser: mapping, check, import, upsert, resumption, download. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { open } from '../../../../server/tests/harness/config.ts'
import { describeInBrowser } from '../../../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, type Sheet, takeScreenshots } from '../../harness/browser.ts'
import { startDashboardServer, type TestServer } from '../../harness/dashboard.ts'
import { openSignedIn } from '../../harness/signed-in.ts'

const config = {
  databases: {
    shared: {
      tables: {
        products: {
          schema: {
            sku: { type: 'string', unique: true, required: true },
            name: { type: 'string', max: 20 },
            price: { type: 'number', min: 0 },
            inStock: { type: 'boolean' },
            note: { type: 'string' },
          },
          hidden: ['note'],
          access: open,
        },
      },
    },
  },
} as const
const products = '/api/db/shared/tables/products'
const faulty = `SKU;Name;Price;in_stock;Supplier
k-1;Kite;8;true;Ann
k-2;A name that is much too long;9;true;Ann
k-3;"Mug; large";cheap;false;Bob
k-4;=1+1;3;maybe;Bob
`
const right = `SKU;Name;Price;in_stock;Supplier
k-1;Kite;8;true;Ann
k-2;Ball;9;true;Ann
k-3;"Mug; large";7;false;Bob
k-4;=1+1;3;true;Bob
`

describeInBrowser('Imports and exports of the dashboard', 'imports and exports', (program) => {
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
    sheet = await openSignedIn(browser, server)
    page = sheet.page
    await page.goto(`${server.url}/dashboard/data/shared/products`)
    await page.getByRole('button', { name: 'All records' }).waitFor()
  })
  afterEach(() => sheet.close())

  const choose = async (action: string): Promise<void> => {
    await page.getByRole('button', { name: 'All records' }).click()
    await page.getByRole('menuitem', { name: action }).click()
  }
  const give = (name: string, text: string): Promise<void> =>
    page.getByLabel('File', { exact: true }).setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(text) })
  const stored = async () => (await server.service.get(`${products}?sort=sku:asc`)).body.items

  test('a file is mapped by the names of its columns, checked line by line, and stored once', async () => {
    sheet.allow(/400 POST/)
    sheet.allow(/Failed to load resource/)
    await choose('Import…')
    const dialog = page.getByRole('dialog', { name: 'Import into products' })
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-import-empty')
    await give('products.csv', faulty)
    await dialog.getByRole('combobox', { name: 'Field of in_stock' }).getByText('inStock').waitFor()
    await dialog.getByRole('combobox', { name: 'Field of Supplier' }).getByText('Leave out').waitFor()
    await dialog.getByRole('combobox', { name: 'Field of SKU' }).getByText('sku').waitFor()
    await dialog.getByRole('button', { name: 'Check every line' }).click()
    await dialog.getByText('3 lines cannot be stored').waitFor()
    const faults = dialog.getByRole('list', { name: 'Faulty lines' })
    expect(await faults.getByRole('listitem').allInnerTexts()).toEqual([
      expect.stringMatching(/Line 3\s+name: /),
      expect.stringMatching(/Line 4\s+price: must be a number/),
      expect.stringMatching(/Line 5\s+inStock: must be true or false/),
    ])
    expect(await stored()).toEqual([])
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-import-faults')
    await give('products.csv', right)
    await dialog.getByRole('button', { name: 'Check every line' }).click()
    await dialog.getByText('The import would have 4 inserted, 0 updated').waitFor()
    expect(await stored()).toEqual([])
    await dialog.getByRole('button', { name: 'Import', exact: true }).click()
    await dialog.getByText('Imported into products: 4 inserted, 0 updated.').waitFor()
    // The same batch again has its first answer.
    await dialog.getByRole('button', { name: 'Import', exact: true }).click()
    await dialog.getByText('Imported into products: 4 inserted, 0 updated.').waitFor()
    expect(await stored()).toMatchObject([
      { sku: 'k-1', name: 'Kite', price: 8, inStock: true },
      { sku: 'k-2', name: 'Ball' },
      { sku: 'k-3', name: 'Mug; large', inStock: false },
      { sku: 'k-4', name: '=1+1' },
    ])
    expectNoFaults(sheet)
  })

  test('records are updated by a unique field, from NDJSON and JSON', async () => {
    await server.service.post(products, { sku: 'a', name: 'Old', price: 1 })
    await choose('Import…')
    const dialog = page.getByRole('dialog', { name: 'Import into products' })
    await give('more.ndjson', '{"sku":"a","name":"New"}\n{"sku":"b","price":2}\n')
    await dialog.getByRole('combobox', { name: 'Existing records' }).click()
    await page.getByRole('option', { name: 'Update by sku' }).click()
    await dialog.getByRole('button', { name: 'Import', exact: true }).click()
    await dialog.getByText('1 inserted, 1 updated').waitFor()
    await give('more.json', '[{"sku":"a","price":5},\n{"sku":"c"}]')
    await dialog.getByRole('button', { name: 'Import', exact: true }).click()
    await dialog.getByText('1 inserted, 1 updated').waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('3 records').waitFor()
    expect(await stored()).toMatchObject([
      { sku: 'a', name: 'New', price: 5 },
      { sku: 'b', price: 2 },
      { sku: 'c', price: null },
    ])
    expectNoFaults(sheet)
  })

  test('an import of many batches is canceled, and continues without storing a record twice', async () => {
    const rows = 3_000
    const lines = Array.from({ length: rows }, (_, at) => `s${at},Product ${at},${at}`)
    await choose('Import…')
    const dialog = page.getByRole('dialog', { name: 'Import into products' })
    await give('many.csv', `sku,name,price\n${lines.join('\n')}\n`)
    let release = (): void => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    let sent = 0
    await page.route('**/batch/import', async (route) => {
      if (++sent === 4) await released
      await route.continue().catch(() => {})
    })
    await dialog.getByRole('button', { name: 'Import', exact: true }).click()
    await dialog.getByText('600 inserted').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.getByText('Import again to continue').waitFor()
    release()
    await dialog.getByRole('button', { name: 'Import', exact: true }).click()
    await dialog.getByText('3,000 inserted, 0 updated').waitFor()
    expect((await server.service.get(`${products}?limit=1`)).body.total).toBe(rows)
    expectNoFaults(sheet)
  })

  test('the records of a view are downloaded, without hidden fields unless they are wanted', async () => {
    await server.service.post(`${products}/batch`, {
      inserts: [
        { sku: 'a', name: '=1+1', price: 1, note: 'hush' },
        { sku: 'b', name: 'Ball', price: 2 },
      ],
    })
    await page.goto(
      `${server.url}/dashboard/data/shared/products?columns=sku,name&filter=${encodeURIComponent('[["price","<",2]]')}`,
    )
    await page.getByRole('grid').waitFor()
    const download = async (fields: string, format: string): Promise<string> => {
      await choose('Export…')
      const dialog = page.getByRole('dialog', { name: 'Export products' })
      await dialog.getByRole('combobox', { name: 'Format' }).click()
      await page.getByRole('option', { name: format }).click()
      await dialog.getByRole('combobox', { name: 'Fields' }).click()
      await page.getByRole('option', { name: fields }).click()
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        dialog.getByRole('button', { name: 'Export', exact: true }).click(),
      ])
      await dialog.waitFor({ state: 'detached' })
      return readFileSync(await file.path(), 'utf8')
    }
    await choose('Export…')
    await page.getByRole('dialog', { name: 'Export products' }).getByText('1 record of this view').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-export')
    await page.keyboard.press('Escape')
    const csv = await download('All but hidden fields', 'CSV')
    expect(csv).toStartWith('id,sku,name,price,inStock,createdAt,updatedAt\r\n')
    expect(csv).toContain(",a,'=1+1,1,")
    expect(csv).not.toContain('hush')
    expect(csv.split('\r\n')).toHaveLength(3)
    expect(await download('Columns of this view', 'CSV')).toBe("sku,name\r\na,'=1+1\r\n")
    expect(JSON.parse(await download('All, hidden fields too', 'NDJSON'))).toMatchObject({ sku: 'a', note: 'hush' })
    expectNoFaults(sheet)
  })
})
