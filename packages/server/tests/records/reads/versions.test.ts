/** `versions=1` on lists, searches and batches, and `ifMatch` in batches. */
import { beforeEach, expect, test } from 'bun:test'
import { type Answer, query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

const base = '/api/db/shared/tables/items'
const loose = '/api/db/shared/tables/loose'
const inbox = '/api/db/shared/tables/inbox'
const inSpace = '/api/db/space/x/tables/items'
const schema = { title: { type: 'string' }, rank: { type: 'number' }, body: { type: 'json' } } as const
const writerKey = 'a-key-that-may-only-write'
const config = {
  databases: {
    shared: {
      tables: {
        items: { schema, search: ['title'], access: open },
        loose: { access: open },
        inbox: { schema, access: { ...open, read: () => ({ title: 'mine' }) } },
      },
    },
    space: { instance: true, access: () => true, tables: { items: { schema, access: open } } },
  },
  limits: { responseBytes: '64kb' },
  serviceKeys: [{ name: 'writer', key: writerKey, scopes: ['db:table:items:write'] }],
}

const versionOf = ({ headers }: Answer): number => Number(/^"(\d+)[-"]/.exec(headers.get('etag') ?? '')?.[1])

describeServer('versions of many', { config }, (server) => {
  const { anonymous, service } = server
  const versionAt = async (path: string): Promise<number> => versionOf(await anonymous.get(path))

  beforeEach(async () => {
    for (const table of [base, loose, inbox, inSpace]) {
      while ((await service.post(`${table}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
      const inserts = ['a', 'b', 'c', 'd'].map((id, rank) => ({ id, title: `title ${id}`, rank, body: { id } }))
      expect((await service.post(`${table}/batch`, { inserts })).status).toBe(200)
      for (const id of ['c', 'a']) await service.patch(`${table}/${id}`, { rank: 10 })
    }
  })

  for (const table of [base, loose, inSpace])
    for (const [params, ids] of [
      [{}, ['a', 'b', 'c', 'd']],
      [{ sort: 'rank:desc,id:asc', limit: 3 }, ['a', 'c', 'd']],
      [{ filter: [['rank', '<', 9]], fields: 'title' }, ['b', 'd']],
      [{ after: '', limit: 3, sort: 'id:desc' }, ['d', 'c', 'b']],
      [{ before: '', limit: 3 }, ['b', 'c', 'd']],
      [{ filter: [['rank', '==', 99]] }, []],
    ] as const)
      test(`[DB-VER-6] a list has the versions of its items in their order: ${table} ${JSON.stringify(params)}`, async () => {
        const plain = await anonymous.get(table + query({ sort: 'id:asc', ...params }))
        const { status, body, headers } = await anonymous.get(table + query({ sort: 'id:asc', ...params, versions: 1 }))
        const { versions, ...rest } = body
        expect([status, rest]).toEqual([200, plain.body])
        expect(versions).toEqual(await Promise.all(ids.map((id) => versionAt(`${table}/${id}`))))
        expect(headers.get('etag')).not.toBe(plain.headers.get('etag'))
        const same = await anonymous.get(table + query({ sort: 'id:asc', ...params, versions: 0 }))
        expect([same.text, same.headers.get('etag')]).toEqual([plain.text, plain.headers.get('etag')])
      })

  test('[DB-VER-6] a search has them too', async () => {
    const { body } = await anonymous.get(`${base}/search${query({ q: 'title', versions: 1, fields: 'rank' })}`)
    expect(body.versions).toHaveLength(4)
    const { items } = (await anonymous.get(`${base}/search${query({ q: 'title' })}`)).body
    const ids = items.map(({ id }: { id: string }) => id)
    expect(body.versions).toEqual(await Promise.all(ids.map((id: string) => versionAt(`${base}/${id}`))))
    for (const q of ['nothing', '?!'])
      expect((await anonymous.get(`${base}/search${query({ q, versions: 1 })}`)).body).toMatchObject({
        items: [],
        versions: [],
      })
  })

  test('[DB-VER-6] a page that ends early has as many versions as items', async () => {
    const title = 'x'.repeat(9000)
    for (const n of times(20, (at) => at)) await service.post(base, { id: `big${n}`, title, rank: 77 })
    const filter = [['rank', '==', 77]]
    for (const params of [{ filter }, { filter, before: '' }, { filter, after: '', sort: 'id:desc' }]) {
      const { body, text } = await anonymous.get(base + query({ ...params, limit: 1000, versions: 1 }))
      expect(body.items.length).toBeGreaterThan(1)
      expect(body.items.length).toBeLessThan(20)
      expect(text.length).toBeLessThanOrEqual(65_536)
      const ids = body.items.map(({ id }: { id: string }) => id)
      expect(body.versions).toEqual(await Promise.all(ids.map((id: string) => versionAt(`${base}/${id}`))))
    }
  })

  for (const value of ['true', '2', ''])
    test(`[DB-VER-6] versions=${value} is refused`, async () => {
      expectRefusal(await anonymous.get(`${base}?versions=${value}`), 400, 'versions')
    })

  test('[DB-VER-7] a batch has the versions of its records, and of its removals greater ones', async () => {
    const before = await versionAt(`${base}/b`)
    const operations = {
      inserts: [{ id: 'new' }, { title: 'no id' }],
      updates: [
        { id: 'a', data: { rank: 1 } },
        { id: 'a', data: { rank: 2 } },
      ],
      deletes: ['b'],
    }
    const { status, body } = await anonymous.post(`${base}/batch?versions=1`, operations)
    expect([status, Object.keys(body)]).toEqual([200, ['inserted', 'updated', 'deleted', 'versions']])
    const { inserted, updated, deleted } = body.versions
    const ids = body.inserted.map(({ id }: { id: string }) => id)
    expect(inserted).toEqual(await Promise.all(ids.map((id: string) => versionAt(`${base}/${id}`))))
    expect(updated[1]).toBe(await versionAt(`${base}/a`))
    expect(updated[0]).toBeLessThan(updated[1])
    expect(deleted[0]).toBeGreaterThan(before)
    const upserts = { inserts: [{ id: 'new', rank: 1 }, { id: 'newer' }, { id: 'newer', rank: 2 }] }
    const { versions } = (await anonymous.post(`${base}/batch?upsert=true&versions=1`, upserts)).body
    expect(versions.inserted).toEqual([
      await versionAt(`${base}/new`),
      expect.any(Number),
      await versionAt(`${base}/newer`),
    ])
    expect(versions.inserted[1]).toBeLessThan(versions.inserted[2])
    expect((await anonymous.post(`${base}/batch`, { updates: [] })).body).toEqual({
      inserted: [],
      updated: [],
      deleted: [],
    })
  })

  test('[DB-VER-7] a batch has no version of a record that its caller may not read', async () => {
    const batch = {
      inserts: [
        { id: 'x', title: 'mine' },
        { id: 'y', title: 'theirs' },
      ],
    }
    expect((await anonymous.post(`${inbox}/batch?versions=1`, batch)).body.versions.inserted).toEqual([
      expect.any(Number),
      null,
    ])
    const { body } = await server.withKey(writerKey).post(`${base}/batch?versions=1`, {
      inserts: [{ id: 'x' }],
      updates: [{ id: 'a', data: { rank: 1 } }],
      deletes: ['b'],
    })
    expect(body.versions).toEqual({ inserted: [null], updated: [null], deleted: [null] })
  })

  test('[DB-VER-7] a repeated batch has them again', async () => {
    const send = () =>
      anonymous.post(
        `${base}/batch?versions=1`,
        { inserts: [{ id: 'new' }], updates: [{ id: 'a', data: { rank: 1 } }], deletes: ['b'] },
        { 'idempotency-key': 'versions' },
      )
    const [first, again] = [await send(), await send()]
    expect([again.status, again.text, again.headers.get('idempotency-replayed')]).toEqual([200, first.text, 'true'])
    expect(again.body.versions.updated).toEqual([await versionAt(`${base}/a`)])
  })

  test('[DB-VER-9] operations of a batch take a version, as tag, text or number', async () => {
    const tag = (await anonymous.get(`${base}/a?fields=title`)).headers.get('etag')
    const [b, c] = [await versionAt(`${base}/b`), await versionAt(`${base}/c`)]
    const { status, body } = await anonymous.post(`${base}/batch`, {
      updates: [
        { id: 'a', data: { rank: 5 }, ifMatch: tag },
        { id: 'b', data: { rank: 6 }, ifMatch: b },
      ],
      deletes: [{ id: 'c', ifMatch: String(c) }, 'd'],
    })
    expect([status, body.deleted]).toEqual([200, ['c', 'd']])
  })

  test('[DB-VER-9] one stale version refuses the batch as a whole, and is named', async () => {
    const [a, b] = [await versionAt(`${base}/a`), await versionAt(`${base}/b`)]
    const before = await server.dump(base)
    const batches = [
      {
        updates: [
          { id: 'a', data: { rank: 5 }, ifMatch: a },
          { id: 'b', data: { rank: 6 }, ifMatch: b - 1 },
        ],
      },
      // The first update makes the version of the second stale.
      {
        updates: [
          { id: 'a', data: { rank: 5 }, ifMatch: a },
          { id: 'a', data: { rank: 6 }, ifMatch: a },
        ],
      },
    ]
    for (const batch of batches)
      expectRefusal(
        await anonymous.post(`${base}/batch`, { inserts: [{ id: 'x' }], ...batch }),
        412,
        'updates[1].ifMatch',
      )
    const deletes = [
      { id: 'a', ifMatch: a },
      { id: 'b', ifMatch: `"${b}0"` },
    ]
    expectRefusal(await anonymous.post(`${base}/batch`, { deletes }), 412, 'deletes[1].ifMatch')
    for (const ifMatch of [null, {}, [a], true, 1.5])
      expectRefusal(await anonymous.post(`${base}/batch`, { deletes: [{ id: 'a', ifMatch }] }), 400)
    expect(await server.dump(base)).toEqual(before)
  })

  test('[DB-VER-9] of twenty batches with the same versions one wins', async () => {
    const [a, b] = [await versionAt(`${base}/a`), await versionAt(`${base}/b`)]
    const answers = await Promise.all(
      times(20, (n) => {
        const [first, second] = [
          { id: 'a', data: { rank: n }, ifMatch: a },
          { id: 'b', data: { rank: n }, ifMatch: b },
        ]
        return anonymous.post(`${base}/batch`, { updates: n % 2 ? [first, second] : [second, first] })
      }),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...times(19, () => 412)])
  })
})
