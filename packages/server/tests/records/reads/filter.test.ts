/**
 * `filter` and `orFilter`: the meaning of each operator for each type. Invalid filters are tested in
 * `invalid-filters.test.ts`.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { thingsPath as base, thingsWith } from '../../harness/records/things.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const loose = '/api/db/shared/tables/loose'

const config = {
  databases: {
    shared: {
      tables: {
        things: thingsWith({ body: { type: 'text' }, order: { type: 'string' } }),
        loose: { access: open },
      },
    },
  },
} as const

const rows = [
  {
    id: 'a',
    name: 'apple',
    body: '100% of_it',
    rank: 1,
    done: true,
    due: '2026-01-31T12:00:00.000Z',
    extra: { k: 'v' },
    secret: 's1',
    order: 'x',
  },
  {
    id: 'b',
    name: 'Banana',
    body: '100 percent',
    rank: -2.5,
    done: false,
    due: '2026-01-31T12:00:00.001Z',
    extra: [1, 2],
    secret: 's2',
  },
  {
    id: 'c',
    name: 'cherry',
    body: 'back\\slash',
    rank: 1e300,
    done: true,
    due: '1999-12-31T23:59:59.999Z',
    secret: 's1',
  },
  { id: 'd', name: 'ÄPFEL', body: 'it%s', rank: 0, done: false, due: '2026-02-01T00:00:00.000Z' },
  { id: 'e', name: '\u{1F600}smile', body: 'a\'b"c;--', rank: 2 },
  { id: 'f', name: '\uFF21wide', body: 'OFXIT', rank: 10 },
  { id: 'g' },
  { id: 'h', name: '', body: '', rank: -0 },
]

/** Filters and the ids that each must find. The test is named after the filter. */
const meanings: readonly [rule: string, filter: unknown, ids: string][] = [
  ['DB-FILTER-1', [], 'abcdefgh'],
  [
    'DB-FILTER-1',
    [
      ['rank', '>', 0],
      ['rank', '<', 5],
    ],
    'ae',
  ],
  [
    'DB-FILTER-1',
    [
      ['rank', '>', 5],
      ['rank', '<', 5],
    ],
    '',
  ],
  ['DB-FILTER-3', [['id', '==', 'a']], 'a'],
  ['DB-FILTER-3', [['id', '!=', 'a']], 'bcdefgh'],
  ['DB-FILTER-3', [['name', '==', 'apple']], 'a'],
  ['DB-FILTER-3', [['name', '==', 'APPLE']], ''],
  ['DB-FILTER-3', [['name', '==', 'äpfel']], ''],
  ['DB-FILTER-3', [['name', '==', '']], 'h'],
  ['DB-FILTER-3', [['name', '==', 'apple ']], ''],
  ['DB-FILTER-3', [['name', '!=', 'apple']], 'bcdefh'],
  ['DB-FILTER-3', [['name', '>', 'Z']], 'acdef'],
  ['DB-FILTER-3', [['name', '<', 'a']], 'bh'],
  ['DB-FILTER-3', [['name', '>', '\uFF21']], 'ef'],
  ['DB-FILTER-3', [['name', '>=', '\u{1F600}']], 'e'],
  ['DB-FILTER-3', [['name', '<=', 'apple']], 'abh'],
  ['DB-FILTER-3', [['rank', '==', 1]], 'a'],
  ['DB-FILTER-3', [['rank', '==', 0]], 'dh'],
  ['DB-FILTER-3', [['rank', '!=', 0]], 'abcef'],
  ['DB-FILTER-3', [['rank', '>', 1]], 'cef'],
  ['DB-FILTER-3', [['rank', '>=', 1]], 'acef'],
  ['DB-FILTER-3', [['rank', '<', -2]], 'b'],
  ['DB-FILTER-3', [['rank', '<=', 0]], 'bdh'],
  ['DB-FILTER-3', [['rank', '==', 1e300]], 'c'],
  ['DB-FILTER-3', [['rank', '<', 10]], 'abdeh'],
  ['DB-FILTER-3', [['done', '==', true]], 'ac'],
  ['DB-FILTER-3', [['done', '==', false]], 'bd'],
  ['DB-FILTER-3', [['done', '!=', true]], 'bd'],
  ['DB-FILTER-3', [['due', '>', '2026-01-31T12:00:00.000Z']], 'bd'],
  ['DB-FILTER-3', [['due', '>=', '2026-01-31T12:00:00.000Z']], 'abd'],
  ['DB-FILTER-3', [['due', '<', '2000-01-01T00:00:00.000Z']], 'c'],
  ['DB-FILTER-14', [['due', '==', '2026-01-31T14:00:00+02:00']], 'a'],
  ['DB-FILTER-14', [['due', '==', '2026-01-31T07:00:00.001-05:00']], 'b'],
  ['DB-FILTER-14', [['due', '<', '2000-01-01']], 'c'],
  ['DB-FILTER-14', [['due', 'in', ['2026-01-31T12:00:00Z', '2026-02-01T01:00:00+01:00']]], 'ad'],
  ['DB-FILTER-4', [['name', 'contains', 'an']], 'b'],
  ['DB-FILTER-4', [['name', 'contains', 'AN']], ''],
  ['DB-FILTER-4', [['name', 'contains', 'pple']], 'a'],
  ['DB-FILTER-4', [['name', 'contains', 'PF']], 'd'],
  ['DB-FILTER-4', [['name', 'contains', 'ä']], ''],
  ['DB-FILTER-4', [['name', 'contains', 'Ä']], 'd'],
  ['DB-FILTER-4', [['name', 'contains', '']], 'abcdefh'],
  ['DB-FILTER-4', [['body', 'contains', '%']], 'ad'],
  ['DB-FILTER-4', [['body', 'contains', '_']], 'a'],
  ['DB-FILTER-4', [['body', 'contains', 'of_it']], 'a'],
  ['DB-FILTER-4', [['body', 'contains', 'OF_IT']], ''],
  ['DB-FILTER-4', [['body', 'contains', '0%']], 'a'],
  ['DB-FILTER-4', [['body', 'contains', '\\']], 'c'],
  ['DB-FILTER-4', [['body', 'contains', '\\%']], ''],
  ['DB-FILTER-4', [['body', 'contains', '*']], ''],
  ['DB-FILTER-4', [['body', 'contains', '[a-z]']], ''],
  ['DB-FILTER-4', [['name', 'contains', '\u{1F600}']], 'e'],
  ['DB-FILTER-12', [['body', 'contains', '\'b"c;--']], 'e'],
  ['DB-FILTER-12', [['body', '==', "' OR '1'='1"]], ''],
  ['DB-FILTER-12', [['order', '==', 'x']], 'a'],
  ['DB-FILTER-5', [['name', 'in', ['apple', 'cherry', 'nope']]], 'ac'],
  ['DB-FILTER-5', [['name', 'in', ['apple', 'apple']]], 'a'],
  ['DB-FILTER-5', [['rank', 'in', [0, 1, 2]]], 'adeh'],
  ['DB-FILTER-5', [['done', 'in', [true, false]]], 'abcd'],
  ['DB-FILTER-5', [['name', 'in', []]], ''],
  ['DB-FILTER-5', [['name', 'not in', []]], 'abcdefgh'],
  ['DB-FILTER-5', [['name', 'not in', ['apple', 'Banana']]], 'cdefh'],
  ['DB-FILTER-5', [['rank', 'not in', [0]]], 'abcef'],
  ['DB-FILTER-6', [['name', '==', null]], 'g'],
  ['DB-FILTER-6', [['name', '!=', null]], 'abcdefh'],
  ['DB-FILTER-6', [['due', '==', null]], 'efgh'],
  ['DB-FILTER-6', [['done', '==', null]], 'efgh'],
  ['DB-FILTER-6', [['rank', '!=', null]], 'abcdefh'],
  ['DB-FILTER-6', [['extra', '==', null]], 'cdefgh'],
  ['DB-FILTER-6', [['extra', '!=', null]], 'ab'],
  ['DB-FILTER-6', [['id', '==', null]], ''],
  ['DB-FILTER-6', [['due', '!=', '2026-01-31T12:00:00.000Z']], 'bcd'],
  ['DB-FILTER-6', [['rank', 'not in', [1]]], 'bcdefh'],
]

