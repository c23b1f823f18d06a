/**
 * Concurrent writers: no lost updates, no duplicate unique values, and no partial transactions.
 */
import { beforeEach, expect, test } from 'bun:test'
import { query } from '../harness/client.ts'
import { open } from '../harness/config.ts'
import { describeServer } from '../harness/server.ts'
import { times } from '../harness/times.ts'

const base = '/api/db/shared/tables/items'
const schema = { title: { type: 'string' }, rank: { type: 'number' }, slug: { type: 'string', unique: true } } as const
const config = { databases: { shared: { tables: { items: { schema, search: ['title'], access: open } } } } } as const

const statusesOf = (answers: readonly { status: number }[]): number[] => answers.map(({ status }) => status).sort()

describeServer('concurrent writes', { config }, (server) => {
  beforeEach(async () => {
    while ((await server.service.post(`${base}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
  })

  const total = async (): Promise<number> => (await server.anonymous.get(`${base}/count`)).body.total

  test('[DB-INSERT-4] one of fifty concurrent inserts of one id succeeds', async () => {
    const answers = await Promise.all(times(50, (n) => server.anonymous.post(base, { id: 'one', rank: n })))
    expect(statusesOf(answers)).toEqual([201, ...times(49, () => 409)])
    const winner = answers.find(({ status }) => status === 201)
    expect((await server.anonymous.get(`${base}/one`)).body).toEqual(winner?.body)
    expect(await total()).toBe(1)
  })

  test('[DB-TABLE-8] one of fifty concurrent inserts of one unique value succeeds', async () => {
    const answers = await Promise.all(times(50, (n) => server.anonymous.post(base, { slug: 'same', rank: n })))
    expect(statusesOf(answers)).toEqual([201, ...times(49, () => 409)])
    expect(await total()).toBe(1)
  })

  test('[DB-UPSERT-9] fifty concurrent upserts of one id create one row', async () => {
    const answers = await Promise.all(
      times(50, (n) => server.anonymous.post(`${base}?upsert=true`, { id: 'one', rank: n })),
    )
    expect(statusesOf(answers)).toEqual([...times(49, () => 200), 201])
    expect(await total()).toBe(1)
  })

  test('[DB-UPSERT-9, DB-BATCH-6] an upsert never conflicts with a concurrent insert of the same value', async () => {
    const upserts = [
      (n: number) => server.anonymous.post(`${base}?upsert=true`, { id: `id-${n}`, rank: n }),
      (n: number) => server.anonymous.post(`${base}?upsert=true&conflictTarget=slug`, { slug: `slug-${n}`, rank: n }),
      (n: number) =>
        server.anonymous.post(`${base}/batch?upsert=true`, {
          inserts: [
            { id: `id-${n}`, rank: n },
            { id: `other-${n}`, rank: n },
          ],
        }),
    ]
    for (const upsert of upserts)
      for (const n of times(10, (at) => at)) {
        const [inserted, upserted] = await Promise.all([
          server.anonymous.post(base, { id: `id-${n}`, slug: `slug-${n}` }),
          upsert(n),
        ])
        expect([201, 409]).toContain(inserted.status)
        expect(upserted.status).toBeLessThan(300)
        const { items } = (await server.anonymous.get(base)).body
        expect(items.map(({ rank }: { rank: number }) => rank)).toEqual(times(items.length, () => n))
        await server.service.post(`${base}/batch-by-filter`, { action: 'delete' })
      }
  })

  test('[DB-UPDATE-2] a hundred concurrent increments, single, in batches and by filter, are all applied', async () => {
    await server.anonymous.post(base, { id: 'sum', rank: 0 })
    const rank = { $op: 'increment', value: 1 }
    const answers = await Promise.all(
      times(99, (n) =>
        n % 3 === 0
          ? server.anonymous.patch(`${base}/sum`, { rank })
          : n % 3 === 1
            ? server.anonymous.post(`${base}/batch`, {
                updates: [
                  { id: 'sum', data: { rank } },
                  { id: 'sum', data: { rank } },
                ],
              })
            : server.anonymous.post(`${base}/batch-by-filter`, {
                action: 'update',
                filter: [['id', '==', 'sum']],
                data: { rank },
              }),
      ),
    )
    expect(statusesOf(answers)).toEqual(times(99, () => 200))
    expect((await server.anonymous.get(`${base}/sum`)).body.rank).toBe(33 + 66 + 33)
  })

  test('[DB-BATCH-3] concurrent transfers preserve the sum, and readers never see half of one', async () => {
    const accounts = times(6, (n) => `acc-${n}`)
    await server.anonymous.post(`${base}/batch`, { inserts: accounts.map((id) => ({ id, rank: 100 })) })
    const sums: number[] = []
    let running = true
    const reader = (async () => {
      while (running) {
        const { body } = await server.anonymous.get(base)
        sums.push(body.items.reduce((sum: number, { rank }: { rank: number }) => sum + rank, 0))
      }
    })()
    const answers = await Promise.all(
      times(200, (n) => {
        const [from, to] = [accounts[n % 6] ?? '', accounts[(n * 5 + 1) % 6] ?? '']
        // Every tenth transfer fails in its second half.
        const target = n % 10 === 9 ? 'nobody' : to
        const move = (value: number) => ({ rank: { $op: 'increment', value } })
        return server.anonymous.post(`${base}/batch`, {
          updates: [
            { id: from, data: move(-n) },
            { id: target, data: move(n) },
          ],
        })
      }),
    )
    running = false
    await reader
    expect(statusesOf(answers)).toEqual([...times(180, () => 200), ...times(20, () => 404)])
    expect(new Set(sums)).toEqual(new Set([600]))
    expect(sums.length).toBeGreaterThan(0)
  })

  test('[DB-DELETE-1, DB-INSERT-4] concurrent inserts and deletes of one id alternate', async () => {
    const answers = await Promise.all(
      times(100, (n) =>
        n % 2 === 0 ? server.anonymous.post(base, { id: 'flip' }) : server.anonymous.delete(`${base}/flip`),
      ),
    )
    const count = (status: number) => answers.filter((answer) => answer.status === status).length
    expect(count(201) + count(409)).toBe(50)
    expect(count(200) + count(404)).toBe(50)
    expect(await total()).toBe(count(201) - count(200))
    expect([0, 1]).toContain(count(201) - count(200))
  })

  test('[DB-IDEM-4] fifty concurrent requests with one idempotency key insert one row and return equal responses', async () => {
    const answers = await Promise.all(
      times(50, () =>
        server.anonymous.post(
          `${base}/batch`,
          { inserts: [{ title: 'once' }, { title: 'once' }] },
          { 'idempotency-key': 'one' },
        ),
      ),
    )
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(await total()).toBe(2)
  })

  test('[DB-COUNT-1, DB-SEARCH-10] totals and searches are exact after many concurrent writes', async () => {
    await Promise.all(
      times(300, async (n) => {
        const { body } = await server.anonymous.post(base, { title: n % 2 === 0 ? 'even' : 'odd', rank: n })
        if (n % 3 === 0) await server.anonymous.delete(`${base}/${body.id}`)
        else if (n % 5 === 0) await server.anonymous.patch(`${base}/${body.id}`, { title: 'other' })
        if (n % 7 === 0) await server.anonymous.get(base + query({ filter: [['title', '==', 'even']], limit: 1 }))
      }),
    )
    const { items, total: all } = (await server.dump(base))[base] ?? { items: [], total: -1 }
    expect(all).toBe(items.length)
    for (const title of ['even', 'odd', 'other']) {
      const expected = items.filter((item) => item.title === title).length
      expect(
        (await server.anonymous.get(`${base}/count${query({ filter: [['title', '==', title]] })}`)).body.total,
      ).toBe(expected)
      expect((await server.anonymous.get(`${base}/search${query({ q: title })}`)).body.total).toBe(expected)
    }
  })

  test('[DB-TABLE-3] ids generated concurrently are unique', async () => {
    const answers = await Promise.all(times(300, () => server.anonymous.post(base, {})))
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(300)
  })
})
