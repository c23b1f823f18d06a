/** The area "Logs" in a real browser, against a real server, and against one of two nodes. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { buildDashboard } from '../../../../scripts/build/dashboard.ts'
import { sharedEngine } from '../../../server/tests/harness/engines.ts'
import { type Nodes, openNodes } from '../../../server/tests/harness/nodes.ts'
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

if (sharedEngine)
  describeInBrowser('Logs of several nodes in the dashboard', 'logs of several nodes in the dashboard', (program) => {
    let browser: Browser
    let nodes: Nodes
    let sheet: SignedIn
    beforeAll(async () => {
      await buildDashboard()
      nodes = await openNodes(sharedEngine, 2, { config })
      browser = await openBrowser(program)
      sheet = await openSignedIn(browser, nodes.nodes[0] as TestServer, { role: 'viewer' })
    })
    afterAll(async () => {
      await browser?.close()
      await nodes?.close()
    })

    test('lines of both nodes are in one list, and of one node on demand', async () => {
      const { page } = sheet
      for (const [at, node] of nodes.nodes.entries())
        for (const path of ['notes', 'notes/count', 'notes/search', `notes/of-node-${at}`])
          await node.anonymous.get(`/api/db/shared/tables/${path}`)
      await sheet.open('/logs?level=info&q=shared/tables', 'Logs')
      await page.getByText('The recent lines of 2 nodes, newest first.').waitFor()
      for (const name of [/of-node-0/, /of-node-1/]) await page.getByRole('row', { name }).waitFor()
      expect(await findBarriers(sheet)).toEqual([])
      await takeScreenshots(sheet, 'logs-nodes')
      await page
        .getByRole('row', { name: /of-node-1/ })
        .getByRole('button')
        .click()
      await page.getByRole('button', { name: 'Only this node' }).click()
      await page.waitForURL(/node=/)
      await page.getByRole('row', { name: /of-node-0/ }).waitFor({ state: 'detached' })
      await page
        .getByRole('row', { name: /of-node-1/ })
        .first()
        .waitFor()
      await page.getByRole('combobox', { name: 'Node' }).click()
      await page.getByRole('option', { name: 'All nodes' }).click()
      await page.getByRole('row', { name: /of-node-0/ }).waitFor()
      expectNoFaults(sheet)
    })
  })
