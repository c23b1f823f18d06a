/** Versions in change messages: the same as in responses, and in order, from every node. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import type { Answer } from '../harness/client.ts'
import { closeAfterEach } from '../harness/closing.ts'
import { open } from '../harness/config.ts'
import { sharedEngine } from '../harness/engines.ts'
import { openSharedStorage } from '../harness/nodes.ts'
import { changesIn, itemsChannel, watch } from '../harness/records/live.ts'
import { describeServer, startServer, type TestServer } from '../harness/server.ts'
import type { Message } from '../harness/socket.ts'
import { times } from '../harness/times.ts'

const items = '/api/db/shared/tables/items'
const schema = { n: { type: 'number' } } as const
const config = {
  databases: {
    shared: {
      tables: {
        items: { schema, access: open },
      },
    },
  },
}

const versionOf = ({ headers }: Answer): number => Number(/^"(\d+)[-"]/.exec(headers.get('etag') ?? '')?.[1])

describeServer('versions of changes', { config }, (server) => {
  test('[DB-VER-8] a change has the version of the response, live and recovered', async () => {
    const socket = await watch(server.url, { subscribe: { filters: [['n', '<', 5]] } })
    const versions = [
      versionOf(await server.anonymous.post(items, { id: 'a', n: 1 })),
      versionOf(await server.anonymous.patch(`${items}/a`, { n: 2 })),
      // The row leaves the view and comes back.
      versionOf(await server.anonymous.patch(`${items}/a`, { n: 9 })),
      versionOf(await server.anonymous.post(`${items}?upsert=true`, { id: 'a', n: 3 })),
      versionOf(await server.anonymous.delete(`${items}/a`)),
      versionOf(await server.anonymous.post(items, { id: 'a', n: 4 })),
    ]
    const again = await watch(server.url, {
      subscribe: { since: socket.subscribed.cursor, filters: [['n', '<', 5]] },
    })
    const types = ['added', 'modified', 'removed', 'added', 'removed', 'added']
    for (const one of [socket, again])
      for (const [at, version] of versions.entries())
        expect(await one.next()).toMatchObject({ changeType: types[at], docId: 'a', version })
    for (const one of [socket, again]) await one.close()
  })

  test('[DB-VER-8] changes of a batch have versions, and a client can compare them with what it reads', async () => {
    const socket = await watch(server.url, {})
    const ids = times(12, (n) => `b${n}`)
    await server.anonymous.post(`${items}/batch`, { inserts: ids.map((id) => ({ id, n: 0 })) })
    const { changes } = await socket.expect('batch_changes')
    for (const { docId, version } of changes)
      expect(versionOf(await server.anonymous.get(`${items}/${docId}`))).toBe(version)
    const condition = { 'if-match': `"${changes[0].version}"` }
    expect((await server.anonymous.patch(`${items}/${ids[0]}`, { n: 1 }, condition)).status).toBe(200)
    expect((await server.anonymous.patch(`${items}/${ids[0]}`, { n: 2 }, condition)).status).toBe(412)
    await socket.close()
  })
})

const closing = closeAfterEach()

if (sharedEngine)
  test('[DB-VER-3, DB-VER-4, DB-VER-8] two nodes whose clocks differ by a minute write one row at once', async () => {
    const storage = closing(await openSharedStorage(sharedEngine), ({ remove }) => remove())
    const now = Date.now()
    const nodes: TestServer[] = []
    for (const ahead of [0, 60_000]) {
      const node = await startServer({ config, clock: manualClock(now + ahead) }, storage.engine)
      nodes.push(closing(node, ({ close }) => close()))
    }
    const sockets = await Promise.all(nodes.map(({ url }) => watch(url, { channel: itemsChannel })))
    const pick = (n: number): TestServer => nodes[n % 2] as TestServer
    const kinds = [
      ({ anonymous }: TestServer, n: number) => anonymous.post(items, { id: 'a', n }),
      ({ anonymous }: TestServer, n: number) => anonymous.post(`${items}?upsert=true`, { id: 'a', n }),
      ({ anonymous }: TestServer, n: number) => anonymous.patch(`${items}/a`, { n }),
      ({ anonymous }: TestServer) => anonymous.delete(`${items}/a`),
      ({ anonymous }: TestServer, n: number) =>
        anonymous.post(`${items}/batch?upsert=true`, { inserts: [{ id: 'a', n }] }),
    ]
    const answers = await Promise.all(times(300, (n) => (kinds[(n * 7) % 5] as (typeof kinds)[0])(pick(n), n)))
    const last = await pick(0).anonymous.post(`${items}?upsert=true`, { id: 'a', n: -1 })
    const ends = ({ data }: Message): boolean => data?.n === -1
    for (const socket of sockets) {
      const changes = changesIn(await socket.until((message) => changesIn([message]).some(ends)))
      const versions = changes.map(({ version }) => version)
      expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b))
      expect(versions.at(-1)).toBe(versionOf(last))
      const reported = answers.filter(({ status, headers }) => status < 300 && headers.has('etag')).map(versionOf)
      expect(reported.length).toBeGreaterThan(60)
      for (const version of reported) expect(versions).toContain(version)
      await socket.close()
    }
    for (const node of nodes) expect(versionOf(await node.anonymous.get(`${items}/a`))).toBe(versionOf(last))
  })
