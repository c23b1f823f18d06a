/** An upload of a browser's page that another tab continues, after the tab was closed or has crashed in a chunk. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { type Chromium, describeInBrowser, openChromium } from '../../../server/tests/harness/processes/chromium.ts'
import { rootKey, startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { openSite, type Site, type SiteGlobals } from '../harness/site.ts'

const megabyte = 1024 * 1024
const size = 50 * megabyte
const chunks = 10

/** Runs in a page: uploads a file, and reports each request of the upload before it is sent. */
async function upload(api: string, bytes: number): Promise<string> {
  const { createClient } = (globalThis as SiteGlobals).plinth
  const send = async (input: string, init: RequestInit): Promise<Response> => {
    const offset = new Headers(init.headers).get('Upload-Offset')
    if (input.includes('/uploads/tus'))
      await fetch('/sending', { method: 'POST', body: `${init.method} ${offset ?? ''}`.trim() })
    return fetch(input, init)
  }
  const client = createClient(api, { fetch: send as typeof fetch })
  await client.auth.ready
  if (!client.auth.session) await client.auth.signInAnonymously()
  // As a file that is selected again: the same bytes, name and date in every tab.
  const words = new Uint32Array(bytes / 4)
  for (let at = 0, word = 1; at < words.length; at++) {
    word = (Math.imul(word, 1664525) + 1013904223) >>> 0
    words[at] = word
  }
  await client.files('box').upload('large', new File([words], 'large.bin', { lastModified: 1 }))
  const digest = await crypto.subtle.digest('SHA-256', words)
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

const storedUploads = async (): Promise<number> =>
  Object.keys(localStorage).filter((key) => key.includes(':upload:')).length

describeInBrowser('uploads of tabs that end', 'uploads of a browser', (program) => {
  let site: Site
  let server: TestServer
  let browser: Chromium
  /** `POST`, `HEAD` and `PATCH offset`, in order. */
  let sending: string[] = []
  let onSending: () => void = () => undefined

  beforeAll(async () => {
    site = openSite(async (request) => {
      if (new URL(request.url).pathname !== '/sending') return undefined
      sending.push(await request.text())
      onSending()
      return new Response()
    })
    server = await startServer({
      config: {
        storage: { buckets: { box: { access: { read: true, write: true }, maxFileSize: '1gb' } } },
        cors: { origins: [site.url] },
      },
    })
    browser = await openChromium(program)
  })
  afterAll(async () => {
    await browser.close()
    await server.close()
    site.stop()
  })

  /** Resolves when requests of chunks were begun `count` times in all. */
  const chunksBegun = (count: number): Promise<void> =>
    new Promise((resolve) => {
      onSending = () => {
        if (sending.filter((one) => one !== 'HEAD').length === count) resolve()
      }
    })

  test('another tab continues where a tab was closed, and where one has crashed', async () => {
    sending = []
    const closing = chunksBegun(4)
    const first = await browser.openTab(`${site.url}/first`)
    first.run(upload, server.url, size).catch(() => undefined)
    await closing
    await browser.closeTab(`${site.url}/first`)

    const crashing = chunksBegun(7)
    const second = await browser.openTab(`${site.url}/second`)
    second.run(upload, server.url, size).catch(() => undefined)
    await crashing
    await second.crash()

    const third = await browser.openTab(`${site.url}/third`)
    const digest = await third.run(upload, server.url, size)
    const sent = sending.filter((one) => one !== 'HEAD')
    // One upload, which each of the other tabs has found again.
    expect(sent.filter((one) => one === 'POST')).toHaveLength(1)
    expect(sending.filter((one) => one === 'HEAD').length).toBeGreaterThanOrEqual(2)
    expect(sent.length - chunks).toBeLessThanOrEqual(2)
    const stored = await fetch(`${server.url}/api/storage/box/large`, {
      headers: { 'X-Platform-Service-Key': rootKey },
    })
    expect(
      createHash('sha256')
        .update(Buffer.from(await stored.arrayBuffer()))
        .digest('hex'),
    ).toBe(digest)
    expect(await third.run(storedUploads)).toBe(0)
  })
})
