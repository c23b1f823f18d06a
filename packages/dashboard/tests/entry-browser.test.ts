/** The way into the dashboard in a real browser: set-up, sign-in, sessions that end, a server that restarts. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { open } from '../../server/tests/harness/config.ts'
import { createAdministrator } from '../../server/tests/harness/dashboard/administrators.ts'
import { describeInBrowser } from '../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, openSheet, type Sheet, takeScreenshots } from './harness/browser.ts'
import { signIn, startDashboardServer, type TestServer } from './harness/dashboard.ts'

const config = {
  databases: { shared: { tables: { notes: { schema: { title: { type: 'string' } }, access: open } } } },
} as const

describeInBrowser('The way into the dashboard', 'the way into the dashboard', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: Sheet
  beforeAll(async () => {
    server = await startDashboardServer(config)
    browser = await openBrowser(program)
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
  })
  beforeEach(async () => {
    sheet = await openSheet(browser)
  })
  afterEach(() => sheet.close())

  /** Without a session, the page learns it from a refusal. */
  const allowSignedOut = (): void => sheet.allow(/401/)

  test('from the set-up link to the first edited record', async () => {
    const { page } = sheet
    allowSignedOut()
    const first = await startDashboardServer(config)
    try {
      await first.service.post('/api/db/shared/tables/notes', { id: 'n1', title: 'As it was' })
      await page.goto(`${first.url}/setup#${await first.issueSetupToken()}`)
      await page.getByLabel('Email').waitFor()
      expect(page.url()).toBe(`${first.url}/dashboard/setup`)
      await takeScreenshots(sheet, 'setup')
      expect(await findBarriers(sheet)).toEqual([])
      await page.getByLabel('Email').fill('boss@example.org')
      await page.getByLabel('Password').fill('a long password')
      await page.getByRole('button', { name: 'Create administrator' }).click()
      await page.getByRole('heading', { name: 'Home' }).waitFor()
      await page.getByRole('link', { name: 'Data' }).click()
      await page.getByRole('link', { name: 'notes' }).click()
      await page.getByRole('gridcell', { name: 'As it was' }).dblclick()
      await page.getByRole('textbox', { name: 'title of n1' }).fill('Edited')
      await page.keyboard.press('Enter')
      await page.getByText('title saved').waitFor()
      const { body } = await first.service.get('/api/db/shared/tables/notes/n1')
      expect(body.title).toBe('Edited')
      expectNoFaults(sheet)
    } finally {
      await first.close()
    }
  })

  test('sign-in shows what is wrong, and opens the page that was requested', async () => {
    const { page } = sheet
    allowSignedOut()
    const user = await createAdministrator(server, 'viewer')
    await page.goto(`${server.url}/dashboard/data/shared/notes`)
    await page.getByLabel('Email').fill(user.email)
    await page.getByLabel('Password').fill('not the password')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByText('Email or password is wrong.').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'sign-in')
    await page.getByLabel('Password').fill(user.password)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'notes' }).waitFor()
    // A viewer writes nothing.
    await page.getByText('No records yet').waitFor()
    expect(await page.getByRole('button', { name: 'Insert' }).count()).toBe(0)
    expect(await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]))).toBe('[{},{}]')
    expectNoFaults(sheet)
  })

  test('a session that ends in the middle of a form loses nothing that was typed', async () => {
    const { page } = sheet
    const administrator = await signIn(sheet, server)
    await page.goto(`${server.url}/dashboard/data/shared/notes?new=1`)
    await page.getByRole('textbox', { name: 'title' }).fill('Typed before the session ended')
    await sheet.context.clearCookies()
    allowSignedOut()
    await page.getByRole('button', { name: 'Insert', exact: true }).last().click()
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'session-ended')
    expect(await dialog.getByLabel('Email').inputValue()).toBe(administrator.email)
    await dialog.getByLabel('Password').fill(administrator.password)
    await page.keyboard.press('Enter')
    await page.getByText('Record inserted').waitFor()
    const { body } = await server.service.get('/api/db/shared/tables/notes')
    expect(body.items.map(({ title }: { title: string }) => title)).toEqual(['Typed before the session ended'])
    expectNoFaults(sheet)
  })

  test('while the server cannot be reached a banner says so, and disappears by itself', async () => {
    const { page } = sheet
    const own = await startDashboardServer(config)
    try {
      await signIn(sheet, own)
      await page.goto(`${own.url}/dashboard/data`)
      await page.getByText('Choose a table').waitFor()
      sheet.allow(/.*/)
      await sheet.context.setOffline(true)
      await page.getByRole('link', { name: 'notes' }).click()
      await page.locator('.banner').waitFor()
      await takeScreenshots(sheet, 'unreachable')
      await sheet.context.setOffline(false)
      await page.locator('.banner').waitFor({ state: 'detached' })
      await page.getByText('No records yet').waitFor()
    } finally {
      await own.close()
    }
  })

  test('the palette, the shortcuts and the theme work by keyboard', async () => {
    const { page } = sheet
    await signIn(sheet, server)
    await page.goto(`${server.url}/dashboard`)
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    await takeScreenshots(sheet, 'home')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search' }).fill('note')
    await page.getByRole('option', { name: /notes/ }).waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'palette')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'notes' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('h')
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search' }).fill('dark')
    await page.keyboard.press('Enter')
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark')
    await page.goto(`${server.url}/dashboard/no/such/page`)
    await page.getByText('There is no such page').waitFor()
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark')
    expectNoFaults(sheet)
  })
})
