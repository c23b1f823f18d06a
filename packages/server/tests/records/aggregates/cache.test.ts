/** The cache of aggregates: a result is kept until the next write of the tables that it depends on, on every node. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { exists, field } from '../../../src/access/filter.ts'
import { type Client, query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { sharedEngine } from '../../harness/engines.ts'
import { type Nodes, openNodes } from '../../harness/nodes.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'

const items = '/api/db/shared/tables/items'
const posts = '/api/db/shared/tables/posts'
const members = '/api/db/shared/tables/members'

type Auth = { id: string } | null
const config = {
  databases: {
    shared: {
      tables: {
        items: { schema: { n: { type: 'number' }, kind: { type: 'string' } }, access: open },
        others: { schema: { n: { type: 'number' } }, access: open },
        authors: { schema: { role: { type: 'string' } }, access: open },
        books: { schema: { n: { type: 'number' }, authorId: { type: 'string', references: 'authors' } }, access: open },
        members: { schema: { userId: { type: 'string' }, teamId: { type: 'string' } }, access: open },
        posts: {
          schema: { teamId: { type: 'string' }, n: { type: 'number' } },
          access: {
            ...open,
            read: (auth: Auth) => auth !== null && exists('members', { userId: auth.id, teamId: field('teamId') }),
          },
        },
      },
    },
    space: {
      instance: true,
      access: () => true,
      tables: { items: { schema: { n: { type: 'number' } }, access: open } },
    },
  },
}

const path = (base: string): string => `${base}/aggregate${query({ measures: { n: 'count', s: { sum: 'n' } } })}`
const sumOf = async (client: Client, base = items): Promise<number[]> => {
  const { groups } = (await client.get(path(base))).body
  return [groups[0].n, groups[0].s]
}

/** Scans that the server has made for aggregates. */
async function scansOf(server: TestServer): Promise<number> {
  const { text } = await server.service.get('/metrics')
  return Number(/^\w*aggregate_scans_total (\d+)/m.exec(text)?.[1])
}

