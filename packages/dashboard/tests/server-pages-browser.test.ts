/** The pages that the server has without the dashboard, which share its look: `/`, `/docs` and `/setup`. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { describeInBrowser } from '../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../server/tests/harness/server.ts'
import { expectNoFaults, findBarriers, openBrowser, openSheet, type Sheet, takeScreenshots } from './harness/browser.ts'

const text = { type: 'string' } as const

describeInBrowser('The pages of the server', 'the pages of the server', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: Sheet
  beforeAll(async () => {
    server = await startServer({
      config: {
        dashboard: false,
        api: { schemaEndpoint: true },
        databases: { shared: { tables: { posts: { schema: { title: text, body: text }, access: { read: true } } } } },
      },
    })
    browser = await openBrowser(program)
    sheet = await openSheet(browser)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  for (const [path, heading] of [
    ['/', 'Plinth'],
    ['/docs', /API/],
    ['/setup#token', 'Welcome to Plinth'],
  ] as const)
    test(`${path} has no barriers in light and in dark`, async () => {
      const { page } = sheet
      await page.goto(server.url + path)
      await page.getByRole('heading', { level: 1, name: heading }).waitFor()
      if (path === '/docs') await page.getByRole('heading', { level: 3 }).first().waitFor()
      await takeScreenshots(sheet, `page-${path.replaceAll(/\W|token/g, '') || 'home'}`)
      for (const colorScheme of ['dark', 'light'] as const) {
        await page.emulateMedia({ colorScheme })
        expect(await findBarriers(sheet)).toEqual([])
      }
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
      expectNoFaults(sheet)
    })

  test('/setup creates the first administrator', async () => {
    const { page } = sheet
    await page.goto('about:blank')
    await page.goto(`${server.url}/setup#${await server.issueSetupToken()}`)
    await page.getByLabel('Email').fill('ada@example.com')
    await page.getByLabel('Password').fill('a long password')
    await page.getByRole('button', { name: 'Create administrator' }).click()
    await page.getByText('The first administrator has been created').waitFor()
    expectNoFaults(sheet)
  })
})
