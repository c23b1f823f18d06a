/** Subscriptions on several nodes that share PostgreSQL and Redis, and while Redis is down. */
import { expect, test } from 'bun:test'
import type { PrivateServer } from '../../../../scripts/servers/private-server.ts'
import { provideRedis } from '../../../../scripts/servers/programs.ts'
import { openRedis } from '../../../../scripts/servers/redis.ts'
import { closeAfterEach } from '../harness/closing.ts'
import { open } from '../harness/config.ts'
import { sharedEngine } from '../harness/engines.ts'
import { openNodes } from '../harness/nodes.ts'
import { applyChanges, changesIn, itemsChannel, watch } from '../harness/records/live.ts'
import { expectRefusal } from '../harness/refusal.ts'
import type { TestServer } from '../harness/server.ts'
import type { Message } from '../harness/socket.ts'

const items = '/api/db/shared/tables/items'
const config = {
  databases: {
    shared: { tables: { items: { schema: { n: { type: 'number' } }, access: open } } },
    space: {
      instance: true,
      access: () => true,
      tables: { notes: { schema: { n: { type: 'number' } }, access: open } },
    },
  },
}

const closing = closeAfterEach()

/** Nodes with a Redis that the test can stop. */
async function startNodes(count: number): Promise<{ nodes: readonly TestServer[]; redis: PrivateServer }> {
  const redis = closing(await openRedis(provideRedis() as string), ({ remove }) => remove())
  const storage = { redisUrl: redis.url }
  const { nodes } = closing(await openNodes(sharedEngine, count, { config }, storage), ({ close }) => close())
  return { nodes, redis }
}

if (sharedEngine) {
  test('[SUB-70, SUB-72] changes and broadcasts made on one node are delivered on all nodes', async () => {
    const { nodes } = await startNodes(3)
    const sockets = await Promise.all(nodes.map(({ url }) => watch(url)))
    for (const [n, node] of nodes.entries()) {
      await node.service.post(items, { id: `of${n}`, n })
      for (const socket of sockets) expect(await socket.next()).toMatchObject({ docId: `of${n}`, data: { n } })
    }
    await nodes[1]?.service.post('/api/db/broadcast', { channel: itemsChannel, event: 'news', payload: { n: 1 } })
    for (const socket of sockets) expect(await socket.next()).toMatchObject({ type: 'broadcast_event', event: 'news' })
    for (const socket of sockets) await socket.close()
  })

  test('[SUB-70] a cursor from one node is valid on another', async () => {
    const { nodes } = await startNodes(2)
    const [one, other] = nodes as [TestServer, TestServer]
    const { subscribed, close } = await watch(one.url)
    await close()
    await one.service.post(items, { id: 'a' })
    const again = await watch(other.url, { subscribe: { since: subscribed.cursor } })
    expect(again.subscribed.recovered).toBe(true)
    expect((await again.next()).docId).toBe('a')
    await again.close()
  })

  test('[SUB-70] a subscriber of an instance receives no changes of other instances in the same log', async () => {
    const { nodes } = await startNodes(2)
    const [one, other] = nodes as [TestServer, TestServer]
    const socket = await watch(one.url, { channel: 'dblive:space:mine:notes' })
    await other.service.post('/api/db/space/theirs/tables/notes', { n: 1 })
    await other.service.post('/api/db/space/mine/tables/notes', { n: 2 })
    expect((await socket.next()).data.n).toBe(2)
    await socket.close()
  })

  test('[SUB-71, SUB-72] without Redis changes are still delivered, and broadcasts are refused', async () => {
    const { nodes, redis } = await startNodes(2)
    const [one, other] = nodes as [TestServer, TestServer]
    const socket = await watch(one.url)
    await redis.crash()
    await other.service.post(items, { id: 'during' })
    expect((await socket.next()).docId).toBe('during')
    while ((await other.service.get('/api/health')).status === 200);
    const cast = { channel: itemsChannel, event: 'news', payload: {} }
    expectRefusal(await other.service.post('/api/db/broadcast', cast), 503)
    await redis.start()
    while ((await other.service.get('/api/health')).status !== 200);
    while ((await one.service.get('/api/health')).status !== 200);
    await other.service.post('/api/db/broadcast', { ...cast, event: 'back' })
    expect(await socket.next()).toMatchObject({ type: 'broadcast_event', event: 'back' })
    await socket.close()
  })

  test('[SUB-73] concurrent writes on several nodes are each delivered once, and the last change is the final record', async () => {
    const { nodes } = await startNodes(3)
    const sockets = await Promise.all(nodes.map(({ url }) => watch(url)))
    const perWriter = 40
    await Promise.all(
      nodes.flatMap((node, at) =>
        Array.from({ length: 4 }, async (_, writer) => {
          for (let n = 0; n < perWriter; n++) {
            // Transactions of many rows take longer than those of one, so they commit in another order than they began.
            if (n % 5 === 0)
              await node.service.post(`${items}/batch?upsert=true`, {
                inserts: Array.from({ length: 20 }, (_, row) => ({ id: `b${at}-${writer}-${row}`, n })),
              })
            else await node.service.post(`${items}?upsert=true`, { id: `x${n % 6}`, n: n * 100 + at * 10 + writer })
          }
        }),
      ),
    )
    const [one] = nodes as [TestServer]
    await one.service.post(items, { id: 'end' })
    const expected = 12 * ((perWriter / 5) * 20 + (perWriter * 4) / 5) + 1
    const { body } = await one.service.get(`${items}?limit=1000`)
    const rows = new Map<string, Message>(body.items.map((row: Message) => [row.id, row]))
    for (const socket of sockets) {
      const messages: Message[] = []
      while (changesIn(messages).length < expected) messages.push(await socket.next())
      const view = new Map<string, Message>()
      applyChanges(view, messages)
      expect(changesIn(messages)).toHaveLength(expected)
      expect(view).toEqual(rows)
      socket.send({ type: 'ping' })
      await socket.expect('pong')
      await socket.close()
    }
  })
}
