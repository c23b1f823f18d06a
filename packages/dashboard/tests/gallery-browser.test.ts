/** The base components in a real browser: no barriers, no faults, and pictures in light, dark and narrow. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { readStyles } from '../../../scripts/build/dashboard.ts'
import { describeInBrowser } from '../../server/tests/harness/processes/chromium.ts'
import { expectNoFaults, findBarriers, openBrowser, openSheet, type Sheet, takeScreenshots } from './harness/browser.ts'

const folder = import.meta.dirname
const design = join(folder, '../src/design')

const galleryStyle = `
body { overflow: auto }
.gallery { display: grid; gap: 16px; max-width: 880px }
.gallery > * { min-width: 0 }
.gallery-columns { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)) }
.gallery-popover { display: grid; gap: 8px; padding: 12px }
.gallery-icons { display: grid; grid-template-columns: repeat(auto-fill, minmax(120px, 1fr)); gap: 10px }
.gallery-split { height: 160px }
.gallery-icons span { display: flex; gap: 8px; align-items: center }
`

/** The stylesheets of the components, with the tokens. */
const styles = readStyles(design)

const page = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Components</title>
<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/styles.css"><script type="module" src="/gallery.js"></script></head>
<body><div id="root"></div></body></html>`

async function serveGallery() {
  const { outputs, success, logs } = await Bun.build({
    entrypoints: [join(folder, 'gallery/gallery.tsx')],
    target: 'browser',
    define: { 'process.env.NODE_ENV': '"production"' },
  })
  if (!success) throw new Error(logs.join('\n'))
  const script = await outputs[0]?.text()
  const files: Readonly<Record<string, readonly [text: string | undefined, type: string]>> = {
    '/': [page, 'text/html'],
    '/styles.css': [styles + galleryStyle, 'text/css'],
    '/gallery.js': [script, 'text/javascript'],
  }
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const [text, type] = files[new URL(request.url).pathname] ?? []
      return text === undefined
        ? new Response('', { status: 404 })
        : new Response(text, { headers: { 'Content-Type': `${type}` } })
    },
  })
}

describeInBrowser('The components of the dashboard', 'the components', (program) => {
  let browser: Browser
  let sheet: Sheet
  let server: Awaited<ReturnType<typeof serveGallery>>
  beforeAll(async () => {
    server = await serveGallery()
    browser = await openBrowser(program)
    sheet = await openSheet(browser)
    await sheet.page.goto(server.url.href)
    await sheet.page.getByRole('heading', { name: 'Components' }).waitFor()
  })
  afterAll(async () => {
    await browser.close()
    await server.stop(true)
  })

  test('have no barriers in light and dark', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await sheet.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      expect(await findBarriers(sheet)).toEqual([])
    }
    await takeScreenshots(sheet, 'components', { fullPage: true })
    expectNoFaults(sheet)
  })

  test('dialogs take the focus, close with Escape, and give it back', async () => {
    const { page } = sheet
    for (const name of ['dialog', 'panel', 'confirmation']) {
      const button = page.getByRole('button', { name: `Open ${name}` })
      await button.click()
      await page.getByRole('dialog').waitFor()
      expect(await findBarriers(sheet)).toEqual([])
      await takeScreenshots(sheet, `components-${name}`)
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await page.locator('button:focus', { hasText: `Open ${name}` }).waitFor()
    }
    expectNoFaults(sheet)
  })

  test('menus and selects work by keyboard', async () => {
    const { page } = sheet
    await page.getByRole('button', { name: 'More' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('menuitem', { name: 'Copy as curl' }).waitFor()
    await takeScreenshots(sheet, 'components-menu')
    await page.keyboard.press('Escape')
    await page.getByRole('combobox', { name: 'Order' }).focus()
    await page.keyboard.press('ArrowDown')
    await page.getByRole('option', { name: 'Oldest first' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('combobox', { name: 'Order' }).getByText('Oldest first').waitFor()
    await page.getByRole('button', { name: 'Show toast' }).click()
    await page.getByText('Record updated').waitFor()
    await takeScreenshots(sheet, 'components-toast')
    expectNoFaults(sheet)
  })
})
