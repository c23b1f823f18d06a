/**
 * Dynamic namespaces: access to instances, valid ids, creation, and isolation between instances.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { type Client, query } from '../../harness/client.ts'
import { brokenLater, open } from '../../harness/config.ts'
import { sendRawPath } from '../../harness/raw-http.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, rootKey } from '../../harness/server.ts'

type Auth = { id: string; custom: { workspaces?: string[] } } | null

const schema = { title: { type: 'string' }, n: { type: 'number' }, slug: { type: 'string', unique: true } } as const
const items = { schema, search: ['title'], access: open } as const

const config = {
  databases: {
    shared: { tables: { items } },
    space: { instance: true, access: () => true, tables: { items, others: { schema, access: open } } },
    workspace: {
      instance: true,
      access: (auth: Auth, id: string) => auth?.custom.workspaces?.includes(id) ?? false,
      tables: { items, locked: { schema } },
    },
    personal: { instance: true, access: (auth: Auth, id: string) => auth?.id === id, tables: { items } },
    closed: { instance: true, tables: { items } },
    failing: {
      instance: true,
      access: () => {
        throw new Error('a rule that throws')
      },
      tables: { items },
    },
    sloppy: { instance: true, access: brokenLater(() => 'yes') as unknown as () => boolean, tables: { items } },
  },
} as const

const limited = { rateLimits: { instances: { requests: 3, window: '60s' } } } as const

describeServer('new instances of a namespace', { config: { ...config, ...limited }, mode: 'release' }, (server) => {
  const create = (client: Client, id: string) => client.post(table('space', id), { title: 'x' })
  const statuses = async (client: Client, ...ids: readonly string[]): Promise<number[]> => {
    const found: number[] = []
    for (const id of ids) found.push((await create(client, id)).status)
    return found
  }
  const isApart = (): boolean => server.settings().databaseUrl === null

  test('[DB-NS-10] are limited in number per caller, where each is a separate database', async () => {
    const refused = isApart() ? 429 : 201
    expect(await statuses(server.as('ann'), 'a1', 'a2', 'a3', 'a4', 'a1')).toEqual([201, 201, 201, refused, 201])
    if (isApart()) {
      expect(Number((await create(server.as('ann'), 'a5')).headers.get('retry-after'))).toBeGreaterThan(0)
      expect((await server.service.get(table('space', 'a4'))).body.total).toBe(0)
      expect(readdirSync(`${server.dataFolder}/instances/space`, { recursive: true }).join()).not.toContain('a4')
    }
    // Reads, and writes that change nothing, create no instance.
    expect((await server.as('ann').get(table('space', 'a6'))).status).toBe(200)
    expect((await server.as('ann').delete(`${table('space', 'a6')}/none`)).status).toBe(404)
    // Other callers have their own limit, and the service key has none.
    expect(await statuses(server.as('bob'), 'b1', 'b2', 'b3', 'b4')).toEqual([201, 201, 201, refused])
    expect(await statuses(server.anonymous, 'c1', 'c2', 'c3', 'c4')).toEqual([201, 201, 201, refused])
    expect(await statuses(server.service, 'd1', 'd2', 'd3', 'd4', 'd5')).toEqual([201, 201, 201, 201, 201])
  })
})

const table = (namespace: string, id: string): string => `/api/db/${namespace}/${id}/tables/items`
const space = (id: string): string => table('space', id)

describeServer('instances', { config }, (server) => {
  /** Every file below the data folder, for engines that store files there. */
  const files = (): string[] =>
    readdirSync(server.dataFolder, { recursive: true })
      .map(String)
      .filter((name) => !/-(wal|shm|journal)$/.test(name))
      .sort()

  beforeAll(async () => {
    // A static namespace may be created at its first use, which is not tested here.
    await server.service.post('/api/db/shared/tables/items', { id: 's1', title: 'static' })
  })

  test('[DB-NS-1] a static namespace has no instances, and a dynamic one is accessed only by instance', async () => {
    expect((await server.anonymous.get('/api/db/shared/tables/items')).status).toBe(200)
    for (const client of [server.anonymous, server.service]) {
      expectRefusal(await client.get(table('shared', 'x')), 404)
      expectRefusal(await client.post(table('shared', 'x'), { title: 'x' }), 404)
      expectRefusal(await client.get('/api/db/space/tables/items'), 404)
      expectRefusal(await client.post('/api/db/space/tables/items', { title: 'x' }), 404)
      expectRefusal(await client.get(table('nope', 'x')), 404)
      expectRefusal(await client.get('/api/db/space/x/tables/nope'), 404)
    }
    expect((await server.service.get('/api/db/shared/tables/items/count')).body.total).toBe(1)
  })

  test('[DB-NS-4] reading a new instance returns nothing and does not create it', async () => {
    const before = files()
    for (const client of [server.anonymous, server.as('alice'), server.service]) {
      const list = await client.get(space('unwritten'))
      expect(list.body).toMatchObject({ items: [], total: 0, page: 1, perPage: 100 })
      expect((await client.get(space('unwritten') + query({ after: '' }))).body).toMatchObject({
        items: [],
        hasMore: false,
      })
      expect(
        (await client.get(space('unwritten') + query({ before: '', sort: 'n:desc', filter: [['n', '>', 1]] }))).body,
      ).toMatchObject({ items: [], hasMore: false })
      expect((await client.get(`${space('unwritten')}/count`)).body).toEqual({ total: 0 })
      expect((await client.get(`${space('unwritten')}/search${query({ q: 'x' })}`)).body).toMatchObject({
        items: [],
        total: 0,
      })
      expectRefusal(await client.get(`${space('unwritten')}/x`), 404)
      expectRefusal(await client.get(space('unwritten') + query({ after: 'x' })), 400)
      expectRefusal(await client.get(space('unwritten') + query({ sort: 'nope:asc' })), 400)
    }
    expect(files()).toEqual(before)
  })

  test('[DB-NS-4, RULE-13] a write that is refused or changes nothing does not create the instance', async () => {
    const before = files()
    const path = space('refused')
    expectRefusal(await server.anonymous.patch(`${path}/x`, { title: 'x' }), 404)
    expectRefusal(await server.anonymous.delete(`${path}/x`), 404)
    expectRefusal(await server.anonymous.post(path, { nope: 1 }), 400)
    expectRefusal(await server.anonymous.post(path, { title: 5 }), 400)
    expectRefusal(
      await server.anonymous.post(`${path}/batch`, { deletes: ['x'] }, { 'idempotency-key': 'refused' }),
      404,
    )
    expectRefusal(await server.anonymous.post(`${path}/batch`, { inserts: [{ title: 'x' }], deletes: ['x'] }), 404)
    expectRefusal(await server.anonymous.post(`${path}/batch`, { inserts: [{ id: 'a' }, { id: 'a' }] }), 409)
    expectRefusal(await server.as('alice').post('/api/db/workspace/refused/tables/items', {}), 403)
    expectRefusal(
      await server
        .as({ id: 'alice', custom: { workspaces: ['refused'] } })
        .post('/api/db/workspace/refused/tables/locked', {}),
      403,
    )
    expect((await server.anonymous.post(`${path}/batch-by-filter`, { action: 'delete' })).body).toEqual({
      processed: 0,
      succeeded: 0,
    })
    expect((await server.anonymous.post(`${path}/batch`, {})).body).toEqual({ inserted: [], updated: [], deleted: [] })
    expect((await server.anonymous.get(`${path}/count`)).body.total).toBe(0)
    expect(files()).toEqual(before)
  })

  test('[DB-NS-5] any kind of first write creates the instance', async () => {
    expect((await server.anonymous.post(space('by-insert'), { id: 'a' })).status).toBe(201)
    expect((await server.anonymous.post(`${space('by-upsert')}?upsert=true`, { id: 'a' })).status).toBe(201)
    expect((await server.anonymous.post(`${space('by-batch')}/batch`, { inserts: [{ id: 'a' }] })).status).toBe(200)
    for (const id of ['by-insert', 'by-upsert', 'by-batch'])
      expect((await server.anonymous.get(`${space(id)}/a`)).status).toBe(200)
    expect((await server.anonymous.get(`/api/db/space/by-insert/tables/others`)).body.total).toBe(0)
  })

  test('[DB-NS-5] thirty concurrent first writes all succeed', async () => {
    const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => server.anonymous.post(space('rush'), { n })))
    expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(201))
    expect((await server.anonymous.get(`${space('rush')}/count`)).body.total).toBe(30)
  })

  test('[DB-NS-6] records, unique values, totals and searches are isolated by instance', async () => {
    for (const id of ['p', 'q'])
      expect(
        (
          await server.anonymous.post(`${space(id)}/batch`, {
            inserts: [
              { id: 'same', title: `only ${id}`, slug: 'same' },
              { id: `own-${id}`, title: 'x' },
            ],
          })
        ).status,
      ).toBe(200)
    const p = await server.anonymous.get(space('p'))
    expect(p.body.total).toBe(2)
    expect(p.body.items.map(({ id }: { id: string }) => id)).toEqual(['own-p', 'same'])
    expectRefusal(await server.anonymous.get(`${space('p')}/own-q`), 404)
    expectRefusal(await server.anonymous.delete(`${space('p')}/own-q`), 404)
    expect((await server.anonymous.get(`${space('p')}/search${query({ q: 'only' })}`)).body.items[0].title).toBe(
      'only p',
    )
    expect((await server.anonymous.patch(`${space('p')}/same`, { title: 'changed' })).status).toBe(200)
    expect((await server.anonymous.get(`${space('q')}/same`)).body.title).toBe('only q')
    expect((await server.anonymous.post(`${space('p')}/batch-by-filter`, { action: 'delete' })).body.processed).toBe(2)
    expect((await server.anonymous.get(`${space('q')}/count`)).body.total).toBe(2)
  })

  test('[DB-NS-7] ids that differ in case or look like file names are separate instances', async () => {
    const ids = [
      'x',
      'X',
      'x.db',
      'X.DB',
      'x.sqlite',
      'x.db-wal',
      'x-wal',
      'CON',
      'con',
      'nul',
      'aux.txt',
      'x.',
      'x..',
      '...',
      '.x',
      '-',
      '--',
      '_',
      '__proto__',
      'constructor',
      'shared',
      'count',
      '0',
      '00',
      'a'.repeat(128),
      'A'.repeat(128),
      `${'a'.repeat(127)}b`,
      '_x',
      'x_',
      'xx',
      'index',
      '.gitignore',
      'space',
    ]
    for (const [n, id] of ids.entries())
      expect([id, (await server.anonymous.post(space(id), { id: 'one', n })).status]).toEqual([id, 201])
    for (const [n, id] of ids.entries()) {
      const { body } = await server.anonymous.get(space(id))
      expect([id, body.total, body.items[0].n]).toEqual([id, 1, n])
    }
    await server.restart()
    for (const [n, id] of ids.entries())
      expect([id, (await server.anonymous.get(`${space(id)}/one`)).body.n]).toEqual([id, n])
    // An escaped letter is equivalent to the letter.
    expect((await server.anonymous.get(`${space('%78')}/one`)).body.n).toBe(0)
  })

  describe('malformed ids', () => {
    const malformed = [
      'a b',
      '%20',
      'ä',
      'a:b',
      '*',
      'a%2Fb',
      '..%2F..%2Fetc',
      '%2e%2e%2f',
      'a%5Cb',
      '%00',
      'x%00.db',
      '%0A',
      'a'.repeat(129),
      'x%3F',
      '~',
      '@',
      'x;y',
      '\u{1F600}',
      '%EF%BC%8E',
      "x'--",
      '"',
      '%25',
    ]
    for (const id of malformed)
      test(`[DB-NS-2] ${JSON.stringify(id).slice(0, 30)}`, async () => {
        const before = files()
        const path = space(/[^\x21-\x7e]|["*~;@': ]/.test(id) ? encodeURIComponent(id) : id)
        for (const client of [server.anonymous, server.service]) {
          expectRefusal(await client.get(path), 400, 'instanceId')
          expectRefusal(await client.post(path, { title: 'x' }), 400)
          expectRefusal(await client.delete(`${path}/x`), 400)
        }
        expect(files()).toEqual(before)
      })

    test('[DB-NS-2] raw dots and invalid escapes are refused', async () => {
      const before = files()
      for (const id of [
        '.',
        '..',
        '%2e',
        '%2e%2e',
        '%2E%2E',
        '.%2e',
        '',
        '%',
        '%zz',
        '%c0%ae',
        '%ff',
        '../..',
        '../../../../tmp/x',
        '..\\..',
        '%252e%252e',
        'x/../y',
      ])
        for (const method of ['GET', 'DELETE']) {
          const answer = await sendRawPath(server.url, method, `/api/db/space/${id}/tables/items`, [
            `X-Platform-Service-Key: ${rootKey}`,
          ])
          expect([id, answer.status >= 400 && answer.status < 500 ? 'refused' : answer.status]).toEqual([
            id,
            id === 'x/../y' && method === 'GET' ? expect.anything() : 'refused',
          ])
          if (method === 'GET' && answer.status >= 400 && answer.text)
            expect(JSON.parse(answer.text)).toMatchObject({ code: answer.status })
        }
      expect(files()).toEqual(before)
    })
  })

  describe('access', () => {
    const alice = { id: 'alice', custom: { workspaces: ['red', 'Blue'] } }

    test('[DB-NS-3] the rule of the namespace decides by caller and instance', async () => {
      const client = server.as(alice)
      expect((await client.post(table('workspace', 'red'), { title: 'x' })).status).toBe(201)
      expect((await client.get(table('workspace', 'red'))).body.total).toBe(1)
      for (const id of ['green', 'Red', 'blue', 'red.', 'redd', 're']) {
        const before = files()
        for (const path of ['', '/x', '/count', '/search?q=x'])
          expectRefusal(await client.get(table('workspace', id) + path), 403)
        expectRefusal(await client.post(table('workspace', id), { title: 'x' }), 403)
        expectRefusal(await client.patch(`${table('workspace', id)}/x`, { title: 'x' }), 403)
        expectRefusal(await client.delete(`${table('workspace', id)}/x`), 403)
        expectRefusal(await client.post(`${table('workspace', id)}/batch`, {}), 403)
        expectRefusal(await client.post(`${table('workspace', id)}/batch-by-filter`, { action: 'delete' }), 403)
        expect(files()).toEqual(before)
      }
      expectRefusal(await server.anonymous.get(table('workspace', 'red')), 401)
      expectRefusal(await server.as('bob').get(table('workspace', 'red')), 403)
      expect((await server.service.get(table('workspace', 'red'))).body.total).toBe(1)
    })

    test('[DB-NS-3] the rules of the tables apply within an instance', async () => {
      expectRefusal(await server.as(alice).get('/api/db/workspace/red/tables/locked'), 403)
      expect((await server.service.get('/api/db/workspace/red/tables/locked')).status).toBe(200)
    })

    test('[DB-NS-3] a rule can give each user a personal instance', async () => {
      expect((await server.as('ann').post(table('personal', 'ann'), { title: 'mine' })).status).toBe(201)
      expectRefusal(await server.as('ben').get(table('personal', 'ann')), 403)
      expectRefusal(await server.as('ben').post(table('personal', 'ann'), {}), 403)
      expectRefusal(await server.as('Ann').get(table('personal', 'ann')), 403)
      expectRefusal(await server.anonymous.get(table('personal', 'ann')), 401)
    })

    test('[DB-NS-3] only the service key is admitted without a rule, or with one that throws or does not return true', async () => {
      for (const namespace of ['closed', 'failing', 'sloppy']) {
        expectRefusal(await server.anonymous.get(table(namespace, 'x')), 401)
        expectRefusal(await server.as('alice').get(table(namespace, 'x')), 403)
        expectRefusal(await server.as('alice').post(table(namespace, 'x'), {}), 403)
        expect((await server.service.post(table(namespace, 'x'), {})).status).toBe(201)
      }
    })

    test('[DB-NS-3] the rule of another namespace does not grant access', async () => {
      for (const name of ['Workspace', 'WORKSPACE', 'workspace%20', 'workspace%00', '__proto__'])
        expectRefusal(await server.service.get(table(name, 'red')), 404)
    })
  })

  test('[DB-NS-5, DB-NS-6] more instances than are kept open at once can be used', async () => {
    const ids = Array.from({ length: 210 }, (_, n) => `pool-${n}`)
    const made = await Promise.all(ids.map((id, n) => server.anonymous.post(space(id), { id: 'one', n })))
    expect(made.filter(({ status }) => status !== 201)).toEqual([])
    const read = await Promise.all(ids.map((id) => server.anonymous.get(`${space(id)}/one`)))
    expect(read.map(({ body }) => body.n)).toEqual(ids.map((_, n) => n))
    const changed = await Promise.all(
      ids.map((id) => server.anonymous.patch(`${space(id)}/one`, { n: { $op: 'increment', value: 1 } })),
    )
    expect(changed.map(({ body }) => body.n)).toEqual(ids.map((_, n) => n + 1))
  })
})
