/** One request explained, in a real browser, against a real server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { request as openRequest } from 'node:http'
import type { Browser } from 'playwright-core'
import { buildDashboard } from '../../../../scripts/build/dashboard.ts'
import { or } from '../../../server/src/access/filter.ts'
import { openFunctionProject } from '../../../server/tests/harness/functions.ts'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { unlimitedRates } from '../../../server/tests/harness/users/accounts.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'
import { xssPayloads } from '../harness/xss-payloads.ts'

type Auth = { id: string } | null
const text = { type: 'string' } as const

const project = openFunctionProject(`
export const trims = before('shared.reviews', ['insert'], ({ row }) => ({ ...row, body: row.body.trim() }))
export const review = rpc({ caller: 'anyone' }, async (body, ctx) => (await ctx.service.db('shared').reviews.insert({ body })).id)
`)
afterAll(project.remove)

const config = {
  rateLimits: unlimitedRates,
  databases: {
    shared: {
      tables: {
        orders: {
          schema: { item: text, customerId: text, status: text, margin: { type: 'number' } },
          hidden: ['margin'],
          access: {
            read: (auth: Auth) => auth && or({ customerId: auth.id }, { status: 'public' }),
            insert: (auth: Auth) => auth && { customerId: auth.id },
          },
        },
        reviews: { schema: { body: text }, access: { insert: true } },
      },
    },
  },
} as const

describeInBrowser('Requests in the dashboard', 'requests in the dashboard', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  const base = '/api/db/shared/tables/orders'

  beforeAll(async () => {
    await buildDashboard()
    server = await startServer({ config, settings: { projectFolder: project.folder } })
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server)
    const orders = [
      { id: 'o-1001', item: 'Lamp', customerId: 'marie', status: 'open', margin: 0.4 },
      { id: 'o-1002', item: 'Desk', customerId: 'marie', status: 'public', margin: 0.2 },
    ]
    expect((await server.service.post(`${base}/batch`, { inserts: orders })).status).toBe(200)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  const idOf = (answer: { headers: Headers }): string => answer.headers.get('x-request-id') ?? ''
  const explained = async (answer: { headers: Headers }): Promise<void> => {
    await sheet.open(`/insights/requests/${idOf(answer)}`, /GET|POST/)
    await sheet.page.getByText('Replay').waitFor()
  }

  test('[DASH-27] a denied read is found in the list, and has the clause that decides and a way to the playground', async () => {
    const { page } = sheet
    await server.as('marie').get(`${base}/o-1001`)
    const denied = await server.as('omar').get(`${base}/o-1001?fields=item`)
    expect(denied.status).toBe(404)
    await sheet.open('/insights?tab=requests&status=4xx', 'Insights')
    await page.getByText('each request is traced').waitFor()
    await takeScreenshots(sheet, 'insights-requests')
    await page.getByRole('button', { name: `GET ${base}/o-1001` }).click()
    await page.waitForURL(/\/insights\/requests\//)
    await page.getByRole('heading', { name: 'The rules deny it: 404' }).waitFor()
    const clauses = page.locator('.request-clauses')
    await clauses.getByText('customerId == "omar"').waitFor()
    await clauses.getByText('"marie"').waitFor()
    await page.getByText('Credentials and rate limit').waitFor()
    await page.locator('.waterfall summary').first().click()
    await page.getByText('a ? stands for each value').first().waitFor()
    await page.getByText(`curl '${server.url}${base}/o-1001?fields=item'`).waitFor()
    expect(await page.locator('main').textContent()).toContain('$ACCESS_TOKEN')
    await takeScreenshots(sheet, 'insights-request', { height: 1100 })
    expect(await findBarriers(sheet)).toEqual([])

    await page.getByRole('link', { name: 'Why?' }).click()
    await page.getByRole('heading', { name: 'Denied 404' }).waitFor()
    expect(await page.getByLabel('Record id').inputValue()).toBe('o-1001')
    await page.goBack()
    await page.getByRole('link', { name: 'Log lines' }).click()
    await page.waitForURL(/\/logs\?request=/)
    expectNoFaults(sheet)
  })

  test('[DASH-27] a write has its waits, its commit and its body without hidden fields', async () => {
    const { page } = sheet
    await explained(await server.as('marie').post(base, { item: 'Chair', customerId: 'marie', status: 'open' }))
    for (const name of ['Wait for the writer', 'Commit'])
      await page.locator('.waterfall').getByText(name).first().waitFor()
    await page.getByRole('heading', { name: 'The rules allow it' }).waitFor()
    await page.getByText('"item":"Chair"').first().waitFor()
    await takeScreenshots(sheet, 'insights-request-write', { height: 1100 })
    await explained(await server.service.post(base, { item: 'Sofa', margin: 0.471193 }))
    await page.getByText('A service key passes all rules.').waitFor()
    expect(await page.locator('main').textContent()).not.toContain('0.471193')
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
  })

  test('[DASH-27] functions are in the waterfall, with their wait for a host', async () => {
    const { page } = sheet
    const called = await server.anonymous.post('/api/fn/review', ' A fine lamp ')
    expect(called.status).toBe(200)
    await explained(called)
    const rows = page.locator('.waterfall-row').filter({ hasText: /waited .* for a host/ })
    expect(await rows.count()).toBe(2)
    for (const name of ['review', 'trims']) await rows.filter({ hasText: `Function ${name}` }).waitFor()
    await page.getByRole('list', { name: 'Colors' }).getByText('Function').waitFor()
    await takeScreenshots(sheet, 'insights-request-function', { height: 1100 })
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
  })

  /** Sends what `fetch` would not: a path that is not encoded, and any user agent. */
  const sendRaw = (path: string, userAgent: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(server.url)
      const sent = openRequest({ hostname, port, path, headers: { 'User-Agent': userAgent } }, (response) => {
        response.resume()
        resolve(String(response.headers['x-request-id']))
      })
      sent.on('error', reject)
      sent.end()
    })

  test('markup in paths, parameters, bodies and user agents stays text', async () => {
    const { page } = sheet
    const calls: string[] = []
    await page.exposeFunction('xss', () => void calls.push(page.url()))
    const payloads = xssPayloads.filter((payload) => /^[\x20-\x7e]+$/.test(payload))
    const ids: string[] = []
    for (const payload of payloads) {
      const path = `${base}/${encodeURIComponent(payload)}?sort=${encodeURIComponent(payload)}`
      ids.push(await sendRaw(path, payload))
    }
    const rawPath = `${base}/<img/src=x/onerror=alert(1)>`
    ids.push(await sendRaw(rawPath, '<script>alert(1)</script>'))
    ids.push(idOf(await server.as('marie').post(base, { item: payloads[0], [payloads[1] ?? 'x']: payloads[2] })))
    await sheet.open('/insights?tab=requests&status=4xx', 'Insights')
    await page.getByRole('button', { name: /GET/ }).first().waitFor()
    for (const id of ids.slice(-12)) {
      await sheet.open(`/insights/requests/${id}`, /GET|POST/)
      await page.getByText('Replay').waitFor()
    }
    expect(await page.locator('main img, main script').count()).toBe(0)
    expect(calls).toEqual([])
    expectNoFaults(sheet)
  })

  test('a request that is not there, and one that was not sampled, say so', async () => {
    const { page } = sheet
    sheet.allow(/404 GET .*\/requests\/gone|status of 404/)
    await sheet.open('/insights/requests/gone', 'Request')
    await page.getByRole('alert').waitFor()
    const release = await startServer({ config: { ...config, dashboard: { requireMfa: false } }, mode: 'release' })
    const owner = await openSignedIn(browser, release)
    try {
      const answer = await release.anonymous.get('/api/health')
      await owner.open(`/insights/requests/${idOf(answer)}`, /GET/)
      await owner.page.getByText('This request was not sampled').waitFor()
      await takeScreenshots(owner, 'insights-request-unsampled')
      expect(await findBarriers(owner)).toEqual([])
      expectNoFaults(owner)
    } finally {
      await owner.close()
      await release.close()
    }
    expectNoFaults(sheet)
  })
})
