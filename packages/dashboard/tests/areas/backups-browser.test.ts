/** The area "Backups" in a real browser, against a real server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { keepAddress } from '../../../server/src/cli/served-address.ts'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { startDashboardServer, type TestServer } from '../harness/dashboard.ts'
import { openSignedIn } from '../harness/signed-in.ts'

describeInBrowser('Backups in the dashboard', 'backups in the dashboard', (program) => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-backups-'))
  let browser: Browser
  let server: TestServer
  beforeAll(async () => {
    server = await startDashboardServer({}, { settings: { backupFolder: folder } })
    // As `plinth start` does.
    await keepAddress(server.dataFolder, server.url)
    browser = await openBrowser(program)
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
    rmSync(folder, { recursive: true })
  })

  test('an owner starts a backup, sees it complete, and verifies it', async () => {
    const sheet = await openSignedIn(browser, server)
    const { page } = sheet
    await sheet.open('/backups', 'Backups')
    await page.getByText('No backups yet').waitFor()
    await page.getByRole('button', { name: 'Back up now' }).click()
    await page.getByText('The latest backup is complete').waitFor()
    const [archive = ''] = readdirSync(folder)
    const row = page.getByRole('row', { name: archive })
    await row.getByText('Never').waitFor()
    await row.getByRole('button', { name: `Verify ${archive}` }).click()
    await page.getByText('The verified backup is intact').waitFor()
    await row.getByText('Intact').waitFor()
    await takeScreenshots(sheet, 'backups')
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
    await sheet.close()
  })

  test('a viewer sees backups and cannot start one', async () => {
    const sheet = await openSignedIn(browser, server, { role: 'viewer' })
    await sheet.open('/backups', 'Backups')
    await sheet.page.getByRole('table', { name: 'Backups' }).waitFor()
    expect(await sheet.page.getByRole('button', { name: 'Back up now' }).count()).toBe(0)
    expectNoFaults(sheet)
    await sheet.close()
  })
})

describeInBrowser('Backups without a folder in the dashboard', 'backups without a folder', (program) => {
  test('teach how to set one', async () => {
    const server = await startDashboardServer({})
    const browser = await openBrowser(program)
    const sheet = await openSignedIn(browser, server)
    await sheet.open('/backups', 'Backups')
    await sheet.page.getByText('PLINTH_BACKUP_FOLDER=/backups').waitFor()
    expect(await findBarriers(sheet)).toEqual([])
    expectNoFaults(sheet)
    await browser.close()
    await server.close()
  })
})
