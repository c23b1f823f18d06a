/** POST {base}/batch with operations that affect each other, and limits on the size of a batch. */
import { beforeEach, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'

const schema = {
  title: { type: 'string', required: true },
  rank: { type: 'number' },
  slug: { type: 'string', unique: true },
  body: { type: 'text' },
} as const

const leaving = '/api/db/shared/tables/leaving'
const deletable = { schema, access: { read: true, delete: true } }

const config = {
  databases: { shared: { tables: { items: { schema, access: open }, leaving: deletable, wide: { access: open } } } },
}

describeServer('operations within a batch', { config }, (server) => {
  beforeEach(async () => {
    while ((await server.service.post(`${base}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
    const inserts = ['a', 'b', 'c'].map((id, rank) => ({ id, title: id.toUpperCase(), rank, slug: `s${id}` }))
    expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
  })

  const batch = (body: unknown, search = '') => server.anonymous.post(`${base}/batch${search}`, body)

  test('[DB-BATCH-6] an upsert updates a record inserted earlier in the batch', async () => {
    const { status, body } = await batch(
      {
        inserts: [
          { id: 'new', title: 'first', rank: 1 },
          { id: 'a', title: 'A2' },
          { id: 'other', title: 'O', slug: 'so' },
          { id: 'new', title: 'second' },
          { id: 'new', title: 'third', slug: 'sn' },
        ],
      },
      '?upsert=true',
    )
    expect(status).toBe(200)
    expect(body.inserted.map(({ title }: { title: string }) => title)).toEqual(['first', 'A2', 'O', 'second', 'third'])
    expect((await server.anonymous.get(`${base}/new`)).body).toMatchObject({ title: 'third', rank: 1, slug: 'sn' })
    expect((await server.anonymous.get(`${base}/count`)).body.total).toBe(5)
  })

  test('[DB-BATCH-5] a conflict among hundreds of inserts is reported with its index', async () => {
    const inserts = Array.from({ length: 300 }, (_, i) => ({ title: `t${i}`, slug: i === 217 ? 'sb' : `t${i}` }))
    for (const search of ['', '?upsert=true&conflictTarget=id']) {
      const rows = search ? inserts.map((row, i) => ({ ...row, id: `u${i}` })) : inserts
      expectRefusal(await batch({ inserts: rows }, search), 409, 'inserts[217].slug')
      expect((await server.anonymous.get(`${base}/count`)).body.total).toBe(3)
    }
  })

  test('[DB-BATCH-1, DB-BATCH-3] one batch can insert, update and delete the same record', async () => {
    const { status, body } = await batch({
      inserts: [
        { id: 'x', title: 'X' },
        { id: 'y', title: 'Y' },
      ],
      updates: [
        { id: 'x', data: { rank: 1 } },
        { id: 'a', data: { rank: { $op: 'increment', value: 5 } } },
        { id: 'a', data: { rank: { $op: 'increment', value: 5 } } },
      ],
      deletes: ['y', 'a'],
    })
    expect(status).toBe(200)
    expect(body.updated.map(({ rank }: { rank: number }) => rank)).toEqual([1, 5, 10])
    const { items } = (await server.anonymous.get(base)).body
    expect(items.map(({ id }: { id: string }) => id)).toEqual(['b', 'c', 'x'])
    expectRefusal(await batch({ deletes: ['b', 'b'] }), 404)
    expect((await server.anonymous.get(`${base}/b`)).status).toBe(200)
  })

  test('[DB-BATCH-6, DB-BATCH-8] a batch without inserts does not evaluate the insert rule', async () => {
    expect((await server.service.post(leaving, { id: 'a', title: 'A' })).status).toBe(201)
    const upsert = (body: object) => server.as('alice').post(`${leaving}/batch?upsert=true`, body)
    expectRefusal(await upsert({ inserts: [{ id: 'a', title: 'B' }], deletes: ['a'] }), 403)
    expect((await server.service.get(`${leaving}/a`)).body.title).toBe('A')
    expect((await upsert({ inserts: [], deletes: ['a'] })).body).toEqual({ inserted: [], updated: [], deleted: ['a'] })
    expect((await server.service.get(`${leaving}/a`)).status).toBe(404)
  })

  test('[DB-BATCH-10] updates whose response would exceed the response limit are refused', async () => {
    const body = 'x'.repeat(900_000)
    expect((await server.anonymous.post(base, { id: 'large', title: 'L', body, rank: 0 })).status).toBe(201)
    const updates = (count: number) => ({
      updates: Array.from({ length: count }, () => ({ id: 'large', data: { rank: { $op: 'increment', value: 1 } } })),
    })
    expect(expectRefusal(await batch(updates(60)), 413).message).toContain('8388608 bytes')
    expect((await server.anonymous.get(`${base}/large?fields=rank`)).body.rank).toBe(0)
    const { status, body: answer } = await batch(updates(9))
    expect(status).toBe(200)
    expect(answer.updated.at(-1).rank).toBe(9)
  })

  test('[DB-BATCH-11] records that exceed the limit together can be changed in several requests', async () => {
    const body = 'x'.repeat(900_000)
    for (let at = 0; at < 20; at++)
      expect((await server.anonymous.post(base, { id: `big-${at}`, title: 'B', body, rank: 0 })).status).toBe(201)
    const ids = Array.from({ length: 20 }, (_, at) => `big-${at}`)
    const filter = [['id', 'in', ids]]
    const byFilter = (limit?: number) =>
      server.anonymous.post(`${base}/batch-by-filter`, { action: 'update', filter, data: { rank: 77 }, limit })
    expectRefusal(await byFilter(), 413)
    expectRefusal(await batch({ deletes: ids }), 413)
    const counted = await server.anonymous.get(`${base}/count${query({ filter: [['rank', '==', 77]] })}`)
    expect(counted.body.total).toBe(0)
    expect((await byFilter(5)).body).toEqual({ processed: 5, succeeded: 5 })
    expect((await batch({ deletes: ids.slice(0, 10) })).status).toBe(200)
    expect((await batch({ deletes: ids.slice(10) })).status).toBe(200)
  })

  test('[DB-UPDATE-10] an update may not make a record larger than 4 MiB', async () => {
    const wide = '/api/db/shared/tables/wide'
    const text = 'x'.repeat(1_000_000)
    expect((await server.anonymous.post(wide, { id: 'w', a: text })).status).toBe(201)
    for (const name of ['b', 'c', 'd'])
      expect((await server.anonymous.patch(`${wide}/w`, { [name]: text })).status).toBe(200)
    expectRefusal(await server.anonymous.patch(`${wide}/w`, { e: text }), 413)
    expect((await server.anonymous.patch(`${wide}/w`, { e: null, d: { $op: 'deleteField' } })).status).toBe(200)
  })
})