describeServer('the cache of aggregates', { config }, (server) => {
  /** What `work` answers, and the scans that it causes. */
  async function scans<T>(work: () => Promise<T>): Promise<[T, number]> {
    const before = await scansOf(server)
    const result = await work()
    return [result, (await scansOf(server)) - before]
  }
  const sum = (base = items) => scans(() => sumOf(server.anonymous, base))

  test('[DB-AGG-14] every kind of write is in the next result, and without one there is no scan', async () => {
    expect(await sum()).toEqual([[0, 0], 1])
    expect(await sum()).toEqual([[0, 0], 0])
    const { service } = server
    const steps: [() => Promise<unknown>, number[]][] = [
      [() => service.post(items, { id: 'a', n: 1 }), [1, 1]],
      [() => service.post(`${items}?upsert=true`, { id: 'a', n: 2 }), [1, 2]],
      [() => service.patch(`${items}/a`, { n: { $op: 'increment', value: 3 } }), [1, 5]],
      [
        () => service.post(`${items}/batch`, { inserts: [{ id: 'b', n: 10 }], updates: [{ id: 'a', data: { n: 0 } }] }),
        [2, 10],
      ],
      [
        () =>
          service.post('/api/db/shared/transaction', { operations: [{ table: 'items', insert: { id: 'c', n: 5 } }] }),
        [3, 15],
      ],
      [() => service.post(`${items}/batch-by-filter`, { action: 'update', data: { n: 1 } }), [3, 3]],
      [() => service.post(`${items}/batch-by-filter`, { action: 'delete', filter: [['id', '==', 'b']] }), [2, 2]],
      [() => service.delete(`${items}/a`), [1, 1]],
    ]
    for (const [write, expected] of steps) {
      await write()
      expect(await sum()).toEqual([expected, 1])
      expect(await sum()).toEqual([expected, 0])
    }
    expect((await service.post('/api/db/shared/tables/others', { n: 1 })).status).toBe(201)
    expect((await service.post(items, { n: 'one' })).status).toBe(400)
    expect(await sum()).toEqual([[1, 1], 0])
  })

  test('[DB-AGG-14] the parameters are part of the key', async () => {
    const request = async (params: object) =>
      (await server.anonymous.get(`${items}/aggregate${query({ ...params })}`)).text
    const base = { group: ['id'], measures: { n: 'count' } }
    const all = [
      base,
      { ...base, limit: 1 },
      { ...base, sort: 'id:desc' },
      { ...base, having: [['n', '>', 1]] },
      { ...base, measures: { m: 'count' } },
      { ...base, group: ['kind'] },
      { ...base, filter: [['n', '>', 100]] },
    ]
    expect((await server.service.post(items, { id: 'z', n: 1, kind: 'k' })).status).toBe(201)
    const [first, count] = await scans(() => Promise.all(all.map(request)))
    expect(count).toBe(all.length)
    expect(new Set(first).size).toBe(all.length - 1)
    expect(await scans(() => Promise.all(all.map(request)))).toEqual([first, 0])
  })

  test('[DB-AGG-14] equal requests at the same time share scans', async () => {
    expect((await server.service.post(items, { id: 'y', n: 1 })).status).toBe(201)
    const [results, count] = await scans(() => Promise.all(Array.from({ length: 30 }, () => sumOf(server.anonymous))))
    expect(new Set(results.map(String)).size).toBe(1)
    expect(count).toBe(1)
  })

  test('[DB-AGG-14] a rule that reads another table follows the writes of that table', async () => {
    const user = server.as('u')
    const request = () => scans(() => sumOf(user, posts))
    expect((await server.service.post(posts, { teamId: 't', n: 7 })).status).toBe(201)
    expect(await request()).toEqual([[0, 0], 1])
    expect(await request()).toEqual([[0, 0], 0])
    expect((await server.service.post(members, { id: 'm', userId: 'u', teamId: 't' })).status).toBe(201)
    expect(await request()).toEqual([[1, 7], 1])
    expect((await server.service.delete(`${members}/m`)).status).toBe(200)
    expect(await request()).toEqual([[0, 0], 1])
  })

  test('[DB-AGG-14, DB-REL-1] a condition through a relation follows the writes of the related table', async () => {
    const [authors, books] = ['authors', 'books'].map((name) => `/api/db/shared/tables/${name}`)
    const { service } = server
    expect((await service.post(`${authors}`, { id: 'ann', role: 'guest' })).status).toBe(201)
    expect((await service.post(`${books}`, { n: 4, authorId: 'ann' })).status).toBe(201)
    const parameters = (filter: unknown) => query({ measures: { n: 'count' }, filter })
    const conditions: [string, unknown][] = [
      [`${books}`, [['author.role', '==', 'editor']]],
      [`${authors}`, [['books', 'some', [['n', '>', 3]]]]],
    ]
    const request = () =>
      scans(() =>
        Promise.all(
          conditions.map(async ([base, filter]) => {
            const { status, body } = await server.anonymous.get(`${base}/aggregate${parameters(filter)}`)
            return status === 200 ? body.groups[0].n : body
          }),
        ),
      )
    expect(await request()).toEqual([[0, 1], 2])
    expect(await request()).toEqual([[0, 1], 0])
    expect((await service.patch(`${authors}/ann`, { role: 'editor' })).status).toBe(200)
    expect(await request()).toEqual([[1, 1], 2])
    expect((await service.post(`${books}/batch-by-filter`, { action: 'update', data: { n: 1 } })).status).toBe(200)
    expect(await request()).toEqual([[1, 0], 2])
  })

  test('[DB-AGG-14, DB-AGG-17] instances are apart', async () => {
    const [one, two] = ['/api/db/space/one/tables/items', '/api/db/space/two/tables/items']
    for (const base of [one, two]) expect((await server.service.post(base, { n: 1 })).status).toBe(201)
    expect([await sumOf(server.anonymous, one), await sumOf(server.anonymous, two)]).toEqual([
      [1, 1],
      [1, 1],
    ])
    expect((await server.service.post(one, { n: 5 })).status).toBe(201)
    expect([await sum(two), await sum(one)]).toEqual([
      [[1, 1], 0],
      [[2, 6], 1],
    ])
  })

  test('[DB-AGG-14] results during writes are those of a state, and never older than the request', async () => {
    const base = '/api/db/shared/tables/others'
    const path = `${base}/aggregate${query({ measures: { n: 'count', s: { sum: 'n' } } })}`
    const [before = 0] = await sumOf(server.anonymous, base)
    for (let round = 1; round <= 20; round++) {
      const writing = server.service.post(`${base}/batch`, { inserts: [{ n: 1 }, { n: -1 }] })
      const during = Array.from({ length: 3 }, () => server.anonymous.get(path))
      expect((await writing).status).toBe(200)
      const after = await sumOf(server.anonymous, base)
      expect(after[0]).toBe(before + 2 * round)
      for (const { body } of await Promise.all(during)) {
        const { n, s } = body.groups[0]
        expect([before + 2 * round - 2, before + 2 * round]).toContain(n)
        expect(s).toBe(after[1])
      }
    }
  })
})

describe.skipIf(!sharedEngine)('the cache of aggregates on several nodes', () => {
  let all: Nodes
  beforeAll(async () => {
    all = await openNodes(sharedEngine, 2, { config })
  })
  afterAll(() => all.close())

  test('[DB-AGG-14] a write on one node is in the next result of another', async () => {
    const [first, second] = all.nodes as [TestServer, TestServer]
    for (let n = 1; n <= 10; n++) {
      expect(await sumOf(second.anonymous)).toEqual([n - 1, n - 1])
      expect((await first.service.post(items, { n: 1 })).status).toBe(201)
      expect(await sumOf(second.anonymous)).toEqual([n, n])
    }
    const before = await scansOf(second)
    expect(await sumOf(second.anonymous)).toEqual([10, 10])
    expect(await scansOf(second)).toBe(before)
  })
})
