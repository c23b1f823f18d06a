/** A client that resumes after its server was killed receives exactly the changes that it missed. */
import { expect, test } from 'bun:test'
import { engines } from '../harness/engines.ts'
import { spawnServer } from '../harness/processes/spawn.ts'
import { changesIn, watch } from '../harness/records/live.ts'
import type { Message } from '../harness/socket.ts'

const items = '/api/db/shared/tables/items'
const configText = `
  const open = { read: true, insert: true, update: true, delete: true }
  export default {
    databases: { shared: { tables: { items: { schema: { n: { type: 'number' } }, access: open } } } },
    rateLimits: { db: { requests: 1000000 } },
  }`

for (const engine of engines)
  test(`[SUB-66] a client that resumes after kill -9 during writes has missed no change on ${engine.name}`, async () => {
    const server = await spawnServer(configText, engine)
    try {
      const { subscribed, close } = await watch(server.url)
      await close()
      const view = new Map<string, unknown>()
      let since = subscribed.cursor
      for (let round = 0; round < 3; round++) {
        const socket = await watch(server.url, { subscribe: { since } })
        expect(socket.subscribed.recovered).toBe(true)
        // Until the server is killed, and not more than a client recovers from.
        const writes = Array.from({ length: 60 }, async (_, n) => {
          for (let step = 0; step < 100; step++)
            await server.service.post(`${items}?upsert=true`, { id: `r${n % 15}`, n: round * 1000 + step })
        })
        const finished = Promise.allSettled(writes)
        // One message may have many changes.
        for (let seen = 0; seen < 20 + 30 * round; ) {
          const message = await socket.next()
          since = message.cursor
          const changes = changesIn([message])
          seen += changes.length
          for (const { docId, data } of changes) view.set(docId, data)
        }
        await server.kill()
        await finished
        await socket.closed
        await server.start()
      }
      const last = await watch(server.url, { subscribe: { since } })
      expect(last.subscribed.recovered).toBe(true)
      const shown = async (): Promise<Record<string, unknown>> => {
        const { body } = await server.service.get(`${items}?limit=1000`)
        return Object.fromEntries(body.items.map((row: Message) => [row.id, row]))
      }
      /** Receives what was committed before a further record. */
      async function receive(end: string): Promise<void> {
        await server.service.post(items, { id: end })
        const messages = await last.until((message) => changesIn([message]).some(({ docId }) => docId === end))
        for (const { docId, data } of changesIn(messages)) view.set(docId, data)
      }
      // PostgreSQL may commit a write of the killed server after the next one has started. A change that was missed
      // never arrives.
      for (let end = 0; end < 10; end++) {
        await receive(`end${end}`)
        if (Bun.deepEquals(Object.fromEntries(view), await shown())) break
      }
      expect(Object.fromEntries(view)).toEqual(await shown())
      await last.close()
    } finally {
      await server.remove()
    }
  })
