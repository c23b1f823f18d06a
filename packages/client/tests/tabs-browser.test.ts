/** Twenty tabs of a real browser that share a session: over expiries of its token, and over a kill of the server. */
import { afterAll, expect, test } from 'bun:test'
import { findFreePort } from '../../../scripts/servers/private-server.ts'
import { manualClock } from '../../server/src/base/clock.ts'
import { describeInBrowser, openChromium, type Tab } from '../../server/tests/harness/processes/chromium.ts'
import { spawnServer } from '../../server/tests/harness/processes/spawn.ts'
import { startServer } from '../../server/tests/harness/server.ts'
import { servePage } from './harness/page.ts'

const tabCount = 20
const minute = 60_000
const access = { read: true, insert: true }
const tables = { items: { schema: { text: { type: 'string' } }, access } }

/** In the page: `connect(url)` of `harness/page-client.ts`. */
declare const connect: (url: string) => Promise<void>
declare const state: { refreshes: number; signOuts: number; userId(): string | null }
declare const list: () => Promise<number>
declare const refresh: () => Promise<string>

describeInBrowser('tabs that share a session', 'tabs of a browser', (program) => {
  const page = servePage()
  afterAll(() => page.stop())

  /** Opens the tabs one after the other; the first one signs up. */
  async function openTabs(url: string): Promise<{ tabs: Tab[]; close(): Promise<void> }> {
    const browser = await openChromium(program)
    await browser.open(page.url)
    await browser.run((address) => connect(address), url)
    const tabs: Tab[] = [browser]
    while (tabs.length < tabCount) {
      const tab = await browser.openTab(page.url)
      await tab.run((address) => connect(address), url)
      tabs.push(tab)
    }
    return { tabs, close: () => browser.close() }
  }

  const total = async (tabs: readonly Tab[]) => {
    const all = await Promise.all(
      tabs.map((tab) =>
        tab.run(async () => ({ refreshes: state.refreshes, signOuts: state.signOuts, userId: state.userId() })),
      ),
    )
    return {
      refreshes: all.reduce((sum, { refreshes }) => sum + refreshes, 0),
      signOuts: all.reduce((sum, { signOuts }) => sum + signOuts, 0),
      users: new Set(all.map(({ userId }) => userId)),
    }
  }

  test('an expiry costs at most two refreshes in all tabs, and signs no tab out', async () => {
    const clock = manualClock(Date.now())
    const server = await startServer({
      config: { databases: { shared: { tables } }, cors: { origins: [page.url] } },
      clock,
    })
    const { tabs, close } = await openTabs(server.url)
    try {
      const first = await total(tabs)
      expect([first.signOuts, first.users.size]).toEqual([0, 1])
      for (let expiry = 1; expiry <= 3; expiry++) {
        clock.advance(16 * minute)
        const before = await total(tabs)
        const lists = await Promise.all(tabs.map((tab) => tab.run(() => list())))
        expect(lists).toEqual(Array(tabCount).fill(0))
        const after = await total(tabs)
        expect(after.refreshes - before.refreshes).toBeLessThanOrEqual(2)
        expect([after.signOuts, after.users.size]).toEqual([0, 1])
      }
    } finally {
      await close()
      await server.close()
    }
  })

  test('a kill of the server while all tabs refresh signs no tab out', async () => {
    const port = String(findFreePort())
    const server = await spawnServer(`
      import { defineConfig } from 'plinth'
      export default defineConfig({
        databases: { shared: { tables: ${JSON.stringify(tables)} } },
        cors: { origins: ['${page.url}'] },
        rateLimits: { auth: { requests: 10000 }, db: { requests: 100000 } },
      })
    `)
    await server.kill()
    await server.start(['--port', port])
    const { tabs, close } = await openTabs(server.url)
    try {
      const refreshing = Promise.all(tabs.map((tab) => tab.run(() => refresh())))
      await server.kill()
      await server.start(['--port', port])
      const outcomes = new Set(await refreshing)
      for (const outcome of outcomes) expect(['refreshed', 'network', 'timeout', 'unavailable']).toContain(outcome)
      await Promise.all(tabs.map((tab) => tab.run(() => list())))
      const { signOuts, users } = await total(tabs)
      expect([signOuts, users.size]).toEqual([0, 1])
    } finally {
      await close()
      await server.remove()
    }
  })
})
