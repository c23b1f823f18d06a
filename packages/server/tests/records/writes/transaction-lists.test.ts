/** Checks of lists in POST /api/db/{namespace}/transaction: a list still has the records that the caller has read. */
import { beforeEach, expect, test } from 'bun:test'
import { exists } from '../../../src/config/define.ts'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

const path = '/api/db/shared/transaction'
const items = '/api/db/shared/tables/items'
const owned = '/api/db/shared/tables/owned'
const loose = '/api/db/shared/tables/loose'
const inSpace = '/api/db/space/one/tables/notes'
const readerKey = 'a-key-that-reads-items-and-writes-loose'
const writerKey = 'a-key-that-only-writes-items'

type Auth = { id: string } | null
const own = (auth: Auth) => auth !== null && { ownerId: auth.id }
const schema = {
  title: { type: 'string' },
  rank: { type: 'number' },
  text: { type: 'text' },
  secret: { type: 'string' },
  ownerId: { type: 'string' },
} as const

const config = {
  limits: { responseBytes: 65_536 },
  databases: {
    shared: {
      tables: {
        items: { schema, hidden: ['secret'], access: open },
        owned: { schema, access: { read: own, insert: true, update: true, delete: true } },
        locked: { schema, access: {} },
        members: { schema: { userId: { type: 'string' } }, access: open },
        guarded: {
          schema,
          access: { read: (auth: Auth) => auth !== null && exists('members', { userId: auth.id }), insert: true },
        },
        loose: { access: open },
      },
    },
    space: { instance: true, access: () => true, tables: { notes: { schema, access: open } } },
  },
  serviceKeys: [
    { name: 'reader', key: readerKey, scopes: ['db:table:items:read', 'db:table:loose:write'] },
    { name: 'writer', key: writerKey, scopes: ['db:table:items:write'] },
  ],
} as const

