/** The area "Files" in a real browser, against a real server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { buildDashboard } from '../../../../scripts/build/dashboard.ts'
import { describeInBrowser } from '../../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { unlimitedRates } from '../../../server/tests/harness/users/accounts.ts'
import { expectNoFaults, findBarriers, openBrowser, takeScreenshots } from '../harness/browser.ts'
import { openSignedIn, type SignedIn } from '../harness/signed-in.ts'

const markup = '<img src=x onerror="alert(1)">'
const script = '<script>alert(1)</script>'
/** One transparent pixel. */
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describeInBrowser('Files in the dashboard', 'files in the dashboard', (program) => {
  let browser: Browser
  let server: TestServer
  let sheet: SignedIn
  beforeAll(async () => {
    await buildDashboard()
    const access = { read: true, write: true }
    server = await startServer({
      config: {
        rateLimits: unlimitedRates,
        storage: { buckets: { photos: { quota: '20mb', userQuota: '1mb', access }, empty: { access } } },
      },
    })
    browser = await openBrowser(program)
    sheet = await openSignedIn(browser, server, { permissions: ['clipboard-read', 'clipboard-write'] })
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  async function store(key: string, content: string | Buffer, contentType = 'text/plain'): Promise<void> {
    const form = new FormData()
    form.append('key', key)
    form.append('file', new Blob([content as BlobPart], { type: contentType }), 'file')
    const stored = await server.service.request('POST', '/api/storage/photos/upload', { raw: form })
    expect(stored.status).toBe(201)
  }
  const keysOf = async (prefix: string): Promise<string[]> => {
    const { body } = await server.service.get(`/api/storage/photos?prefix=${encodeURIComponent(prefix)}`)
    return body.files.map(({ key }: { key: string }) => key)
  }

  test('folders are opened, an image and a text seen, a link copied and a file deleted', async () => {
    const { page } = sheet
    await store('2026/june/pixel.png', png, 'image/png')
    await store('2026/june/notes.txt', 'a note about June')
    await store('2026/readme.md', '# Photos', 'text/markdown')
    await store('broken.png', 'no image', 'image/png')
    await sheet.open('/files', 'Files')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('button', { name: 'photos' }).click()
    await page.getByRole('heading', { level: 1, name: 'photos' }).waitFor()
    await page.getByRole('link', { name: '2026' }).click()
    await page.getByRole('link', { name: 'june' }).click()
    await page.getByRole('link', { name: 'notes.txt' }).waitFor()
    await takeScreenshots(sheet, 'files')
    expect(await findBarriers(sheet)).toEqual([])

    await page.getByRole('link', { name: 'pixel.png' }).click()
    const image = page.getByRole('img', { name: 'Preview of 2026/june/pixel.png' })
    await image.waitFor()
    await page.waitForFunction(() => document.querySelector<HTMLImageElement>('.files-image img')?.naturalWidth === 1)
    await takeScreenshots(sheet, 'file')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('button', { name: 'Copy signed link' }).click()
    await page.getByText('Link copied').waitFor()
    await page.getByText(/Expires in (?:1 hour|60 minutes)/).waitFor()
    await takeScreenshots(sheet, 'file-link')
    expect(await findBarriers(sheet)).toEqual([])
    const link = await page.evaluate(() => navigator.clipboard.readText())
    const linked = await fetch(new URL(link, server.url))
    expect(Buffer.from(await linked.arrayBuffer()).equals(png)).toBe(true)

    await page.reload()
    await image.waitFor()

    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download' }).click()
    expect((await downloading).suggestedFilename()).toBe('pixel.png')
    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByRole('button', { name: 'Delete file' }).click()
    await page.getByText('File deleted').waitFor()
    await page.getByRole('link', { name: 'pixel.png' }).waitFor({ state: 'detached' })
    expect(await keysOf('2026/june/')).toEqual(['2026/june/notes.txt'])
    await sheet.open('/files/photos?file=broken.png', 'photos')
    await page.getByText('Not an image').waitFor()
    expectNoFaults(sheet)
  })

  test('small and large files are uploaded, one is replaced, and several are deleted', async () => {
    const { page } = sheet
    const large = Buffer.alloc(12 * 1024 * 1024, 7)
    await store('inbox/taken.txt', 'before')
    await sheet.open('/files/photos?prefix=inbox%2F', 'photos')
    await page.getByLabel('Files to upload').setInputFiles([
      { name: 'small.txt', mimeType: 'text/plain', buffer: Buffer.from('small') },
      { name: 'large.bin', mimeType: 'application/octet-stream', buffer: large },
      { name: 'taken.txt', mimeType: 'text/plain', buffer: Buffer.from('after') },
    ])
    await page.getByRole('dialog').getByText('taken.txt').waitFor()
    await page.getByRole('button', { name: 'Replace 1 file' }).click()
    await page
      .getByText(/^Uploaded · /)
      .nth(2)
      .waitFor()
    await page.getByRole('link', { name: 'large.bin' }).waitFor()
    await takeScreenshots(sheet, 'files-uploads')
    expect(await findBarriers(sheet)).toEqual([])
    expect(await keysOf('inbox/')).toEqual(['inbox/large.bin', 'inbox/small.txt', 'inbox/taken.txt'])
    expect((await server.service.get('/api/storage/photos/inbox%2Ftaken.txt')).text).toBe('after')
    const stored = await server.service.get('/api/storage/photos/inbox%2Flarge.bin/metadata')
    expect(stored.body).toMatchObject({ size: large.length, contentType: 'application/octet-stream' })

    await page.getByRole('checkbox', { name: 'Select small.txt' }).check()
    await page.getByRole('checkbox', { name: 'Select large.bin' }).check()
    await page.getByRole('button', { name: 'Delete 2 files…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete 2 files' }).click()
    await page.getByText('2 files deleted').waitFor()
    expect(await keysOf('inbox/')).toEqual(['inbox/taken.txt'])
    expectNoFaults(sheet)
  })

  test('usage stands beside quotas, by bucket and by user', async () => {
    const { page } = sheet
    const added = await server.service.post('/api/auth/admin/users', {
      email: 'grace@example.org',
      password: 'a long password',
      displayName: `Grace ${markup}`,
    })
    const { id } = added.body.user
    const form = new FormData()
    form.append('key', 'grace/film.bin')
    form.append('file', new Blob([Buffer.alloc(950_000)]), 'file')
    expect((await server.as(id).request('POST', '/api/storage/photos/upload', { raw: form })).status).toBe(201)
    await sheet.open('/files', 'Files')
    const row = page.getByRole('row', { name: /photos/ })
    await row.getByText(/of 20\.?\d* MB|of 21 MB/).waitFor()
    await takeScreenshots(sheet, 'files-buckets')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('button', { name: 'photos' }).click()
    await page.getByRole('link', { name: 'Usage' }).click()
    await page.getByText('Awaiting removal').waitFor()
    await page
      .getByRole('row', { name: /grace@example\.org/ })
      .getByText('950 kB')
      .waitFor()
    await takeScreenshots(sheet, 'files-usage')
    expect(await findBarriers(sheet)).toEqual([])
    await page.getByRole('link', { name: `Grace ${markup}` }).click()
    await page.getByText('950 kB of 1 MB').waitFor()
    await takeScreenshots(sheet, 'user-files')
    await page.getByRole('link', { name: 'photos' }).click()
    await page.getByText('Users with the most bytes').waitFor()
    expectNoFaults(sheet)
  })

  test('an upload link stores one file', async () => {
    const { page } = sheet
    await sheet.open('/files/photos?prefix=drop%2F', 'photos')
    await page.getByRole('button', { name: 'Upload link…' }).click()
    await page.getByLabel('Key').fill('drop/sent.txt')
    await page.getByLabel('Largest size').fill('1kB')
    await page.getByRole('button', { name: 'Create link' }).click()
    const link = await page.getByRole('dialog').locator('pre').first().textContent()
    await takeScreenshots(sheet, 'upload-link')
    expect(await findBarriers(sheet)).toEqual([])
    const send = (content: string) => {
      const form = new FormData()
      form.append('key', 'drop/sent.txt')
      form.append('file', new Blob([content]), 'file')
      return fetch(link ?? '', { method: 'POST', body: form })
    }
    expect((await send('sent')).status).toBe(201)
    expect((await send('again')).status).toBe(401)
    expect((await server.service.get('/api/storage/photos/drop%2Fsent.txt')).text).toBe('sent')
    sheet.allow(/400 POST .*signed-upload-url/)
    sheet.allow(/Failed to load resource/)
    await page.getByLabel('Largest size').fill('huge')
    await page.getByRole('button', { name: 'Create link' }).click()
    await page.getByRole('dialog').getByRole('alert').waitFor()
    await page.getByRole('button', { name: 'Close' }).last().click()
    expectNoFaults(sheet)
  })

  test('a dropped file is uploaded', async () => {
    const { page } = sheet
    await sheet.open('/files/empty', 'empty')
    await page.getByText('No files yet').waitFor()
    await takeScreenshots(sheet, 'files-empty')
    expect(await findBarriers(sheet)).toEqual([])
    const dropped = await page.evaluateHandle(() => {
      const data = new DataTransfer()
      data.items.add(new File(['dropped'], 'dropped.txt', { type: 'text/plain' }))
      return data
    })
    await page.locator('.files-drop').dispatchEvent('drop', { dataTransfer: dropped })
    await page.getByRole('link', { name: 'dropped.txt' }).waitFor()
    expect((await server.service.get('/api/storage/empty/dropped.txt')).text).toBe('dropped')
    expectNoFaults(sheet)
  })

  test('markup in names, HTML and SVG stay text', async () => {
    const { page } = sheet
    const svg = `<svg xmlns="http://www.w3.org/2000/svg">${script}</svg>`
    await store(`evil ${markup}.html`, script, 'text/html')
    await store('evil.svg', svg, 'image/svg+xml')
    await store(`${script.replace('/', '')}/x.txt`, 'x')
    await sheet.open('/files/photos', 'photos')
    await page.getByRole('link', { name: `evil ${markup}.html` }).click()
    await page.locator('.files-text').getByText(script).waitFor()
    await page.getByRole('link', { name: 'evil.svg' }).click()
    await page.locator('.files-text').getByText(svg).waitFor()
    expect(await page.locator('main img, .panel img, iframe, object, embed').count()).toBe(0)
    expectNoFaults(sheet)
  })

  test('a viewer sees files and no action', async () => {
    await store('seen.txt', 'seen by a viewer')
    const viewer = await openSignedIn(browser, server, { role: 'viewer' })
    await viewer.open('/files/photos?file=seen.txt', 'photos')
    await viewer.page.getByText('seen by a viewer').waitFor()
    for (const name of ['Upload', 'Delete…', 'Copy signed link'])
      expect(await viewer.page.getByRole('button', { name }).count()).toBe(0)
    expect(await viewer.page.getByRole('checkbox').count()).toBe(0)
    expectNoFaults(viewer)
    await viewer.close()
  })
})
