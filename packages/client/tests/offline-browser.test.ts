/** The feature `persist` in a real browser: IndexedDB, locks and channels between tabs. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Chromium, describeInBrowser, openChromium } from '../../server/tests/harness/processes/chromium.ts'
import { startServer, type TestServer } from '../../server/tests/harness/server.ts'
import type * as Plinth from '../src/index.ts'

const config = {
  databases: {
    shared: {
      tables: { counters: { schema: { n: { type: 'number', default: 0 } }, access: { read: true, update: true } } },
    },
  },
} as const

type Page = typeof globalThis & {
  readonly plinth: typeof Plinth
  /** Keys of the writes that were sent from any frame. */
  sent: string[]
  frames: HTMLIFrameElement[]
}

/** Runs in a page: makes increments of 1 of two records in turn, without a network. */
async function makeWrites(url: string, token: string, count: number): Promise<number> {
  const { createClient, increment, live, persist, records } = (globalThis as Page).plinth
  const client = createClient(url, [records, live, persist({ userId: () => 'ann' })], {
    getToken: () => token,
    fetch: (() => Promise.reject(new TypeError('no network'))) as unknown as typeof fetch,
  })
  const { counters } = client.db()
  for (let at = 0; at < count; at++) await counters.optimistic.update(`c${at % 2}`, { n: increment(1) })
  return client.offline.pending
}

/** Runs in a page: sends what is stored from several frames at once, and removes the first after `killAfter` writes. */
async function sendFromTabs(url: string, token: string, tabs: number, killAfter: number): Promise<string[]> {
  const sent: string[] = []
  const clients: Plinth.Client[] = []
  const frames: HTMLIFrameElement[] = []
  for (let at = 0; at < tabs; at++) {
    const frame = document.createElement('iframe')
    const loaded = new Promise((resolve) => frame.addEventListener('load', resolve))
    frame.src = '/'
    document.body.append(frame)
    await loaded
    frames.push(frame)
    const page = frame.contentWindow as unknown as Page
    const { createClient, live, persist, records } = page.plinth
    const send = async (input: string, init: RequestInit): Promise<Response> => {
      if (init.method !== 'POST') return page.fetch(input, init)
      sent.push(new Headers(init.headers).get('Idempotency-Key') as string)
      const response = page.fetch(input, init)
      if (at === 0 && sent.length === killAfter) frame.remove()
      return response
    }
    clients.push(
      createClient(url, [records, live, persist({ userId: () => 'ann' })], {
        getToken: () => token,
        fetch: send as unknown as typeof fetch,
      }),
    )
  }
  const last = clients[tabs - 1] as Plinth.Client
  await last.offline.flush()
  return sent
}

describeInBrowser('offline', 'offline in a real browser', (chromium) => {
  let server: TestServer
  let pages: Bun.Server<undefined>
  let browser: Chromium
  beforeAll(async () => {
    server = await startServer({ config })
    const built = await Bun.build({ entrypoints: [join(import.meta.dir, '../src/index.ts')], target: 'browser' })
    const script = await (built.outputs[0] as Bun.BuildArtifact).text()
    pages = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      routes: {
        '/client.js': () => new Response(script, { headers: { 'Content-Type': 'text/javascript' } }),
        '/': () =>
          new Response(
            '<body><script type=module>import * as plinth from "/client.js"; window.plinth = plinth</script>',
            {
              headers: { 'Content-Type': 'text/html' },
            },
          ),
      },
    })
    browser = await openChromium(chromium)
  })
  afterAll(async () => {
    await browser.close()
    pages.stop(true)
    await server.close()
  })

  const reset = async (): Promise<void> => {
    for (const id of ['c0', 'c1']) await server.service.post('/api/db/shared/tables/counters?upsert=true', { id, n: 0 })
  }
  const counts = async (): Promise<number[]> => {
    const { body } = await server.service.get('/api/db/shared/tables/counters?sort=id')
    return body.items.map(({ n }: { n: number }) => n)
  }

  test('writes survive the page in IndexedDB; two tabs send each once', async () => {
    await reset()
    const token = await server.token('ann')
    await browser.open(pages.url.href)
    expect(await browser.run(makeWrites, server.url, token, 40)).toBe(40)
    await browser.open(pages.url.href)
    const sent = await browser.run(sendFromTabs, server.url, token, 2, 0)
    expect(sent.length).toBe(40)
    expect(new Set(sent).size).toBe(40)
    expect(await counts()).toEqual([20, 20])
  })

  test('another tab takes over from one that ends while it sends', async () => {
    await reset()
    const token = await server.token('ann')
    await browser.open(pages.url.href)
    expect(await browser.run(makeWrites, server.url, token, 20)).toBe(20)
    await browser.open(pages.url.href)
    const sent = await browser.run(sendFromTabs, server.url, token, 2, 5)
    expect(new Set(sent).size).toBe(20)
    expect(await counts()).toEqual([10, 10])
  })
})
