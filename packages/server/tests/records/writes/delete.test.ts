/** DELETE {base}/{id}: the record is removed from every kind of read. */
import { beforeAll, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { runScenarios } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

const base = '/api/db/shared/tables/items'

const config = {
  databases: {
    shared: {
      tables: {
        items: {
          schema: { title: { type: 'string' }, slug: { type: 'string', unique: true } },
          search: ['title'],
          access: open,
        },
        refs: { schema: { item: { type: 'string', references: 'items' } }, access: open },
      },
    },
  },
} as const

describeServer('delete', { config }, (server) => {
  beforeAll(async () => {
    const inserts = Array.from({ length: 5 }, (_, i) => ({ id: `d${i}`, title: `word${i} common`, slug: `s${i}` }))
    expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
  })

  test('[DB-DELETE-1] a deleted record is absent from get, list, count, search and totals', async () => {
    expect((await server.anonymous.get(`${base}/count`)).body.total).toBe(5)
    const { status, body } = await server.anonymous.delete(`${base}/d1`)
    expect(status).toBe(200)
    expect(body).toEqual({ ok: true })
    expectRefusal(await server.anonymous.get(`${base}/d1`), 404)
    const list = await server.anonymous.get(base)
    expect(list.body.total).toBe(4)
    expect(list.body.items.map(({ id }: { id: string }) => id)).toEqual(['d0', 'd2', 'd3', 'd4'])
    expect((await server.anonymous.get(`${base}/count`)).body.total).toBe(4)
    expect((await server.anonymous.get(`${base}/search${query({ q: 'common' })}`)).body.total).toBe(4)
    expect((await server.anonymous.get(`${base}/search${query({ q: 'word1' })}`)).body.items).toEqual([])
  })

  test('[DB-DELETE-1] the id and unique values of a deleted record can be used again', async () => {
    expect((await server.anonymous.delete(`${base}/d2`)).status).toBe(200)
    expect((await server.anonymous.post(base, { id: 'd2', slug: 's2', title: 'again' })).status).toBe(201)
  })

  test('[DB-DELETE-1] exactly one of ten concurrent deletes succeeds', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => server.anonymous.delete(`${base}/d3`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(404)])
  })

  test('[DB-DELETE-2] a referenced record cannot be deleted', async () => {
    const refs = '/api/db/shared/tables/refs'
    expect((await server.anonymous.post(refs, { id: 'r', item: 'd4' })).status).toBe(201)
    const before = await server.dump(base, refs)
    expectRefusal(await server.anonymous.delete(`${base}/d4`), 409)
    expectRefusal(await server.anonymous.post(`${base}/batch`, { deletes: ['d0', 'd4'] }), 409)
    expectRefusal(await server.anonymous.post(`${base}/batch-by-filter`, { action: 'delete' }), 409)
    expect(await server.dump(base, refs)).toEqual(before)
    await server.anonymous.delete(`${refs}/r`)
    expect((await server.anonymous.delete(`${base}/d4`)).status).toBe(200)
  })

  test('[DB-DELETE-2, DB-TABLE-9] one of a concurrent delete and a new reference to the record is refused', async () => {
    const refs = '/api/db/shared/tables/refs'
    const ids = times(20, (n) => `raced-${n}`)
    expect((await server.service.post(`${base}/batch`, { inserts: ids.map((id) => ({ id })) })).status).toBe(200)
    const raced = async (id: string): Promise<string> => {
      const answers = await Promise.all([
        server.anonymous.post(refs, { item: id }),
        server.anonymous.delete(`${base}/${id}`),
      ])
      return answers.map(({ status }) => status).join()
    }
    for (const id of ids) expect(['201,409', '400,200']).toContain(await raced(id))
    const { items } = (await server.dump(refs))[refs] ?? { items: [] }
    for (const { item } of items) expect((await server.anonymous.get(`${base}/${item}`)).status).toBe(200)
  })

  runScenarios(
    server,
    [base],
    [
      { name: '[DB-DELETE-1] an absent record', method: 'DELETE', path: `${base}/nope`, status: 404 },
      { name: '[DB-DELETE-1] an id with a wildcard', method: 'DELETE', path: `${base}/%25`, status: 404 },
      {
        name: '[DB-DELETE-1] an id with SQL',
        method: 'DELETE',
        path: `${base}/${encodeURIComponent("d0' OR '1'='1")}`,
        status: 404,
      },
      { name: '[HTTP-7] the table as a whole cannot be deleted', method: 'DELETE', path: base, status: 405 },
    ],
  )
})
