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
        const writes = Array.from({ length: 60 }, async (_, n) => {
          for (let step = 0; step < 20; step++)
            await server.service.post(`${items}?upsert=true`, { id: `r${n % 15}`, n: round * 1000 + step })
        })
        const finished = Promise.allSettled(writes)
        for (let n = 0; n < 20 + 30 * round; n++) {
          const message = await socket.next()
          since = message.cursor
          for (const { docId, data } of changesIn([message])) view.set(docId, data)
        }
        await server.kill()
        await finished
        await socket.closed
        await server.start()
      }
      const last = await watch(server.url, { subscribe: { since } })
      expect(last.subscribed.recovered).toBe(true)
      await server.service.post(items, { id: 'end' })
      for (const { docId, data } of changesIn(
        await last.until((message) => changesIn([message]).some(({ docId }) => docId === 'end')),
      ))
        view.set(docId, data)
      const { body } = await server.service.get(`${items}?limit=1000`)
      expect(Object.fromEntries(view)).toEqual(Object.fromEntries(body.items.map((row: Message) => [row.id, row])))
      await last.close()
    } finally {
      await server.remove()
    }
  })
