/** The area "Logs" in a real browser, against a real server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { startDashboardServer, type TestServer } from '../harness/dashboard.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'

const config = {
  databases: { shared: { tables: { notes: { schema: { title: { type: 'string' } }, access: { read: true } } } } },
} as const

describeInBrowser('Logs in the dashboard', 'logs in the dashboard', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  beforeAll(async () => {
    server = await startDashboardServer(config)
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server, { role: 'viewer' })
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  test('lines are found by text and by request, and shown in full', async () => {
    const { page } = sheet
    const marked = await server.anonymous.get('/api/db/shared/tables/notes/marked-record')
    expect(marked.status).toBe(404)
    const requestId = marked.headers.get('x-request-id') ?? ''
    await sheet.open('/logs?level=debug', 'Logs')
    await page.getByRole('searchbox').fill('marked-record')
    const line = page.getByRole('row', { name: /marked-record/ })
    await line.waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await line.getByRole('button').click()
    await page.getByText(`"requestId": "${requestId}"`).waitFor()
    await takeScreenshots(sheet, 'logs')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('button', { name: 'Only this request' }).click()
    await page.waitForURL(/request=/)
    await page.getByRole('button', { name: 'Remove the filter Request' }).click()
    await page.getByRole('searchbox').fill('no line has this text')
    await page.getByText('No lines').waitFor()
    expectNoFaults(sheet)
  })

  test('markup in a path stays text', async () => {
    const { page } = sheet
    const payload = '<img src=x onerror=alert(1)>'
    await server.anonymous.get(`/api/db/shared/tables/notes/${encodeURIComponent(payload)}`)
    await sheet.open('/logs?level=debug&q=onerror', 'Logs')
    await page
      .getByRole('row', { name: /onerror/ })
      .first()
      .getByRole('button')
      .click()
    await page.locator('pre').getByText('onerror').waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expectNoFaults(sheet)
  })
})
