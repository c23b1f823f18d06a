/** Importing users in a real browser: files with hashes, what is refused, and texts that look like markup. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { describeInBrowser } from '../../../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../../harness/browser.ts'
import { startDashboardServer, type TestServer } from '../../harness/dashboard.ts'
import { openSignedIn, type SignedIn } from '../../harness/signed-in.ts'
import { xssPayloads } from '../../harness/xss-payloads.ts'

describeInBrowser('Importing users in the dashboard', 'importing users', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  beforeAll(async () => {
    server = await startDashboardServer({})
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  /** Opens the dialog and chooses a file with this text. */
  async function choose(name: string, text: string): Promise<void> {
    const { page } = sheet
    await sheet.open('/users', 'Users')
    await page.getByRole('button', { name: 'Import' }).click()
    await page.getByLabel('File').setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(text) })
  }
  const find = async (email: string) =>
    (await server.service.get(`/api/auth/admin/users?email=${encodeURIComponent(email)}`)).body.users[0]

  test('CSV with the hashes of another system is imported, and its users sign in with their passwords', async () => {
    const { page } = sheet
    const hash = await Bun.password.hash('the password of Ada', { algorithm: 'bcrypt', cost: 4 })
    await choose(
      'users.csv',
      [
        'email,passwordHash,displayName,verified,metadata',
        `ada@example.com,${hash},"Lovelace, Ada",true,"{""theme"":""dark""}"`,
        'grace@example.com,not a hash,Grace,,',
        'joan@example.com,,Joan,false,',
      ].join('\r\n'),
    )
    await page.getByRole('button', { name: 'Import 3 users' }).click()
    await page.getByText('2 imported, 0 existed already, 1 not imported.').waitFor()
    await page.getByRole('table', { name: 'Users that were not imported' }).getByText('grace@example.com').waitFor()
    await takeScreenshots(sheet, 'users-import')
    expect(await findBarriers(sheet)).toEqual([])
    expect(await find('ada@example.com')).toMatchObject({ displayName: 'Lovelace, Ada', emailVerified: true })
    const signedIn = await server.anonymous.post('/api/auth/signin', {
      email: 'ada@example.com',
      password: 'the password of Ada',
    })
    expect(signedIn.status).toBe(200)
    expect(signedIn.body.user.metadata).toEqual({ theme: 'dark' })
    await page.getByRole('button', { name: 'Close', exact: true }).last().click()
    await page.getByText('Lovelace, Ada').waitFor()
    expectNoFaults(sheet)
  })

  test('a JSON list of several requests is imported as one, and can be imported again', async () => {
    const { page } = sheet
    const list = Array.from({ length: 250 }, (_, at) => ({ email: `many${at}@example.com` }))
    await choose('users.json', JSON.stringify(list))
    await page.getByRole('button', { name: 'Import 250 users' }).click()
    await page.getByText('250 imported, 0 existed already, 0 not imported.').waitFor()
    await choose('users.json', JSON.stringify({ users: list }))
    await page.getByRole('button', { name: 'Import 250 users' }).click()
    await page.getByText('0 imported, 250 existed already, 0 not imported.').waitFor()
    expectNoFaults(sheet)
  })

  test('a file that is none is refused before anything is sent', async () => {
    const { page } = sheet
    for (const [text, message] of [
      ['', 'The first line must name the columns'],
      ['name\nAda', 'The first line must name the columns'],
      ['email\nada@example.com,more', 'Line 2 has more cells than the header.'],
      ['{"people": []}', 'The file must be a list of users'],
      ['[]', 'The file has no users.'],
    ] as const) {
      await choose('users.txt', text)
      await page.getByText(message).waitFor()
      expect(await page.getByRole('button', { name: 'Import', exact: true }).last().isDisabled()).toBe(true)
    }
    expectNoFaults(sheet)
  })

  test('names and addresses that look like markup are shown as text', async () => {
    const { page } = sheet
    let executed = 0
    await page.exposeFunction('xss', () => void executed++)
    await choose('users.json', JSON.stringify(xssPayloads.map((text) => ({ email: text, displayName: text }))))
    await page.getByRole('button', { name: `Import ${xssPayloads.length} users` }).click()
    await page.getByText(`${xssPayloads.length} not imported.`).waitFor()
    expect(executed).toBe(0)
    expectNoFaults(sheet)
  })
})
