/** The area "Insights" in a real browser, against a real server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { startDashboardServer, type TestServer } from '../harness/dashboard.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'

const text = { type: 'string' } as const
const config = {
  databases: {
    shared: {
      tables: {
        notes: { schema: { title: text }, access: { read: true } },
        orders: {
          schema: { number: { ...text, unique: true }, customerId: text, status: text, note: text },
          indexes: [{ fields: ['customerId', 'status'] }, { fields: ['status'] }],
          search: ['note'],
          access: {},
        },
        customers: { schema: { email: { ...text, unique: true }, name: text }, access: {} },
      },
    },
    teams: { instance: true, access: () => true, tables: { tasks: { schema: { title: text }, access: {} } } },
  },
} as const

const payload = '<img src=x onerror=alert(1)>'

describeInBrowser('Insights in the dashboard', 'insights in the dashboard', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  beforeAll(async () => {
    server = await startDashboardServer(config)
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server, { role: 'viewer' })
    for (let at = 0; at < 12; at++) await server.anonymous.get('/api/db/shared/tables/notes?limit=5')
    await server.anonymous.get('/api/db/shared/tables/notes/missing')
    const events = [{ name: 'checkout' }, { name: 'checkout' }, { name: payload }]
    const tracked = await server.service.post('/api/analytics/track', { events })
    expect(tracked).toMatchObject({ status: 200 })
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  test('traffic shows how many requests each endpoint had', async () => {
    const { page } = sheet
    await sheet.open('/insights', 'Insights')
    await page.getByRole('row', { name: /records.list 12/ }).waitFor()
    expect(await page.getByRole('img', { name: 'Requests over time' }).count()).toBe(1)
    await page.getByRole('combobox', { name: 'Range' }).click()
    await page.getByRole('option', { name: 'Last hour' }).click()
    await page.waitForURL(/range=1h/)
    await page.getByRole('row', { name: /records.list 12/ }).waitFor()
    await takeScreenshots(sheet, 'insights-traffic')
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
  })

  test('events are counted by name, which stays text', async () => {
    const { page } = sheet
    await sheet.open('/insights?tab=events', 'Insights')
    await page.getByRole('row', { name: /checkout 2/ }).waitFor()
    await page.getByText(payload).first().waitFor()
    expect(await page.locator('img').count()).toBe(0)
    await takeScreenshots(sheet, 'insights-events')
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
  })

  test('one of the last requests is found and explained', async () => {
    const { page } = sheet
    await sheet.open('/insights?tab=requests', 'Insights')
    await page.getByRole('searchbox').fill('/api/db/shared/tables/notes')
    await page.waitForURL(/path=/)
    await page.getByRole('combobox', { name: 'Status' }).click()
    await page.getByRole('option', { name: '4xx' }).click()
    await page.getByRole('button', { name: 'GET /api/db/shared/tables/notes/missing' }).click()
    await page.getByText('not-found').waitFor()
    await page.getByText('curl').waitFor()
    await page.getByRole('link', { name: /^anonymous:/ }).click()
    await page.waitForURL(/caller=anonymous/)
    await page.getByRole('button', { name: 'GET /api/db/shared/tables/notes/missing' }).waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
  })

  test('[DASH-61] the size of each table, and of its parts', async () => {
    const { page } = sheet
    const insert = async (table: string, inserts: readonly object[]) =>
      expect((await server.service.post(`/api/db/shared/tables/${table}/batch`, { inserts })).status).toBe(200)
    const note = 'Leave the parcel with the neighbors on the left, and ring twice if it is heavy.'
    for (let page = 0; page < 15; page++)
      await insert(
        'orders',
        Array.from({ length: 200 }, (_, at) => ({
          number: `A-${page}-${at}`,
          customerId: `customer-${(at * 7) % 50}`,
          status: at % 3 === 0 ? 'open' : 'shipped',
          note: `${note} ${at}`,
        })),
      )
    await insert(
      'customers',
      Array.from({ length: 120 }, (_, at) => ({ email: `customer-${at}@example.com`, name: `Customer ${at}` })),
    )
    await sheet.open('/insights?tab=tables', 'Insights')
    await page.getByRole('row', { name: /shared\.orders 3,000/ }).waitFor()
    await page.getByText('instances are files of their own: teams.tasks').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('button', { name: 'shared.orders' }).click()
    await page.waitForURL(/of=shared\.orders/)
    const parts = page.getByRole('table', { name: 'Parts of shared.orders' })
    for (const name of [/customerId, status index/, /number unique/, /id key/, /note search/])
      await parts.getByRole('row', { name }).waitFor()
    await takeScreenshots(sheet, 'insights-tables', { height: 980 })
    expect(await findBarriers(sheet)).toEqual([])

    await page.getByRole('link', { name: 'Schema' }).click()
    await page.getByRole('row', { name: /customerId, status index .* kB/ }).waitFor()
    await takeScreenshots(sheet, 'data-schema-sizes', { height: 1000 })
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('link', { name: /^3,000 records/ }).click()
    await parts.waitFor()
    expectNoFaults(sheet)
  })
})
