/** Rows that change while they are shown: live mode, restarts of the server, and two administrators on one record. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { open } from '../../../../server/tests/harness/config.ts'
import { describeInBrowser } from '../../../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, openSheet, takeScreenshots } from '../../harness/browser.ts'
import { signIn, startDashboardServer, type TestServer } from '../../harness/dashboard.ts'
import { openSignedIn, type SignedIn } from '../../harness/signed-in.ts'

const config = {
  databases: {
    shared: {
      tables: {
        notes: {
          schema: {
            title: { type: 'string' },
            status: { type: 'string' },
            due: { type: 'datetime' },
            secret: { type: 'string' },
          },
          hidden: ['secret'],
          search: ['title'],
          access: open,
        },
      },
    },
  },
} as const
const notes = '/api/db/shared/tables/notes'

/** A port that is free now: the server must come back at the address that the page has. */
async function findPort(): Promise<number> {
  const listener = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const port = Number(listener.port)
  await listener.stop(true)
  return port
}

describeInBrowser('Changing rows of the dashboard', 'the live mode of Data', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  let page: Page
  beforeAll(async () => {
    server = await startDashboardServer(config, { settings: { port: await findPort() } })
    browser = await openBrowser(program)
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
  })
  beforeEach(async () => {
    const { body } = await server.service.get(`${notes}?limit=1000`)
    const deletes = body.items.map(({ id }: { id: string }) => id)
    const inserts = Array.from({ length: 60 }, (_, at) => ({
      id: `n${String(at).padStart(3, '0')}`,
      title: `Note ${at}`,
      status: 'open',
    }))
    await server.service.post(`${notes}/batch`, { deletes })
    await server.service.post(`${notes}/batch`, { inserts })
    sheet = await openSignedIn(browser, server)
    page = sheet.page
  })
  afterEach(() => sheet.close())

  const show = (query = ''): Promise<unknown> => page.goto(`${server.url}/dashboard/data/shared/notes${query}`)
  const cell = (name: string, on = page) => on.getByRole('gridcell', { name, exact: true })
  const isLive = (): Promise<void> => page.locator('.data-live-switch.is-live').waitFor()

  test('changed rows flash, new ones are counted, deleted ones are struck and leave', async () => {
    const messages: string[] = []
    page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => void messages.push(String(payload))))
    await show()
    await cell('Note 1').waitFor()
    await page.getByRole('button', { name: 'Live' }).click()
    await isLive()
    expect(page.url()).toContain('live=1')
    await server.service.patch(`${notes}/n001`, { title: 'Renamed elsewhere' })
    await cell('Renamed elsewhere').waitFor()
    await page.locator('.data-cell.is-flashing', { hasText: 'Renamed elsewhere' }).waitFor()
    expect(
      await page.locator('.data-row', { hasText: 'Renamed' }).locator('.is-flashing', { hasText: 'open' }).count(),
    ).toBe(0)
    await server.service.post(`${notes}/batch`, { inserts: [{ id: 'a1', title: 'First new' }, { id: 'a2' }] })
    await page.getByText('2 new records').waitFor()
    expect(await cell('First new').count()).toBe(0)
    // Whatever a record has, its change is announced by its id.
    await server.service.patch(`${notes}/n004`, { title: `Long ${'x'.repeat(200_000)}` })
    await page.locator('.data-cell.is-flashing', { hasText: 'Long xxx' }).waitFor()
    expect(messages.some((message) => message.includes('"docId":"n004"'))).toBe(true)
    expect(Math.max(...messages.map(({ length }) => length))).toBeLessThan(2_000)
    expect(await findBarriers(sheet)).toEqual([])
    await takeScreenshots(sheet, 'data-live')
    await page.getByRole('button', { name: 'Show' }).click()
    await cell('First new').waitFor()
    await page.getByText('62 records').waitFor()
    await server.service.delete(`${notes}/n002`)
    await page.locator('.data-row.is-struck', { hasText: 'Note 2' }).waitFor()
    await cell('Note 2').waitFor({ state: 'detached' })
    await page.getByText('61 records').waitFor()
    expectNoFaults(sheet)
  })

  test('the filter of the view decides what is followed, and a search cannot be followed', async () => {
    const filter = encodeURIComponent(JSON.stringify([['status', '==', 'open']]))
    await show(`?live=1&filter=${filter}`)
    await isLive()
    await server.service.post(`${notes}/batch`, { inserts: [{ status: 'closed' }, { status: 'open' }] })
    await page.getByText('1 new record', { exact: false }).waitFor()
    await server.service.patch(`${notes}/n003`, { status: 'closed' })
    await page.locator('.data-row.is-struck', { hasText: 'Note 3' }).waitFor()
    await show('?live=1&q=note')
    await page.locator('.data-text').first().waitFor()
    expect(await page.getByRole('button', { name: 'Live' }).isDisabled()).toBe(true)
    const hidden = encodeURIComponent(JSON.stringify([['secret', '!=', null]]))
    await show(`?live=1&filter=${hidden}`)
    await page.getByRole('alert').getByText('Live is off').waitFor()
    expectNoFaults(sheet)
  })

  test('what changes while the server restarts is shown afterwards, and what is typed is kept and saved', async () => {
    await show('?live=1')
    await isLive()
    await page.goto(`${server.url}/dashboard/data/shared/notes?live=1&row=n004`)
    const title = page.getByRole('dialog').getByRole('textbox', { name: 'title' })
    await title.fill('Typed before the restart')
    sheet.allow(/.*/)
    await server.restart()
    await server.service.patch(`${notes}/n005`, { title: 'Changed after the restart' })
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByText('title saved').waitFor()
    expect((await server.service.get(`${notes}/n004`)).body.title).toBe('Typed before the restart')
    await page.keyboard.press('Escape')
    await cell('Changed after the restart').waitFor()
    await isLive()
    await server.service.patch(`${notes}/n006`, { title: 'Followed again' })
    await cell('Followed again').waitFor()
  })

  test('a cell that is edited while the server is away is saved when it is back, or said not to be', async () => {
    await show()
    await cell('Note 7').dblclick()
    await page.getByRole('textbox', { name: 'title of n007' }).fill('Typed while away')
    sheet.allow(/.*/)
    await sheet.context.setOffline(true)
    await page.keyboard.press('Enter')
    await page.locator('.banner').waitFor()
    await sheet.context.setOffline(false)
    await page.locator('.banner').waitFor({ state: 'detached' })
    await page.getByText(/title (?:saved|was not saved)/).waitFor()
    const { title } = (await server.service.get(`${notes}/n007`)).body
    const isSaved = (await page.getByText('title saved').count()) > 0
    expect(title).toBe(isSaved ? 'Typed while away' : 'Note 7')
  })

  test('two administrators on one record: the second sees both versions, and neither is lost', async () => {
    const other = await openSheet(browser)
    await signIn(other, server)
    await other.page.goto(`${server.url}/dashboard/data/shared/notes?row=n008`)
    await show('?row=n008')
    const field = (on: Page) => on.getByRole('dialog').getByRole('textbox', { name: 'title' })
    await field(page).fill('Of the first')
    await field(other.page).fill('Of the second')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('title saved').waitFor()
    other.allow(/412/)
    await other.page.getByRole('button', { name: 'Save' }).click()
    const conflict = other.page.getByRole('dialog', { name: 'The record was changed meanwhile' })
    await conflict.getByText('Of the first').waitFor()
    await conflict.getByText('Of the second').waitFor()
    expect((await server.service.get(`${notes}/n008`)).body.title).toBe('Of the first')
    await conflict.getByRole('button', { name: 'Continue editing' }).click()
    expect(await field(other.page).inputValue()).toBe('Of the second')
    await server.service.delete(`${notes}/n008`)
    other.allow(/404/)
    await other.page.getByRole('button', { name: 'Save' }).click()
    await other.page.getByText('The record was deleted meanwhile').waitFor()
    expectNoFaults(sheet)
    expectNoFaults(other)
    await other.close()
  })

  test('a session that ends while a record is edited: nothing typed is lost', async () => {
    await show('?row=n009')
    const panel = page.getByRole('dialog')
    await panel.getByRole('textbox', { name: 'title' }).fill('Typed before the end')
    await panel.getByRole('textbox', { name: 'due' }).fill('not a time')
    await sheet.context.clearCookies()
    sheet.allow(/401/)
    await panel.getByRole('button', { name: 'Save' }).click()
    await panel.getByText('due is not a time').waitFor()
    await panel.getByRole('textbox', { name: 'due' }).fill('2027-02-28T10:00:00Z')
    await panel.getByRole('button', { name: 'Save' }).click()
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.getByLabel('Password').fill(sheet.administrator.password)
    expect((await server.service.get(`${notes}/n009`)).body.title).toBe('Note 9')
    await page.keyboard.press('Enter')
    await page.getByText('title, due saved').waitFor()
    expect((await server.service.get(`${notes}/n009`)).body).toMatchObject({
      title: 'Typed before the end',
      due: '2027-02-28T10:00:00.000Z',
    })
    expectNoFaults(sheet)
  })

  test('right-to-left texts and impossible dates are shown and kept as they were typed', async () => {
    const rtl = 'שלום עולם ‮abc‬ مرحبا'
    await server.service.patch(`${notes}/n010`, { title: rtl })
    await show('?row=n010')
    const panel = page.getByRole('dialog')
    const title = panel.getByRole('textbox', { name: 'title' })
    expect(await title.inputValue()).toBe(rtl)
    expect(await title.evaluate((input) => getComputedStyle(input).direction)).toBe('rtl')
    expect(await page.evaluate(() => getComputedStyle(document.body).direction)).toBe('ltr')
    const text = page.locator('.data-text', { hasText: 'שלום' })
    expect(await text.first().evaluate((span) => getComputedStyle(span).direction)).toBe('rtl')
    const due = panel.getByRole('textbox', { name: 'due' })
    for (const wrong of ['2026-02-30T00:00:00Z', '2026-13-01', '99999999999', 'yesterday', '٢٠٢٦-٠١-٠١']) {
      await due.fill(wrong)
      await panel.getByRole('button', { name: 'Save' }).click()
      await panel.getByText('due is not a time').waitFor()
      expect(await due.inputValue()).toBe(wrong)
      await due.fill('')
      await panel.getByText('due is not a time').waitFor({ state: 'detached' })
    }
    expect((await server.service.get(`${notes}/n010`)).body).toMatchObject({ title: rtl, due: null })
    await takeScreenshots(sheet, 'data-rtl')
    expectNoFaults(sheet)
  })
})
