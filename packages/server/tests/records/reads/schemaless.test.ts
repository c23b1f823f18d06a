/** Tables without a schema: any JSON under any printable name, with the same operations as other tables. */
import { expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/loose'
const owned = '/api/db/shared/tables/owned'

type Auth = { id: string } | null
const own = (auth: Auth) => auth !== null && { ownerId: auth.id }

const config = {
  databases: {
    shared: {
      tables: { loose: { access: open }, owned: { access: { read: own, insert: own, update: own, delete: own } } },
    },
  },
} as const

describeServer('tables without a schema', { config }, (server) => {
  const idsOf = (answer: { body: { items: { id: string }[] } }): string => answer.body.items.map(({ id }) => id).join()

  test('[DB-TABLE-13] a record is stored exactly as sent', async () => {
    const record = {
      n: 1,
      text: 'x',
      list: [1, { a: null }],
      none: null,
      deep: { a: { b: { c: [] } } },
      yes: true,
      id: 'one',
    }
    const { status, body } = await server.anonymous.post(base, record)
    expect(status).toBe(201)
    expect(body).toEqual({ ...record, createdAt: expect.any(String), updatedAt: expect.any(String) })
    expect((await server.anonymous.get(`${base}/one`)).body).toEqual(body)
  })

  test('[DB-TABLE-13, DB-UPDATE-1] an update keeps omitted fields', async () => {
    await server.anonymous.post(base, { id: 'two', a: 1, b: 2 })
    const { body } = await server.anonymous.patch(`${base}/two`, { b: [3], c: 'new' })
    expect(body).toMatchObject({ a: 1, b: [3], c: 'new' })
    const upserted = await server.anonymous.post(`${base}?upsert=true`, { id: 'two', d: null })
    expect(upserted.body).toMatchObject({ a: 1, b: [3], c: 'new', action: 'updated' })
  })

  test('[DB-TABLE-4] the built-in fields keep their types', async () => {
    const before = await server.dump(base)
    for (const body of [{ id: 5 }, { id: 'a b' }, { createdAt: 'x' }, { updatedAt: 1 }])
      expectRefusal(await server.anonymous.post(base, body), 400)
    expect(await server.dump(base)).toEqual(before)
  })

  test('[DB-TABLE-12, DB-TABLE-13] invalid names and values are refused', async () => {
    const before = await server.dump(base)
    for (const body of [
      { 'a\0': 1 },
      { a: 'x\0' },
      { a: { 'x\0': 1 } },
      { 'a\nb': 1 },
      { 'a\u202Eb': 1 },
      { ['y'.repeat(129)]: 1 },
      { prototype: 1 },
    ])
      expectRefusal(await server.anonymous.post(base, body), 400)
    expect(await server.dump(base)).toEqual(before)
  })

  test('[DB-TABLE-13] names with JSON path syntax are ordinary names', async () => {
    const names = [
      '$',
      '$.a',
      'a.b',
      'a[0]',
      '"',
      '""',
      "'",
      '\\',
      'a"b',
      '*',
      '**',
      '@',
      '#',
      '{a}',
      '?',
      '%',
      ' ',
      '-',
      'a"].b["',
      "$.x' OR 1=1 --",
      '\u{1F600}',
      'ä',
      '한국어',
      '1',
      '_extra',
      'rowid',
      'seq',
    ]
    for (const [n, name] of names.entries()) {
      const made = await server.anonymous.post(base, { id: `name-${n}`, [name]: `value ${n}` })
      expect([name, made.status]).toEqual([name, 201])
      expect([name, made.body[name]]).toEqual([name, `value ${n}`])
      const found = await server.anonymous.get(base + query({ filter: [[name, '==', `value ${n}`]] }))
      expect([name, found.status, found.status === 200 ? idsOf(found) : found.text]).toEqual([name, 200, `name-${n}`])
    }
  })

  test('[DB-TABLE-14] sort, fields, count and both kinds of paging work', async () => {
    await server.anonymous.post(`${base}/batch-by-filter`, { action: 'delete' })
    const inserts = [
      { id: 'a', v: 2, w: 'x' },
      { id: 'b', v: 10 },
      { id: 'c' },
      { id: 'd', v: -1, w: 'y' },
      { id: 'e', v: 2, w: null },
    ]
    await server.anonymous.post(`${base}/batch`, { inserts })
    expect(idsOf(await server.anonymous.get(base + query({ sort: 'v:asc' })))).toBe('c,d,a,e,b')
    expect(idsOf(await server.anonymous.get(base + query({ sort: 'v:desc,w:asc' })))).toBe('b,e,a,d,c')
    expect((await server.anonymous.get(base + query({ fields: 'w,never', limit: 1 }))).body.items).toEqual([{ w: 'x' }])
    expect((await server.anonymous.get(`${base}/count${query({ filter: [['v', '>', 0]] })}`)).body.total).toBe(3)
    let cursor = ''
    const seen: string[] = []
    for (let more = true; more; ) {
      const { body } = await server.anonymous.get(base + query({ sort: 'v:asc,w:desc', after: cursor, limit: 2 }))
      seen.push(...body.items.map(({ id }: { id: string }) => id))
      more = body.hasMore
      cursor = body.cursor
    }
    expect(seen.join()).toBe(idsOf(await server.anonymous.get(base + query({ sort: 'v:asc,w:desc' }))))
  })

  test('[DB-FILTER-3, DB-FILTER-6] values of another type never match', async () => {
    await server.anonymous.post(`${base}/batch-by-filter`, { action: 'delete' })
    const inserts = [1, '1', true, null, [1], { a: 1 }, 0, false, ''].map((v, i) => ({ id: `t${i}`, v }))
    await server.anonymous.post(`${base}/batch`, { inserts })
    const find = async (...tuple: unknown[]) => idsOf(await server.anonymous.get(base + query({ filter: [tuple] })))
    expect(await find('v', '==', 1)).toBe('t0')
    expect(await find('v', '==', '1')).toBe('t1')
    expect(await find('v', '==', true)).toBe('t2')
    expect(await find('v', '==', null)).toBe('t3')
    expect(await find('v', '==', 0)).toBe('t6')
    expect(await find('v', '==', false)).toBe('t7')
    expect(await find('v', '==', '')).toBe('t8')
    expect(await find('v', '>=', 0)).toBe('t0,t6')
    expect(await find('v', '>=', '')).toBe('t1,t8')
    expect(await find('v', 'in', [1, '1'])).toBe('t0,t1')
    expect(await find('v', 'contains', '1')).toBe('t1')
  })

  test('[DB-FILTER-5, DB-FILTER-11, DB-TABLE-14] the maximum number of conditions and values is accepted', async () => {
    const inserts = [5, '5', true, 1000, null].map((of, at) => ({ id: `many-${at}`, of }))
    expect((await server.anonymous.post(`${base}/batch`, { inserts })).status).toBe(200)
    const thousand = Array.from({ length: 1000 }, (_, at) => (at < 998 ? at : at === 998 ? '5' : true))
    const mark = async (op: string, seen: string) => {
      const filter = Array.from({ length: 100 }, () => ['of', op, thousand])
      const body = { action: 'update', filter, data: { seen } }
      const { status, body: answer } = await server.anonymous.post(`${base}/batch-by-filter`, body)
      expect(status).toBe(200)
      expect(answer.processed).toEqual(answer.succeeded)
      return idsOf(await server.anonymous.get(`${base}${query({ filter: JSON.stringify([['seen', '==', seen]]) })}`))
    }
    expect(await mark('in', 'inside')).toBe('many-0,many-1,many-2')
    expect(await mark('not in', 'outside')).toBe('many-3')
  })

  test('[RULE-5, RULE-7] rules can use undeclared fields', async () => {
    await server.service.post(`${owned}/batch`, {
      inserts: [
        { id: 'a', ownerId: 'alice' },
        { id: 'b', ownerId: 'bob' },
        { id: 'c' },
        { id: 'd', ownerId: ['alice'] },
      ],
    })
    const alice = server.as('alice')
    expect(idsOf(await alice.get(owned))).toBe('a')
    const before = await server.dump(owned)
    expectRefusal(await alice.get(`${owned}/b`), 404)
    expectRefusal(await alice.post(owned, { ownerId: 'bob' }), 403)
    expectRefusal(await alice.patch(`${owned}/a`, { ownerId: 'bob' }), 403)
    expectRefusal(await alice.patch(`${owned}/a`, { ownerId: { $op: 'deleteField' } }), 403)
    expectRefusal(await alice.delete(`${owned}/b`), 404)
    expect(await server.dump(owned)).toEqual(before)
    expect((await alice.post(owned, { ownerId: 'alice', any: 'thing' })).status).toBe(201)
  })
})