describeServer('checks of lists', { config }, (server) => {
  const { service } = server
  const alice = server.as('alice')
  const bob = server.as('bob')
  const insert = { table: 'loose', insert: { id: 'done' } }

  beforeEach(async () => {
    for (const table of [items, owned, loose, inSpace])
      while ((await service.post(`${table}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
    for (const [n, id] of ['a', 'b', 'c'].entries()) await service.post(items, { id, rank: n, title: 'x' })
  })

  /** The check of a list that is read now. */
  async function checkOf(parameters: Record<string, string>, client = alice, table = items): Promise<unknown> {
    const { status, body } = await client.get(`${table}${query({ ...parameters, check: '1' })}`)
    expect(status).toBe(200)
    return body.check
  }
  const send = (check: unknown, client = alice, table = 'items') =>
    client.post(path, { operations: [{ table, check }, insert] })
  const expectConflict = (answer: Awaited<ReturnType<typeof send>>): void => {
    expect(answer).toMatchObject({ status: 409, body: { slug: 'conflict', data: { 'operations[0]': {} } } })
  }
  const isDone = async (): Promise<boolean> => (await service.get(`${loose}/done`)).status === 200

  const changes: readonly (readonly [title: string, change: () => Promise<unknown>])[] = [
    ['a record is added', () => service.post(items, { id: 'd', rank: 5 })],
    ['a record is changed', () => service.patch(`${items}/a`, { title: 'y' })],
    [
      'a record is changed and changed back',
      async () => {
        await service.patch(`${items}/a`, { title: 'y' })
        await service.patch(`${items}/a`, { title: 'x' })
      },
    ],
    ['a record begins to match', () => service.patch(`${items}/c`, { rank: 1 })],
    ['a record no longer matches', () => service.patch(`${items}/a`, { rank: 5 })],
    ['a record is removed', () => service.delete(`${items}/a`)],
    [
      'a record is removed and inserted again',
      async () => {
        await service.delete(`${items}/a`)
        await service.post(items, { id: 'a', rank: 0, title: 'x' })
      },
    ],
  ]
  const filter = JSON.stringify([['rank', '<=', 1]])

  test('[DB-TX-12] a check of a list holds while nothing has changed, and shows no more than its list', async () => {
    const { body } = await alice.get(`${items}${query({ filter, sort: 'rank:desc', limit: '2', check: '1' })}`)
    expect(structuredClone(body)).toMatchObject({
      items: [{ id: 'b' }, { id: 'a' }],
      versions: [expect.any(Number), expect.any(Number)],
      check: { list: { filter: [['rank', '<=', 1]], sort: 'rank:desc', limit: 2 }, digest: expect.any(String) },
      total: null,
      hasMore: false,
    })
    await service.patch(`${items}/c`, { title: 'no match' })
    expect(await send(body.check)).toMatchObject({ status: 200, body: { results: [{ ok: true }, { id: 'done' }] } })
  })

  for (const [title, change] of changes)
    test(`[DB-TX-12] it fails when ${title}`, async () => {
      const narrow = await checkOf({ filter })
      const all = await checkOf({})
      await change()
      if (title !== 'a record is added') expectConflict(await send(narrow))
      expectConflict(await send(all))
      expect(await isDone()).toBe(false)
      expect((await send(await checkOf({}))).status).toBe(200)
    })

  test('[DB-TX-12] what order and limit leave out is not checked', async () => {
    const first = await checkOf({ sort: 'rank:asc', limit: '1', orFilter: filter })
    await service.patch(`${items}/b`, { rank: 7 })
    await service.delete(`${items}/c`)
    expect((await send(first)).status).toBe(200)
    await service.post(items, { id: 'front', rank: -1 })
    expectConflict(await send(first))
  })

  test('[DB-TX-12] a page that ended early is checked as far as it goes', async () => {
    for (const id of times(4, (n) => `long-${n}`)) await service.post(items, { id, rank: 9, text: 'x'.repeat(20_000) })
    const parameters = { filter: JSON.stringify([['rank', '==', 9]]), sort: 'id:asc', check: '1' }
    const { body } = await alice.get(`${items}${query(parameters)}`)
    expect(body).toMatchObject({ truncated: true, check: { list: { limit: body.items.length } } })
    expect(body.items.length).toBeLessThan(4)
    await service.patch(`${items}/long-3`, { title: 'y' })
    expect((await send(body.check)).status).toBe(200)
    await service.patch(`${items}/long-0`, { title: 'y' })
    expectConflict(await send(body.check))
  })

  test('[DB-TX-12] a check runs with the read rule of its caller', async () => {
    await service.post(owned, { id: 'hers', ownerId: 'alice' })
    const hers = await checkOf({}, alice, owned)
    const his = await checkOf({}, bob, owned)
    await service.post(owned, { id: 'his', ownerId: 'bob' })
    expect((await send(hers, alice, 'owned')).status).toBe(200)
    expectConflict(await send(hers, bob, 'owned'))
    expectConflict(await send(his, bob, 'owned'))
    const anonymous = await send(his, server.anonymous, 'owned')
    expect(anonymous.status).toBe(401)
    expect((await send(his, alice, 'locked')).status).toBe(403)
  })

  test('[DB-TX-12] a rule that searches another table is part of the list', async () => {
    await service.post('/api/db/shared/tables/guarded', { id: 'g' })
    const { body: member } = await service.post('/api/db/shared/tables/members', { userId: 'alice' })
    const check = await checkOf({}, alice, '/api/db/shared/tables/guarded')
    expect(await send(check, alice, 'guarded')).toMatchObject({ status: 200 })
    await service.delete(`/api/db/shared/tables/members/${member.id}`)
    await service.delete(`${loose}/done`)
    expectConflict(await send(check, alice, 'guarded'))
  })

  test('[DB-TX-12] lists of instances, and their own', async () => {
    await alice.post(inSpace, { id: 'n' })
    const check = await checkOf({}, alice, inSpace)
    const operations = [
      { table: 'notes', check },
      { table: 'notes', insert: { id: 'm' } },
    ]
    expect((await alice.post('/api/db/space/two/transaction', { operations })).status).toBe(409)
    expect((await alice.post('/api/db/space/one/transaction', { operations })).status).toBe(200)
    expect((await alice.post('/api/db/space/one/transaction', { operations: operations.slice(0, 1) })).status).toBe(409)
  })

  test('[DB-TX-12] a check after a write of its transaction sees it', async () => {
    const check = await checkOf({})
    const operations = [
      { table: 'items', insert: { id: 'd' } },
      { table: 'items', check },
    ]
    expect((await alice.post(path, { operations })).status).toBe(409)
  })

  test('[DB-TX-6] the scopes of a service key', async () => {
    const check = await checkOf({})
    expect((await send(check, server.withKey(readerKey))).status).toBe(200)
    expect((await send(check, server.withKey(writerKey))).status).toBe(401)
  })

  test.each([
    [{ list: {} }, 'operations[0].check'],
    [{ digest: 'x' }, 'operations[0].check'],
    [{ list: {}, digest: 'x', id: 'a' }, 'operations[0].check'],
    [{ list: { page: 2 }, digest: 'x' }, 'operations[0].check.list.page'],
    [{ list: { limit: 0 }, digest: 'x' }, 'operations[0].check.list.limit'],
    [{ list: { limit: 1001 }, digest: 'x' }, 'operations[0].check.list.limit'],
    [{ list: { sort: 'nope:asc' }, digest: 'x' }, 'operations[0].check.list.sort'],
    [{ list: { filter: [['nope', '==', 1]] }, digest: 'x' }, 'operations[0].check.list.filter[0]'],
    [{ list: { filter: [['secret', '==', 'x']] }, digest: 'x' }, 'operations[0].check.list.filter[0]'],
    [{ list: { filter: 'x' }, digest: 'x' }, 'operations[0].check.list.filter'],
  ])('[DB-TX-13] %j is refused with 400', async (check, name) => {
    const answer = await send(check)
    expectRefusal(answer, 400)
    expect(Object.keys(answer.body.data)).toEqual([name])
    expect(await isDone()).toBe(false)
  })

  test('[DB-TX-14] conflicts are counted, duplicates are not', async () => {
    const conflicts = async (): Promise<number> =>
      Number(/^transactions_conflicts_total (\d+)$/m.exec((await service.get('/metrics')).text)?.[1])
    const check = await checkOf({})
    const before = await conflicts()
    const duplicate = { operations: [{ table: 'items', insert: { id: 'a' } }] }
    expect((await alice.post(path, duplicate)).status).toBe(409)
    expect(await conflicts()).toBe(before)
    await service.delete(`${items}/a`)
    expectConflict(await send(check))
    expect(await conflicts()).toBe(before + 1)
    // The refusal is stored under the key, and a repeated request gets it.
    const body = { operations: [{ table: 'items', check }, insert] }
    for (const _ of [1, 2]) expectConflict(await alice.post(path, body, { 'Idempotency-Key': 'refused' }))
    expect(await conflicts()).toBe(before + 2)
  })

  test('[DB-TX-13] at most 50 lists, and only from their start', async () => {
    const check = await checkOf({})
    const operations = times(51, () => ({ table: 'items', check }))
    expectRefusal(await alice.post(path, { operations }), 400)
    expect((await alice.post(path, { operations: operations.slice(1) })).status).toBe(200)
    for (const parameters of [{ page: '2' }, { offset: '1' }, { after: 'a' }, { before: '' }])
      expectRefusal(await alice.get(`${items}${query({ ...(parameters as object), check: '1' })}`), 400)
    for (const other of ['/count', '/search', '/a'])
      expectRefusal(await alice.get(`${items}${other}${query({ check: '1' })}`), 400)
  })
})
