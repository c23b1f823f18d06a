/** `Idempotency-Key`: a repeated request has one effect and one response. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const other = '/api/db/shared/tables/others'
const space = (id: string): string => `/api/db/space/${id}/tables/items`

const schema = { title: { type: 'string' }, rank: { type: 'number' } } as const
const config = {
  databases: {
    shared: { tables: { items: { schema, access: open }, others: { schema, access: open } } },
    space: { instance: true, access: () => true, tables: { items: { schema, access: open } } },
  },
} as const

const key = (text: string) => ({ 'idempotency-key': text })
const clock = manualClock()

describeServer('idempotency', { config, clock }, (server) => {
  const total = async (table = base): Promise<number> => (await server.service.get(`${table}/count`)).body.total

  test('[DB-IDEM-1] a repeated insert returns the first response and inserts once', async () => {
    const first = await server.anonymous.post(base, { title: 'once' }, key('k1'))
    expect(first.status).toBe(201)
    const before = await total()
    for (let i = 0; i < 3; i++) {
      const again = await server.anonymous.post(base, { title: 'once' }, key('k1'))
      expect(again.status).toEqual(first.status)
      expect(again.text).toEqual(first.text)
    }
    expect(await total()).toBe(before)
  })

  test('[DB-IDEM-1, DB-IDEM-9] a replay returns the first response of a changed record, and the sent fields of a deleted one', async () => {
    const first = await server.anonymous.post(base, { title: 'gone' }, key('k2'))
    await server.anonymous.patch(`${base}/${first.body.id}`, { title: 'changed' })
    expect((await server.anonymous.post(base, { title: 'gone' }, key('k2'))).text).toBe(first.text)
    await server.anonymous.delete(`${base}/${first.body.id}`)
    const { id, title, createdAt, updatedAt } = first.body
    const again = await server.anonymous.post(base, { title: 'gone' }, key('k2'))
    expect(again.status).toBe(201)
    expect(again.body).toEqual({ id, title, createdAt, updatedAt })
    expectRefusal(await server.anonymous.get(`${base}/${first.body.id}`), 404)
  })

  test('[DB-IDEM-1] upsert, batch and batch by filter can be replayed', async () => {
    await server.anonymous.post(base, { id: 'counter', rank: 0 })
    const increment = { updates: [{ id: 'counter', data: { rank: { $op: 'increment', value: 1 } } }] }
    const byFilter = {
      action: 'update',
      filter: [['id', '==', 'counter']],
      data: { rank: { $op: 'increment', value: 10 } },
    }
    for (const [path, body] of [
      [`${base}/batch`, increment],
      [`${base}/batch-by-filter`, byFilter],
      [`${base}?upsert=true`, { id: 'upserted', title: 'x' }],
    ] as const) {
      const first = await server.anonymous.post(path, body, key('k3'))
      const again = await server.anonymous.post(path, body, key('k3'))
      expect(again.status).toEqual(first.status)
      expect(again.text).toEqual(first.text)
      expect(first.status).toBeLessThan(300)
    }
    expect((await server.anonymous.get(`${base}/counter`)).body.rank).toBe(11)
  })

  test('[DB-IDEM-2] the same key with another body is refused', async () => {
    expect((await server.anonymous.post(base, { title: 'one' }, key('k4'))).status).toBe(201)
    const before = await server.dump(base)
    for (const body of [{ title: 'two' }, {}, { title: 'one', rank: 1 }])
      expect(expectRefusal(await server.anonymous.post(base, body, key('k4')), 409).slug).toBe('conflict')
    expect(await server.dump(base)).toEqual(before)
  })

  test('[DB-IDEM-3] keys are scoped to a caller and a path', async () => {
    const body = { title: 'shared key' }
    const clients = [server.anonymous, server.as('alice'), server.as('bob'), server.service]
    const ids = new Set<string>()
    for (const client of clients)
      for (const path of [base, other, space('x'), space('X')])
        ids.add((await client.post(path, body, key('k5'))).body.id)
    expect(ids.size).toBe(16)
    for (const client of clients) ids.add((await client.post(base, body, key('k5'))).body.id)
    expect(ids.size).toBe(16)
  })

  test('[DB-IDEM-3] keys are compared exactly, including case', async () => {
    const ids = new Set<string>()
    for (const text of ['abc', 'ab', 'ABC', 'abc ', 'abc0'].map((text) => text.trim()))
      ids.add((await server.anonymous.post(base, {}, key(text))).body.id)
    expect(ids.size).toBe(4)
  })

  test('[DB-IDEM-4] fifty concurrent requests insert one row and return equal responses', async () => {
    const before = await total()
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => server.anonymous.post(base, { title: 'race' }, key('k6'))),
    )
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(201))
    expect(await total()).toBe(before + 1)
  })

  test('[DB-IDEM-4] one of two concurrent requests with different bodies is executed, the other refused', async () => {
    const before = await total()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => server.anonymous.post(base, { title: `t${i % 2}` }, key('k7'))),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(10).fill(201), ...Array(10).fill(409)])
    expect(await total()).toBe(before + 1)
  })

  test('[DB-IDEM-4] the key of a refused request can be used for a valid one', async () => {
    const taken = await server.anonymous.post(base, { id: 'taken' })
    expect(taken.status).toBe(201)
    const refused = await server.anonymous.post(base, { id: 'taken' }, key('k8'))
    expectRefusal(refused, 409)
    // Whether a refusal is stored or evaluated again, repeating it changes nothing.
    expectRefusal(await server.anonymous.post(base, { id: 'taken' }, key('k8')), 409)
  })

  test('[DB-IDEM-5] a key expires after 24 hours', async () => {
    const first = await server.anonymous.post(base, { title: 'kept' }, key('k9'))
    clock.advance(24 * 60 * 60 * 1000 - 1000)
    expect((await server.anonymous.post(base, { title: 'kept' }, key('k9'))).text).toBe(first.text)
    clock.advance(2000)
    const later = await server.anonymous.post(base, { title: 'kept' }, key('k9'))
    expect(later.status).toBe(201)
    expect(later.body.id).not.toBe(first.body.id)
    expect((await server.anonymous.post(base, { title: 'another body' }, key('k1'))).status).toBe(201)
  })

  test('[DB-IDEM-6] the stored response survives a restart', async () => {
    const first = await server.anonymous.post(base, { title: 'restart' }, key('k10'))
    const inInstance = await server.anonymous.post(space('r'), { title: 'restart' }, key('k10'))
    await server.restart()
    expect((await server.anonymous.post(base, { title: 'restart' }, key('k10'))).text).toBe(first.text)
    expect((await server.anonymous.post(space('r'), { title: 'restart' }, key('k10'))).text).toBe(inInstance.text)
    expect(await total(space('r'))).toBe(1)
  })

  test('[DB-IDEM-7] a malformed key is refused', async () => {
    const before = await total()
    for (const text of ['', 'x'.repeat(256), 'ä', 'a\tb'])
      expectRefusal(await server.anonymous.post(base, { title: 'x' }, key(text)), 400, 'Idempotency-Key')
    expect(await total()).toBe(before)
    expect((await server.anonymous.post(base, { title: 'x' }, key('x'.repeat(255)))).status).toBe(201)
    expect((await server.anonymous.post(base, { title: 'x' }, key('!#$%&\'*+-.^_`|~ "(),/:;<=>?@[\\]{}'))).status).toBe(
      201,
    )
  })

  test('[DB-IDEM-1, DB-IDEM-3] PATCH and DELETE accept a key', async () => {
    const { body } = await server.anonymous.post(base, { rank: 1 })
    const path = `${base}/${body.id}`
    const increment = { rank: { $op: 'increment', value: 1 } }
    const first = await server.anonymous.patch(path, increment, key('k11'))
    for (let i = 0; i < 2; i++) {
      const again = await server.anonymous.patch(path, increment, key('k11'))
      expect(again.status).toBe(200)
      expect(again.text).toEqual(first.text)
      expect(again.headers.get('idempotency-replayed')).toBe('true')
    }
    expect((await server.anonymous.get(path)).body.rank).toBe(2)
    expectRefusal(await server.anonymous.patch(path, { rank: 7 }, key('k11')), 409)
    expectRefusal(await server.anonymous.patch(path, increment, { ...key('k11'), 'if-match': '*' }), 409)
    for (let i = 0; i < 2; i++) expect((await server.anonymous.delete(path, key('k11'))).body).toEqual({ ok: true })
    expectRefusal(await server.anonymous.delete(path, key('k12')), 404)
  })

  test('[DB-IDEM-8] only the status and ids of a large response are stored', async () => {
    const title = 'x'.repeat(70_000)
    const one = await server.anonymous.post(base, { title }, key('k13'))
    expect(one.status).toBe(201)
    expect(one.body.title).toEqual(title)
    const again = await server.anonymous.post(base, { title }, key('k13'))
    expect(again.status).toBe(201)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(again.body).toEqual({ abridged: true, id: one.body.id })

    const batch = {
      inserts: [{ id: 'large-1', title }],
      updates: [{ id: one.body.id, data: { rank: 3 } }],
      deletes: [] as string[],
    }
    const many = await server.anonymous.post(`${base}/batch`, batch, key('k14'))
    expect(many.status).toBe(200)
    expect(many.body.inserted[0].title).toEqual(title)
    expect((await server.anonymous.post(`${base}/batch`, batch, key('k14'))).body).toEqual({
      abridged: true,
      inserted: [{ id: 'large-1' }],
      updated: [{ id: one.body.id }],
      deleted: [],
    })
  })
})
