/**
 * Takes the pictures of the guides from a server with the data of a shop. `npm run pictures` stores them in
 * `docs/images`; a test run only proves that each can be taken.
 */
import { afterAll, afterEach, beforeAll, beforeEach, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import sharp from 'sharp'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, openBrowser, screenshotFolder } from '../harness/browser.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'
import { openShop, orderId, type Shop } from './shop.ts'

const folder = process.env.PLINTH_TEST_PICTURES ?? join(screenshotFolder, 'guide')
const orders = '/api/db/shared/tables/orders'
const query = (parameters: Readonly<Record<string, string>>): string => `?${new URLSearchParams(parameters)}`

describeInBrowser('Pictures of the guides', 'the pictures of the guides', (program) => {
  let browser: Browser
  let shop: Shop
  let sheet: SignedIn
  let page: Page
  beforeAll(async () => {
    shop = await openShop()
    browser = await openBrowser(program)
    mkdirSync(folder, { recursive: true })
  })
  afterAll(async () => {
    await browser?.close()
    await shop?.close()
  })
  beforeEach(async () => {
    sheet = await openSignedIn(browser, shop.server, {
      colorScheme: 'light',
      reducedMotion: 'reduce',
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    page = sheet.page
  })
  afterEach(() => sheet.close())

  /** Few colors: flat surfaces and text look the same with a third of the bytes. */
  const picture = async (name: string, height = 800): Promise<void> => {
    await page.setViewportSize({ width: 1280, height })
    const image = sharp(await page.screenshot()).png({ palette: true, colors: 128, dither: 0, effort: 10 })
    await image.toFile(join(folder, `dashboard-${name}.png`))
    expectNoFaults(sheet)
  }
  const show = (path: string): Promise<unknown> => page.goto(`${shop.server.url}/dashboard/data/${path}`)
  const cell = (name: string) => page.getByRole('gridcell', { name, exact: true })
  const choose = async (action: string): Promise<void> => {
    await page.getByRole('button', { name: 'All records' }).click()
    await page.getByRole('menuitem', { name: action }).click()
  }

  test('home', async () => {
    for (let at = 0; at < 40; at++) await shop.server.as('c-1').get(`${orders}?sort=placedAt:desc`)
    await sheet.open('/', 'Home')
    await page.locator('summary', { hasText: 'Anyone can create records' }).click()
    await page.getByText('a script can fill, change or empty it').waitFor()
    await page.getByText('Lists would use an index').first().waitFor()
    await picture('home', 1000)
  })

  test('data', async () => {
    await show(`shared/orders${query({ filter: '[["status","!=","returned"]]', sort: 'placedAt:desc' })}`)
    await page.getByText(/^[\d,]+ records$/).waitFor()
    await page.locator('.data-pending').first().waitFor({ state: 'detached' })
    await picture('data')
  })

  test('record', async () => {
    await show(`shared/orders${query({ row: orderId(3) })}`)
    const panel = page.getByRole('dialog')
    await panel.getByRole('textbox', { name: 'address' }).waitFor()
    await panel.getByText('Omar Khayyam').waitFor()
    await picture('record')
  })

  test('live', async () => {
    await show(`shared/orders${query({ live: '1', columns: 'id,item,status,total,placedAt' })}`)
    await cell(orderId(1)).waitFor()
    await page.locator('.data-live-switch.is-live').waitFor()
    await shop.server.service.post(`${orders}/batch`, { inserts: [{ item: 'Globe' }, { item: 'Notebook' }] })
    await page.getByText('2 new records').waitFor()
    for (const [at, change] of [
      [2, { status: 'returned' }],
      [5, { total: 7.5 }],
      [6, { status: 'paid', total: 12 }],
    ] as const)
      await shop.server.service.patch(`${orders}/${orderId(at)}`, change)
    await page.locator('.data-cell.is-flashing', { hasText: '12' }).first().waitFor()
    await picture('live')
  })

  test('paste', async () => {
    await show(`shared/products${query({ columns: 'name,price,stock,available,sku', sort: 'sku:asc' })}`)
    await cell('Desk lamp classic').first().click()
    await page.evaluate(() => navigator.clipboard.writeText('Desk lamp, brass\t24.50\nGlobe, 30 cm\tcheap'))
    await page.keyboard.press('Control+v')
    await page.getByRole('dialog', { name: 'Change 3 cells?' }).getByText('is not a number').waitFor()
    await picture('paste')
  })

  test('bulk', async () => {
    await show(`shared/orders${query({ filter: '[["status","==","open"]]' })}`)
    await page.getByText(/^[\d,]+ records$/).waitFor()
    await choose('Change matching…')
    const dialog = page.getByRole('dialog', { name: 'Change matching records' })
    await dialog.getByRole('combobox', { name: 'Field 1' }).click()
    await page.getByRole('option', { name: 'status' }).click()
    await dialog.getByRole('combobox', { name: 'New value of status' }).click()
    await page.getByRole('option', { name: 'paid' }).click()
    await dialog
      .getByRole('cell', { name: /open becomes paid/ })
      .first()
      .waitFor()
    await picture('bulk')
  })

  test('import', async () => {
    sheet.allow(/400 POST|Failed to load resource/)
    await show('shared/products')
    await cell('p-1').waitFor()
    await choose('Import…')
    const text = `SKU;Name;Price;Available;Shelf
SKU-301;Sundial;48;true;12
SKU-302;A barometer with a name that is longer than a product may have;90;true;12
SKU-303;"Map; large";cheap;true;4
SKU-304;Hourglass;15;maybe;4
`
    const file = { name: 'products.csv', mimeType: 'text/csv', buffer: Buffer.from(text) }
    await page.getByLabel('File', { exact: true }).setInputFiles(file)
    await page.getByRole('button', { name: 'Check every line' }).click()
    await page.getByText('3 lines cannot be stored').waitFor()
    await picture('import')
  })

  test('diagram', async () => {
    await page.goto(`${shop.server.url}/dashboard/data`)
    await page.getByRole('link', { name: 'Diagram' }).click()
    await page.getByText('suppliers').last().waitFor()
    await picture('diagram')
  })

  test('view-as', async () => {
    await sheet.open(`/users/${shop.marie}`, 'Marie Curie')
    await page.getByRole('button', { name: 'View as user' }).click()
    await page.getByRole('region', { name: 'Viewing as a user' }).waitFor()
    await page.getByRole('link', { name: 'orders' }).click()
    await cell('m-1').waitFor()
    await picture('view-as')
  })

  test('mails', async () => {
    await sheet.open('/settings?tab=mails', 'Settings')
    await page
      .frameLocator('iframe')
      .getByRole('link', { name: /Atlas Shop/ })
      .waitFor()
    await picture('mails', 1000)
  })

  test('push', async () => {
    await sheet.open('/push', 'Push')
    await page.getByLabel('User id').first().fill(shop.marie)
    await page.getByText('Reaches 1 device (1 web).').waitFor()
    await page.getByLabel('Title').fill('Your order is on its way')
    await page.getByLabel('Text').fill('The globe arrives tomorrow between 9 and 12.')
    await page.getByLabel('Link').fill('https://shop.example.com/orders/m-1')
    await page.getByLabel('Data').fill('{"order": "m-1"}')
    await page.locator('.push-preview').getByText('The globe arrives').waitFor()
    await picture('push')
  })

  test('request', async () => {
    const { headers } = await shop.server.as('omar').get(`${orders}/${orderId(0)}?fields=item`)
    await sheet.open(`/insights/requests/${headers.get('x-request-id')}`, /GET/)
    await page.getByRole('heading', { name: 'The rules deny it: 404' }).waitFor()
    await page.getByText('Credentials and rate limit').waitFor()
    await picture('request', 1000)
  })

  test('logs', async () => {
    for (let at = 0; at < 6; at++) await shop.server.as('omar').get(`${orders}/${orderId(at)}?fields=item`)
    await sheet.open(`/logs${query({ level: 'info', q: 'tables/orders' })}`, 'Logs')
    const lines = page.getByRole('row', { name: new RegExp(orderId(5)) })
    await lines.first().getByRole('button').click()
    await page.getByRole('button', { name: 'Only this request' }).waitFor()
    await picture('logs')
  })

  test('tables', async () => {
    await sheet.open(`/insights${query({ tab: 'tables', of: 'shared.orders' })}`, 'Insights')
    await page.getByText('status, placedAt').waitFor()
    await picture('tables', 980)
  })

  test('shadow-run', async () => {
    const callers = JSON.stringify(['anonymous', 'claims:{"id":"c-1"}'])
    await sheet.open(
      `/rules/shadow${query({ namespace: 'shared', table: 'orders', operation: 'read', callers })}`,
      'Rules',
    )
    await page.getByRole('textbox', { name: 'Text of the rule' }).click()
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.insertText(
      "(auth) => auth\n  ? or({ customerId: auth.id }, and({ status: 'returned' }, { item: 'Globe' }))\n  : { status: 'returned' }",
    )
    await page.keyboard.press('ControlOrMeta+Enter')
    await page.getByText('2 callers would see a difference.').waitFor()
    await picture('shadow-run', 1180)
  })

  test('shape', async () => {
    const shape = JSON.stringify([
      { kind: 'add', field: { name: 'priority', type: 'number', required: true, unique: false, default: 0 } },
      { kind: 'index', fields: ['priority', 'placedAt'], unique: false },
    ])
    await show(`shared/orders${query({ tab: 'schema', shape })}`)
    await page.getByRole('region', { name: 'Changed lines' }).waitFor()
    await picture('shape', 900)
  })
})
