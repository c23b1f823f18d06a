/** POST /api/db/{namespace}/transaction: operations on several tables, all or nothing. */
import { beforeEach, expect, test } from 'bun:test'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

const shared = '/api/db/shared/transaction'
const items = '/api/db/shared/tables/items'
const owned = '/api/db/shared/tables/owned'
const secretive = '/api/db/shared/tables/secretive'
const locked = '/api/db/shared/tables/locked'
const loose = '/api/db/shared/tables/loose'
const inSpace = (table: string): string => `/api/db/space/one/tables/${table}`
const writerKey = 'a-key-that-may-only-write'
const mixedKey = 'a-key-that-reads-items-and-writes-loose'

type Auth = { id: string } | null
const own = (auth: Auth) => auth !== null && { ownerId: auth.id }
const schema = {
  title: { type: 'string' },
  rank: { type: 'number' },
  slug: { type: 'string', unique: true },
  secret: { type: 'string' },
  ownerId: { type: 'string' },
} as const

const config = {
  databases: {
    shared: {
      tables: {
        items: { schema, hidden: ['secret'], access: open },
        owned: { schema, access: { read: true, insert: own, update: own, delete: own } },
        secretive: { schema, access: { read: own, insert: own, update: own, delete: own } },
        locked: { schema, access: {} },
        loose: { access: open },
        comments: { schema: { itemId: { type: 'string', references: 'items' } }, access: open },
        transaction: { access: open },
      },
    },
    space: {
      instance: true,
      access: (auth: Auth) => auth !== null,
      tables: { a: { schema, access: open }, b: { access: open } },
    },
  },
  serviceKeys: [
    { name: 'writer', key: writerKey, scopes: ['db:table:items:write'] },
    { name: 'mixed', key: mixedKey, scopes: ['db:table:items:read', 'db:table:loose:write'] },
  ],
} as const

const tables = [items, owned, secretive, locked, loose, '/api/db/shared/tables/comments', inSpace('a'), inSpace('b')]