describeServer('filter', { config }, (server) => {
  const idsOf = (body: { items: { id: string }[] }) => body.items.map(({ id }) => id).join('')

  beforeAll(async () => {
    expect((await server.service.post(`${base}/batch`, { inserts: rows })).status).toBe(200)
  })

  describe('finds the matching rows for', () => {
    for (const [rule, filter, ids] of meanings)
      test(`[${rule}] ${JSON.stringify(filter)}`, async () => {
        const list = await server.anonymous.get(base + query({ filter }))
        expect(list.body.message ?? idsOf(list.body)).toEqual(ids)
        expect(list.status).toBe(200)
        expect(list.body.total).toBe(ids.length)
        const count = await server.anonymous.get(`${base}/count${query({ filter })}`)
        expect(count.body).toEqual({ total: ids.length })
      })
  })

  test('[DB-FILTER-2] a row must match one condition of orFilter', async () => {
    const { body } = await server.anonymous.get(
      base +
        query({
          orFilter: [
            ['id', '==', 'a'],
            ['rank', '==', 10],
            ['name', '==', null],
          ],
        }),
    )
    expect(idsOf(body)).toBe('afg')
  })

  test('[DB-FILTER-2] a row must match both filter and orFilter', async () => {
    const { body } = await server.anonymous.get(
      base +
        query({
          filter: [['rank', '>=', 0]],
          orFilter: [
            ['name', '==', 'apple'],
            ['name', '==', 'Banana'],
            ['body', 'contains', 'it'],
          ],
        }),
    )
    expect(idsOf(body)).toBe('ad')
    expect(body.total).toBe(2)
  })

  test('[DB-FILTER-11] a filter accepts a hundred conditions and a thousand values', async () => {
    const hundred = Array.from({ length: 100 }, (_, i) => ['rank', '!=', 1000 + i])
    expect((await server.anonymous.get(base + query({ filter: hundred }))).body.total).toBe(7)
    const thousand = Array.from({ length: 1000 }, (_, i) => i)
    expect((await server.anonymous.get(base + query({ filter: [['rank', 'in', thousand]] }))).body.total).toBe(5)
  })

  test('[DB-FILTER-13] search and batch-by-filter accept the same filter', async () => {
    const filter = [['rank', '>=', 1]]
    const found = await server.anonymous.get(`${base}/search${query({ q: 'a', filter })}`)
    expect(found.body.items.map(({ id }: { id: string }) => id).sort()).toEqual(['a'])
    const changed = await server.anonymous.post(`${base}/batch-by-filter`, {
      action: 'update',
      filter,
      orFilter: [
        ['id', '==', 'a'],
        ['id', '==', 'b'],
      ],
      data: { order: 'x' },
    })
    expect(changed.body).toEqual({ processed: 1, succeeded: 1 })
  })

  test('[DB-TABLE-14] fields of a table without a schema can be filtered', async () => {
    const inserts = [
      { id: 'l1', n: 1, 'odd name': 'x', mixed: 'text', flag: true },
      { id: 'l2', n: 2, 'quo\'te"d': 'y', mixed: 5, flag: false },
      { id: 'l3', n: 'two', 'a.b': 'dot', mixed: null },
      { id: 'l4', a: { b: 'inner' }, 'a]': 1 },
    ]
    expect((await server.anonymous.post(`${loose}/batch`, { inserts })).status).toBe(200)
    const find = async (...filter: unknown[]) =>
      (await server.anonymous.get(loose + query({ filter }))).body.items?.map(({ id }: { id: string }) => id).join()
    expect(await find(['n', '>', 1])).toBe('l2')
    expect(await find(['n', '==', 'two'])).toBe('l3')
    expect(await find(['n', '!=', null])).toBe('l1,l2,l3')
    expect(await find(['n', '==', null])).toBe('l4')
    expect(await find(['odd name', '==', 'x'])).toBe('l1')
    expect(await find(['quo\'te"d', '==', 'y'])).toBe('l2')
    expect(await find(['a.b', '==', 'dot'])).toBe('l3')
    expect(await find(['mixed', '==', 'text'])).toBe('l1')
    expect(await find(['mixed', '==', 5])).toBe('l2')
    expect(await find(['mixed', 'in', ['text', 5]])).toBe('l1,l2')
    expect(await find(['flag', '==', true])).toBe('l1')
    expect(await find(['flag', '==', 1])).toBe('')
    expect(await find(['n', '==', true])).toBe('')
    expect(await find(['never seen', '==', null])).toBe('l1,l2,l3,l4')
    expect(await find(['never seen', '!=', 'x'])).toBe('')
    for (const field of ['__proto__', 'constructor', 'prototype', '', 'x\ny', 'x'.repeat(129)])
      expectRefusal(await server.anonymous.get(loose + query({ filter: [[field, '==', 1]] })), 400, 'filter[0]')
  })
})
