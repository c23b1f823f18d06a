/** `preview` on lists and searches: values cut in the database, and named. */
import { beforeAll, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const loose = '/api/db/shared/tables/loose'
const schema = {
  title: { type: 'string' },
  body: { type: 'text' },
  data: { type: 'json' },
  rank: { type: 'number' },
  isOn: { type: 'boolean' },
  at: { type: 'datetime' },
  location: { type: 'geo' },
} as const
const config = {
  databases: {
    shared: { tables: { items: { schema, search: ['title', 'body'], access: open }, loose: { access: open } } },
  },
}

/** Characters of two UTF-16 units each. */
const wide = '🙂'.repeat(20)
const rows = [
  { id: 'a-long-id-that-is-never-cut', title: 'short', body: 'x'.repeat(5000), data: { list: 'y'.repeat(900_000) } },
  { id: 'b', title: 'title that is longer', body: null, data: 'text', rank: 3, isOn: true, location: [1.5, 2.5] },
  { id: 'c', title: wide, body: '', data: [1, 2], rank: 12_345_678_901, at: '2026-11-24T10:00:00.000Z' },
  { id: 'd', title: '1234567890', body: '12345678901', data: '12345678', rank: null },
] as const

describeServer('previews', { config }, (server) => {
  const { anonymous, service } = server
  beforeAll(async () => {
    const inserts = rows.map((row) => ({ ...row }))
    expect((await service.post(`${base}/batch`, { inserts })).status).toBe(200)
    // An undeclared time is a text like any other.
    for (const row of inserts) delete (row as { at?: string }).at
    expect((await service.post(`${loose}/batch`, { inserts })).status).toBe(200)
  })

  const expected = [
    { title: 'short', body: 'x'.repeat(10), data: '{"list":"y', $cut: ['body', 'data'] },
    { title: 'title that', body: null, data: 'text', $cut: ['title'] },
    { title: '🙂'.repeat(10), body: '', data: [1, 2], rank: 12_345_678_901, $cut: ['title'] },
    { title: '1234567890', body: '1234567890', data: '12345678', $cut: ['body'] },
  ]

  for (const table of [base, loose])
    for (const params of [{}, { fields: 'id,title,body,data,rank' }, { after: '' }, { sort: 'title:asc,id:asc' }])
      test(`[DB-PREVIEW-1] values are cut, and named: ${table} ${JSON.stringify(params)}`, async () => {
        const { status, body } = await service.get(table + query({ sort: 'id:asc', preview: 10, ...params }))
        expect(status).toBe(200)
        const byId = new Map<unknown, object>(body.items.map((item: { id: string }) => [item.id, item]))
        for (const [at, { id }] of rows.entries()) expect(byId.get(id)).toMatchObject(expected[at] as object)
      })

  test('[DB-PREVIEW-1] short values, numbers, times and places are as without it', async () => {
    const params = { sort: 'id:asc', filter: [['id', '==', 'c']] }
    const plain = await service.get(base + query(params))
    const { body } = await service.get(base + query({ ...params, preview: 20 }))
    expect(body.items).toEqual(plain.body.items)
    const { body: point } = await service.get(base + query({ filter: [['id', '==', 'b']], preview: 1 }))
    expect(point.items[0].location).toEqual([1.5, 2.5])
  })

  test('[DB-PREVIEW-2] a page of large values is complete, and small', async () => {
    const { body, text } = await service.get(base + query({ after: '', limit: 4, preview: 10 }))
    expect([body.items.length, body.hasMore, text.length < 2_000]).toEqual([4, false, true])
  })

  for (const table of [base, loose])
    test(`[DB-PREVIEW-3] pages continue where they ended, also by a field that is cut: ${table}`, async () => {
      const ids: string[] = []
      let after = ''
      for (let page = 0; page < 10; page++) {
        const parameters = { sort: 'body:desc,id:asc', limit: 1, preview: 1, fields: 'id,body', after }
        const { body } = await service.get(table + query(parameters))
        ids.push(...body.items.map(({ id }: { id: string }) => id))
        if (!body.hasMore) break
        after = body.cursor
      }
      const { body } = await service.get(table + query({ sort: 'body:desc,id:asc', fields: 'id' }))
      expect(ids).toEqual(body.items.map(({ id }: { id: string }) => id))
    })

  test('[DB-PREVIEW-1] a search cuts the items and not their highlights', async () => {
    const { body } = await service.get(`${base}/search${query({ q: 'longer', preview: 5 })}`)
    expect(body.items).toMatchObject([{ title: 'title', data: 'text', $cut: ['title'] }])
    expect(JSON.stringify(body.items[0].highlights)).toContain('<mark>longer</mark>')
  })

  test('[DB-PREVIEW-4] it needs a service key, and from 1 to 4096 characters', async () => {
    for (const path of [base, `${base}/search`]) {
      expectRefusal(
        await anonymous.get(path + query({ q: 'short', preview: 10 }).replace(path === base ? 'q=short&' : '', '')),
        403,
        'access-denied',
      )
      for (const preview of [0, 4097, 'x'])
        expectRefusal(
          await service.get(path + query({ ...(path === base ? {} : { q: 'short' }), preview })),
          400,
          'invalid-input',
        )
    }
  })
})