describeServer('transactions', { config }, (server) => {
  const { service, anonymous } = server
  const alice = server.as('alice')
  const send = (operations: unknown, client = alice, path = shared) => client.post(path, { operations })
  const tagOf = async (path: string): Promise<string> => (await service.get(path)).headers.get('etag') ?? ''

  beforeEach(async () => {
    for (const table of tables.toReversed()) {
      while ((await service.post(`${table}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
      if (table.endsWith('comments')) continue
      const inserts = ['a', 'b', 'c'].map((id, rank) => ({
        id,
        title: id,
        rank,
        ownerId: id === 'a' ? 'alice' : 'bob',
      }))
      expect((await service.post(`${table}/batch`, { inserts })).status).toBe(200)
    }
  })

  /** Asserts that a transaction is refused, that its error names the operation, and that nothing has changed. */
  async function expectRefused(operations: unknown, status: number, name: string, client = alice): Promise<void> {
    const before = await server.dump(...tables)
    const { data } = expectRefusal(await send(operations, client), status)
    expect(Object.keys(data ?? {})).toEqual([name])
    expect(await server.dump(...tables)).toEqual(before)
  }

  for (const [path, one, other] of [
    [shared, ['items', items], ['loose', loose]],
    ['/api/db/space/one/transaction', ['a', inSpace('a')], ['b', inSpace('b')]],
  ] as const)
    test(`[DB-TX-1, DB-TX-8] operations of several tables run in order and have their results in order: ${path}`, async () => {
      const operations = [
        { table: one[0], insert: { id: 'x', title: 'X' } },
        { table: other[0], upsert: { id: 'a', title: 'AA' } },
        { table: one[0], update: { id: 'x', data: { rank: { $op: 'increment', value: 2 } } } },
        { table: other[0], check: { id: 'b', ifMatch: await tagOf(`${other[1]}/b`) } },
        { table: other[0], delete: { id: 'b' } },
        { table: other[0], check: { id: 'b', exists: false } },
        { table: other[0], insert: { id: 'b', title: 'again' } },
        { table: one[0], upsert: { slug: 's', title: 'by slug' }, conflictTarget: 'slug' },
        { table: one[0], upsert: { slug: 's', rank: 7 }, conflictTarget: 'slug' },
      ]
      const { status, body } = await alice.post(`${path}?versions=1`, { operations })
      expect(status).toBe(200)
      expect(body.results).toMatchObject([
        { id: 'x', title: 'X', rank: null },
        { id: 'a', title: 'AA', rank: 0 },
        { id: 'x', rank: 2 },
        { ok: true },
        { id: 'b' },
        { ok: true },
        { id: 'b', title: 'again' },
        { title: 'by slug', slug: 's' },
        { title: 'by slug', rank: 7 },
      ])
      expect([body.results[3], body.results[4], body.results[5]]).toEqual([{ ok: true }, { id: 'b' }, { ok: true }])
      expect(body.results.some((result: object) => 'action' in result)).toBe(false)
      expect(body.results[2]).toEqual((await alice.get(`${one[1]}/x`)).body)
      expect(body.results[6]).toEqual((await alice.get(`${other[1]}/b`)).body)
      const numbers = body.versions.map((version: unknown) => typeof version)
      expect(numbers).toEqual(operations.map((operation) => ('check' in operation ? 'object' : 'number')))
      expect(await tagOf(`${one[1]}/x`)).toStartWith(`"${body.versions[2]}-`)
      expect(await tagOf(`${other[1]}/b`)).toStartWith(`"${body.versions[6]}-`)
      expect(body.versions[6]).toBeGreaterThan(body.versions[4])
      expect((await alice.post(path, { operations: [{ table: one[0], delete: { id: 'x' } }] })).body).toEqual({
        results: [{ id: 'x' }],
      })
    })

  test('[DB-TX-2] a transaction has 1 to 500 operations', async () => {
    const inserts = times(500, (n) => ({ table: n % 7 === 0 ? 'items' : 'loose', insert: { id: `n${n}` } }))
    expectRefusal(await send([]), 400, 'operations')
    expectRefusal(await send([...inserts, inserts[0]]), 400, '500')
    expectRefusal(await send(Array(501).fill(1)), 400, '500')
    const { status, body } = await send(inserts)
    expect([status, body.results.map(({ id }: { id: string }) => id)]).toEqual([200, times(500, (n) => `n${n}`)])
  })

  const fine = { table: 'items', insert: { id: 'new', title: 'N' } }
  for (const [title, operation, name] of [
    ['no operation', { table: 'items' }, 'operations[1]'],
    ['two operations', { table: 'items', insert: {}, delete: { id: 'a' } }, 'operations[1]'],
    ['an unknown operation', { table: 'items', remove: { id: 'a' } }, 'operations[1]'],
    ['no table', { insert: {} }, 'operations[1].table'],
    [
      'a conflictTarget without an upsert',
      { table: 'items', insert: {}, conflictTarget: 'id' },
      'operations[1].conflictTarget',
    ],
    [
      'a conflictTarget that is not unique',
      { table: 'items', upsert: { title: 'x' }, conflictTarget: 'title' },
      'operations[1]',
    ],
    ['an upsert without its conflictTarget', { table: 'items', upsert: { title: 'x' } }, 'operations[1].id'],
    ['a check of nothing', { table: 'items', check: { id: 'a' } }, 'operations[1].check'],
    [
      'a check of two conditions',
      { table: 'items', check: { id: 'a', exists: true, ifMatch: '*' } },
      'operations[1].check',
    ],
    ['a bad field', { table: 'items', insert: { title: 5 } }, 'operations[1].title'],
    ['a hidden field', { table: 'items', update: { id: 'a', data: { secret: 'x' } } }, 'operations[1].secret'],
    [
      'a bad operator',
      { table: 'items', update: { id: 'a', data: { title: { $op: 'increment', value: 1 } } } },
      'operations[1].title',
    ],
    ['a dangling reference', { table: 'comments', insert: { itemId: 'nope' } }, 'operations[1].itemId'],
  ] as const)
    test(`[DB-TX-3] ${title} is 400 and names the operation`, async () => {
      const before = await server.dump(...tables)
      const { data } = expectRefusal(await send([fine, operation]), 400)
      expect(Object.keys(data)).toContain(name)
      expect(await server.dump(...tables)).toEqual(before)
    })

  for (const [title, operation, status, name] of [
    ['an unknown table', { table: 'nowhere', insert: {} }, 404, 'operations[1]'],
    ['a missing record to update', { table: 'items', update: { id: 'nope', data: {} } }, 404, 'operations[1]'],
    ['a missing record to delete', { table: 'items', delete: { id: 'nope', ifMatch: '1' } }, 404, 'operations[1]'],
    ['a hidden record to update', { table: 'secretive', update: { id: 'b', data: {} } }, 404, 'operations[1]'],
    ['an insert that the rule denies', { table: 'owned', insert: { ownerId: 'bob' } }, 403, 'operations[1]'],
    ['an upsert that the rule denies', { table: 'owned', upsert: { id: 'b', title: 'x' } }, 403, 'operations[1]'],
    ['an update that the rule denies before', { table: 'owned', update: { id: 'b', data: {} } }, 403, 'operations[1]'],
    [
      'an update that the rule denies after',
      { table: 'owned', update: { id: 'a', data: { ownerId: 'bob' } } },
      403,
      'operations[1]',
    ],
    ['a delete that the rule denies', { table: 'owned', delete: { id: 'b' } }, 403, 'operations[1]'],
    ['a write that every rule denies', { table: 'locked', delete: { id: 'b' } }, 403, 'operations[1]'],
    ['a check that every rule denies', { table: 'locked', check: { id: 'b', exists: true } }, 403, 'operations[1]'],
    ['a duplicate', { table: 'items', insert: { id: 'a' } }, 409, 'operations[1].id'],
    [
      'an update of another version',
      { table: 'items', update: { id: 'a', data: {}, ifMatch: '1' } },
      409,
      'operations[1]',
    ],
    ['a delete of another version', { table: 'items', delete: { id: 'a', ifMatch: '"1-x"' } }, 409, 'operations[1]'],
    ['a check of another version', { table: 'items', check: { id: 'a', ifMatch: 1 } }, 409, 'operations[1]'],
    ['a check of a missing record', { table: 'items', check: { id: 'nope', exists: true } }, 409, 'operations[1]'],
    ['a check of the absence of a record', { table: 'items', check: { id: 'a', exists: false } }, 409, 'operations[1]'],
    ['a check of a hidden record', { table: 'secretive', check: { id: 'b', exists: true } }, 409, 'operations[1]'],
    [
      'a check of any version of a hidden record',
      { table: 'secretive', check: { id: 'b', ifMatch: '*' } },
      409,
      'operations[1]',
    ],
  ] as const)
    test(`[DB-TX-3, DB-TX-4] ${title} is ${status}, names the operation and changes nothing`, async () => {
      await expectRefused([fine, operation, { table: 'loose', delete: { id: 'a' } }], status, name)
    })

  test('[DB-TX-3] within a run of inserts or upserts the denied one is named', async () => {
    const mine = { table: 'owned', insert: { ownerId: 'alice' } }
    await expectRefused([mine, mine, { table: 'owned', insert: { ownerId: 'bob' } }, mine], 403, 'operations[2]')
    const upsert = (id: string, ownerId: string) => ({ table: 'owned', upsert: { id, ownerId } })
    await expectRefused([upsert('x', 'alice'), upsert('y', 'bob'), upsert('z', 'alice')], 403, 'operations[1]')
    await expectRefused([upsert('x', 'alice'), upsert('a', 'alice'), upsert('b', 'alice')], 403, 'operations[2]')
  })

  test('[DB-BATCH-5] a batch names the operation that a rule denies as well', async () => {
    const before = await server.dump(owned)
    for (const [body, name] of [
      [{ inserts: [{ ownerId: 'alice' }, { ownerId: 'bob' }] }, 'inserts[1]'],
      [
        {
          updates: [
            { id: 'a', data: {} },
            { id: 'b', data: {} },
          ],
        },
        'updates[1]',
      ],
      [{ deletes: ['a', 'b'] }, 'deletes[1]'],
    ] as const) {
      const { data } = expectRefusal(await alice.post(`${owned}/batch`, body), 403)
      expect(Object.keys(data)).toEqual([name])
    }
    expect(await server.dump(owned)).toEqual(before)
  })

  test('[DB-TX-3] an anonymous caller that a rule denies gets 401', async () => {
    await expectRefused([fine, { table: 'owned', delete: { id: 'a' } }], 401, 'operations[1]', anonymous)
    expectRefusal(
      await anonymous.post('/api/db/space/one/transaction', { operations: [{ table: 'a', insert: {} }] }),
      401,
    )
    expectRefusal(await send([fine], alice, '/api/db/nowhere/transaction'), 404)
    expectRefusal(await send([fine], alice, '/api/db/shared/one/transaction'), 404)
    expectRefusal(await send([{ table: 'a', insert: {} }], alice, '/api/db/space/transaction'), 404)
  })

  test('[DB-TX-4] ifMatch takes the ETag as it was received, the version quoted, as text and as a number', async () => {
    for (const form of [
      (tag: string) => tag,
      (tag: string) => tag.replace(/-.*"/, '"'),
      (tag: string) => tag.replace(/"(\d+)-.*/, '$1'),
      (tag: string) => Number(tag.replace(/"(\d+)-.*/, '$1')),
      () => '*',
    ]) {
      const ifMatch = form(await tagOf(`${items}/a`))
      const checks = [
        { table: 'items', check: { id: 'a', ifMatch } },
        { table: 'items', check: { id: 'a', exists: true } },
      ]
      expect((await send([...checks, { table: 'items', update: { id: 'a', data: {}, ifMatch } }])).status).toBe(200)
      const current = form(await tagOf(`${items}/a`))
      expect(
        (
          await send([
            { table: 'items', delete: { id: 'a', ifMatch: current } },
            { table: 'items', insert: { id: 'a' } },
          ])
        ).status,
      ).toBe(200)
      if (ifMatch !== '*') await expectRefused(checks, 409, 'operations[0]')
    }
  })

  test('[DB-TX-5] a hidden record counts as absent in checks, and an insert of its id reveals what it reveals alone', async () => {
    const before = await server.dump(...tables)
    const absent = (id: string) => ({ table: 'secretive', check: { id, exists: false } })
    expect((await send([absent('b'), absent('nope')])).body.results).toEqual([{ ok: true }, { ok: true }])
    for (const condition of [{ exists: true }, { ifMatch: '*' }, { ifMatch: await tagOf(`${secretive}/b`) }]) {
      const answers = []
      for (const id of ['b', 'nope', 'not an id'])
        answers.push(await send([{ table: 'secretive', check: { id, ...condition } }]))
      expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    }
    const insert = { id: 'b', ownerId: 'alice' }
    const alone = expectRefusal(await alice.post(secretive, insert), 409)
    const together = expectRefusal(await send([absent('b'), { table: 'secretive', insert }]), 409)
    expect(together).toEqual({ ...alone, data: { 'operations[1].id': alone.data.id } })
    expect(await server.dump(...tables)).toEqual(before)
    expect((await send([absent('new'), { table: 'secretive', insert: { ...insert, id: 'new' } }])).status).toBe(200)
  })

  test('[DB-TX-5] of a record that the caller may not read, the result has what the request sent, and no version', async () => {
    const { body } = await alice.post(`${shared}?versions=1`, {
      operations: [
        { table: 'secretive', insert: { id: 'x', title: 'X', ownerId: 'alice' } },
        { table: 'items', update: { id: 'a', data: { title: 'A' } } },
      ],
    })
    expect(body.versions).toEqual([expect.any(Number), expect.any(Number)])
    expect(Object.keys(body.results[1])).not.toContain('secret')
    const writer = server.withKey(writerKey)
    const operations = [
      { table: 'items', update: { id: 'a', data: { title: 'B' } } },
      { table: 'items', delete: { id: 'b' } },
    ]
    const blind = await writer.post(`${shared}?versions=1`, { operations })
    expect(Object.keys(blind.body.results[0]).sort()).toEqual(['createdAt', 'id', 'title', 'updatedAt'])
    expect(blind.body.versions).toEqual([null, null])
  })

  test('[DB-TX-6, KEY-4, KEY-6] a key needs the scope of every table: to write, and to read what it checks', async () => {
    const before = await server.dump(...tables)
    const [writer, mixed] = [server.withKey(writerKey), server.withKey(mixedKey)]
    const check = { table: 'items', check: { id: 'a', exists: true } }
    for (const [client, operations] of [
      [writer, [fine, { table: 'loose', insert: {} }]],
      [writer, [fine, { table: 'nowhere', insert: {} }]],
      [writer, [fine, check]],
      [mixed, [fine]],
      [mixed, [{ table: 'loose', check: { id: 'a', exists: true } }]],
    ] as const)
      expectRefusal(await send(operations, client), 401, 'Invalid service key')
    expect(await server.dump(...tables)).toEqual(before)
    expect((await send([fine], writer)).status).toBe(200)
    expect((await send([check, { table: 'loose', delete: { id: 'a' } }], mixed)).status).toBe(200)
  })

  test('[DB-TX-1] a table may be called transaction', async () => {
    const path = '/api/db/shared/tables/transaction'
    expect((await alice.post(path, { id: 'a', operations: [] })).status).toBe(201)
    expect((await send([{ table: 'transaction', update: { id: 'a', data: { n: 1 } } }])).body.results).toMatchObject([
      { id: 'a', n: 1 },
    ])
  })

  test('[DB-TX-1] a record that an earlier operation has changed is seen changed, also by rules over other tables', async () => {
    const { body } = await send([
      { table: 'items', insert: { id: 'i' } },
      { table: 'comments', insert: { id: 'c', itemId: 'i' } },
      { table: 'items', update: { id: 'a', data: { rank: 1 } } },
      { table: 'items', update: { id: 'a', data: { rank: { $op: 'increment', value: 1 } } } },
      { table: 'items', delete: { id: 'a' } },
      { table: 'items', upsert: { id: 'a', rank: 9 } },
    ])
    expect(body.results.map(({ rank }: { rank?: number }) => rank)).toEqual([null, undefined, 1, 2, undefined, 9])
    await expectRefused([{ table: 'items', delete: { id: 'i' } }], 409, 'operations[0]')
    expect(
      (
        await send([
          { table: 'comments', delete: { id: 'c' } },
          { table: 'items', delete: { id: 'i' } },
        ])
      ).status,
    ).toBe(200)
  })
})
