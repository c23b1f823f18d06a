/** The list of nodes with what each serves: of one process, and of several that answer each other. */
import { describe, expect, test } from 'bun:test'
import { closeAfterEach } from '../harness/closing.ts'
import { open } from '../harness/config.ts'
import { sharedEngine } from '../harness/engines.ts'
import { openNodes } from '../harness/nodes.ts'
import { watch } from '../harness/records/live.ts'
import { join } from '../harness/rooms/rooms.ts'
import { describeServer, rootKey, type TestServer } from '../harness/server.ts'

const config = {
  databases: { shared: { tables: { posts: { access: open }, notes: { access: open } } } },
  rooms: { game: { access: { join: true } } },
  broadcasts: { news: { subscribe: true, publish: true } },
} as const

interface Node {
  readonly id: string
  readonly sockets: { readonly open: number; readonly subscriptions: number; readonly rooms: number }
  readonly rooms: { readonly rooms: number; readonly players: number; readonly session: string | null }
  readonly subscriptions: { readonly subscriptions: number; readonly channels: readonly object[] }
  readonly leases: readonly string[]
}

const read = async (server: TestServer): Promise<{ items: Node[]; channels: object[]; truncated?: true }> =>
  (await server.service.get('/api/nodes')).body

/** Asks until the answer is as expected: what others do becomes visible with their next message. */
async function until(server: TestServer, isThere: (items: readonly Node[]) => boolean): Promise<readonly Node[]> {
  for (let attempts = 0; attempts < 1000; attempts++) {
    const { items } = await read(server)
    if (isThere(items)) return items
  }
  throw new Error(`never: ${JSON.stringify((await read(server)).items, null, 2)}`)
}

describeServer('a node', { config }, (server) => {
  test('[SYS-25] describes itself: version, start, load, sockets, subscriptions and rooms', async () => {
    const posts = await watch(server.url, { channel: 'dblive:shared:posts', key: rootKey })
    posts.send({ type: 'subscribe', channel: 'dblive:shared:posts#second' })
    await posts.expect('subscribed')
    posts.send({ type: 'subscribe', channel: 'broadcast:news' })
    await posts.expect('subscribed')
    const notes = await watch(server.url, { channel: 'dblive:shared:notes', key: rootKey })
    const ann = await join(server, 'ann', { id: 'lobby' })
    const { items, channels } = await read(server)
    const [node] = items
    expect(items).toHaveLength(1)
    expect(node).toMatchObject({
      version: expect.any(String),
      pid: process.pid,
      load: { cpu: expect.any(Number), memoryBytes: expect.any(Number) },
      sockets: { open: 3, pending: 0, subscriptions: 2, rooms: 1 },
      rooms: { rooms: 1, players: 1, connections: 1 },
      subscriptions: { subscriptions: 4, paused: 0 },
    })
    expect(channels).toEqual([
      { channel: 'dblive:shared:posts', subscribers: 2 },
      { channel: 'broadcast:news', subscribers: 1 },
      { channel: 'dblive:shared:notes', subscribers: 1 },
    ])
    for (const socket of [posts, notes]) await socket.close()
    await ann.close()
    await until(server, ([one]) => one?.sockets.open === 0 && one.subscriptions.subscriptions === 0)
    expect((await read(server)).channels).toEqual([])
  })
})

const closing = closeAfterEach()

if (sharedEngine)
  describe('several nodes', () => {
    test('[SYS-26] each node lists all of them, with sums of channels, until they leave', async () => {
      const { nodes } = closing(await openNodes(sharedEngine, 3, { config }), ({ close }) => close())
      const [first, second, third] = nodes as [TestServer, TestServer, TestServer]
      for (const node of nodes) await until(node, (items) => items.length === 3)
      const sockets = [
        await watch(first.url, { channel: 'dblive:shared:posts', key: rootKey }),
        await watch(second.url, { channel: 'dblive:shared:posts', key: rootKey }),
        await watch(second.url, { channel: 'dblive:shared:notes', key: rootKey }),
      ]
      const ann = await join(second, 'ann', { id: 'lobby' })
      const { items, channels } = await read(third)
      expect(items[0]?.sockets.open).toBe(0)
      expect(items.map(({ sockets }) => sockets.open).toSorted()).toEqual([0, 1, 3])
      expect(channels).toEqual([
        { channel: 'dblive:shared:posts', subscribers: 2 },
        { channel: 'dblive:shared:notes', subscribers: 1 },
      ])
      const busy = items.find(({ sockets }) => sockets.rooms === 1)
      expect(busy?.rooms).toMatchObject({ rooms: 1, players: 1 })
      expect(typeof busy?.rooms.session).toBe('string')
      expect(busy?.leases).toContain(`rooms-node:${busy?.rooms.session}`)
      expect(new Set(items.map(({ id }) => id)).size).toBe(3)
      for (const socket of [...sockets, ann]) await socket.close()
      await second.close()
      await until(third, (left) => left.length === 2 && left.every(({ id }) => id !== busy?.id))
    })
  })
