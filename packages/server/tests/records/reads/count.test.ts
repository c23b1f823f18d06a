/** GET {base}/count and the totals of lists, which are always exact despite caching. */
import { expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { runScenarios } from '../../harness/records/scenarios.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const owned = '/api/db/shared/tables/owned'

const config = {
  databases: {
    shared: {
      tables: {
        items: { schema: { n: { type: 'number' }, kind: { type: 'string' } }, access: open },
        owned: {
          schema: { ownerId: { type: 'string' }, n: { type: 'number' } },
          access: { read: (auth: { id: string } | null) => auth !== null && { ownerId: auth.id } },
        },
      },
    },
  },
} as const

describeServer('count', { config }, (server) => {
  const totals = async (filter?: unknown): Promise<number[]> => {
    const [count, list] = await Promise.all([
      server.anonymous.get(`${base}/count${query({ filter })}`),
      server.anonymous.get(base + query({ filter, limit: 1 })),
    ])
    return [count.body.total, list.body.total]
  }

  test('[DB-COUNT-1, DB-LIST-15] totals reflect every kind of write', async () => {
    const even = [['kind', '==', 'even']]
    const steps: [unknown, number, number][] = [
      [
        { inserts: Array.from({ length: 10 }, (_, n) => ({ id: `i${n}`, n, kind: n % 2 === 0 ? 'even' : 'odd' })) },
        10,
        5,
      ],
      [{ updates: [{ id: 'i0', data: { kind: 'odd' } }] }, 10, 4],
      [
        {
          updates: [
            { id: 'i1', data: { kind: 'even' } },
            { id: 'i3', data: { kind: 'even' } },
          ],
        },
        10,
        6,
      ],
      [{ deletes: ['i1', 'i0'] }, 8, 5],
      [{ inserts: [{ id: 'i0', kind: 'even' }], updates: [{ id: 'i2', data: { kind: null } }], deletes: ['i4'] }, 8, 4],
    ]
    expect(await totals()).toEqual([0, 0])
    expect(await totals(even)).toEqual([0, 0])
    for (const [body, all, some] of steps) {
      expect((await server.anonymous.post(`${base}/batch`, body)).status).toBe(200)
      expect(await totals()).toEqual([all, all])
      expect(await totals(even)).toEqual([some, some])
    }
    await server.anonymous.post(base, { kind: 'even' })
    expect(await totals()).toEqual([9, 9])
    expect(await totals(even)).toEqual([5, 5])
    await server.anonymous.patch(`${base}/i2`, { kind: 'even' })
    expect(await totals(even)).toEqual([6, 6])
    await server.anonymous.delete(`${base}/i2`)
    expect(await totals()).toEqual([8, 8])
    expect(await totals(even)).toEqual([5, 5])
    await server.anonymous.post(`${base}/batch-by-filter`, { action: 'delete', filter: even })
    expect(await totals()).toEqual([3, 3])
    expect(await totals(even)).toEqual([0, 0])
  })

  test('[DB-COUNT-1, RULE-13] a refused write changes no total', async () => {
    const before = [await totals(), await totals([['kind', '==', 'odd']])]
    const answer = await server.anonymous.post(`${base}/batch`, {
      inserts: [{ kind: 'odd' }, { kind: 'odd', id: 'i3' }, { id: 'i3' }],
    })
    expect(answer.status).toBe(409)
    expect([await totals(), await totals([['kind', '==', 'odd']])]).toEqual(before)
  })

  test('[DB-COUNT-1] totals are exact for more filters than are cached', async () => {
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n < 40; n++) {
        const expected = (await server.service.get(base + query({ filter: [['n', '>', n]], limit: 1000 }))).body.items
          .length
        expect(await totals([['n', '>', n]])).toEqual([expected, expected])
      }
      await server.anonymous.post(base, { n: 20.5 })
    }
  })

  test('[DB-COUNT-1, RULE-5] each caller counts only rows that they may read', async () => {
    const inserts = Array.from({ length: 9 }, (_, n) => ({ n, ownerId: n < 3 ? 'alice' : 'bob' }))
    await server.service.post(`${owned}/batch`, { inserts })
    const count = async (user: string, filter?: unknown) =>
      (await server.as(user).get(`${owned}/count${query({ filter })}`)).body
    expect(await count('alice')).toEqual({ total: 3 })
    expect(await count('bob')).toEqual({ total: 6 })
    expect(await count('carol')).toEqual({ total: 0 })
    expect(await count('alice', [['n', '>', 0]])).toEqual({ total: 2 })
    expect(await count('alice', [['ownerId', '==', 'bob']])).toEqual({ total: 0 })
    expect((await server.service.get(`${owned}/count`)).body).toEqual({ total: 9 })
    await server.service.post(owned, { ownerId: 'alice', n: 1 })
    expect(await count('alice')).toEqual({ total: 4 })
    expect(await count('bob')).toEqual({ total: 6 })
  })

  runScenarios(
    server,
    [base],
    [
      { name: '[RULE-2, RULE-3] no credentials where the rule needs them', path: `${owned}/count`, status: 401 },
      {
        name: '[DB-COUNT-1] rows must match both filter and orFilter',
        path: `${base}/count`,
        query: { filter: [['kind', '==', 'nope']], orFilter: [['n', '>', 0]] },
        status: 200,
        json: { total: 0 },
      },
      {
        name: '[DB-COUNT-1] a bad filter',
        path: `${base}/count`,
        query: { filter: [['nope', '==', 1]] },
        status: 400,
        names: 'filter[0]',
      },
    ],
  )
})
