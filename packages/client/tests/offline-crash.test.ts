/** Queued writes of a client that is killed, and a server that is killed: each is executed exactly once. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawnServer } from '../../server/tests/harness/processes/spawn.ts'
import { rootKey } from '../../server/tests/harness/server.ts'
import { createClient, records, type Table } from '../src/index.ts'

interface Counter {
  readonly id: string
  readonly n: number
}

const configText = `
import { defineConfig } from 'plinth'
export default defineConfig({
  databases: { shared: { tables: {
    counters: { schema: { n: { type: 'number', default: 0 } }, access: { read: true, update: true } },
  } } },
  rateLimits: { db: { requests: 10000000 } },
})
`

/** Starts the process of a client. `next` resolves with the next line of its output that begins so. */
function startWriter(...args: readonly string[]) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'harness/offline-writer.ts'), ...args], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const lines = (async function* () {
    let text = ''
    for await (const chunk of child.stdout) {
      const parts = (text + Buffer.from(chunk).toString()).split('\n')
      text = parts.pop() ?? ''
      yield* parts
    }
  })()
  return {
    async next(start: string): Promise<string> {
      for (;;) {
        const { done, value } = await lines.next()
        if (done) throw new Error(`the client ended before it printed ${start}`)
        if (value.startsWith(start)) return value
      }
    },
    async kill(): Promise<void> {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

test('100 writes made while the server is away, kills of client and server: each exactly once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-offline-'))
  const server = await spawnServer(configText)
  const { url } = server
  const port = ['--port', new URL(url).port]
  const admin = createClient(url, [records], { serviceKey: rootKey, retries: 10 })
  const counters: Table<Counter> = admin.db().table('counters')
  const token = await server.token('ann')
  try {
    for (let at = 0; at < 5; at++) await counters.insert({ id: `c${at}` })
    await server.kill()

    // Killed in the middle of making writes; the one in progress is stored or not, and was not accepted.
    const first = startWriter(url, folder, token, '0', '1000')
    await first.next('accepted 59')
    await first.kill()
    const second = startWriter(url, folder, token, '1000', '1040')
    await second.next('made')
    await second.kill()

    // Killed, as is the server, while the writes are sent.
    await server.start(port)
    for (let kill = 0; kill < 3; kill++) {
      const total = async () => (await counters.list()).items.reduce((sum, { n }) => sum + n, 0)
      const before = await total()
      const writer = startWriter(url, folder, token)
      while ((await total()) === before);
      await (kill % 2 === 0 ? server.kill() : writer.kill())
      await writer.kill()
      if (kill % 2 === 0) await server.start(port)
    }
    const last = startWriter(url, folder, token)
    expect(await last.next('sent')).toBe('sent ')
    await last.kill()

    const { items } = await counters.list()
    const sums = [0, 0, 0, 0, 0]
    const made = [...Array.from({ length: 60 }, (_, at) => at), ...Array.from({ length: 40 }, (_, at) => 1000 + at)]
    for (const at of made) sums[at % 5] = (sums[at % 5] as number) + 1 + at
    const found = [0, 1, 2, 3, 4].map((at) => items.find(({ id }) => id === `c${at}`)?.n as number)
    // The first client may have made more writes before the kill arrived: a run of numbers from 60 on.
    for (let at = 60; found.some((n, counter) => n > (sums[counter] as number)) && at < 1000; at++)
      sums[at % 5] = (sums[at % 5] as number) + 1 + at
    expect(found).toEqual(sums)
  } finally {
    admin.close()
    await server.remove()
    rmSync(folder, { recursive: true, force: true })
  }
}, 120_000)
