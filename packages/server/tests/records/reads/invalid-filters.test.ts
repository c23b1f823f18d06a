/**
 * Invalid `filter` and `orFilter` parameters return 400 and name the tuple, on every endpoint that accepts a filter.
 */
import { beforeAll, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { codesOf } from '../../harness/records/scenarios.ts'
import { thingsPath as base, thingsWith } from '../../harness/records/things.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const config = { databases: { shared: { tables: { things: thingsWith({}) } } } } as const

/** An invalid value of `filter`, with the member of `data` that names it and its code. */
const invalid: readonly [rule: string, filter: unknown, at: string, code?: string][] = [
  ['DB-FILTER-8', [['nope', '==', 1]], 'filter[0]', 'unknown'],
  [
    'DB-FILTER-8',
    [
      ['id', '==', 'a'],
      ['Name', '==', 'x'],
    ],
    'filter[1]',
    'unknown',
  ],
  ['DB-FILTER-8', [[' name', '==', 'x']], 'filter[0]', 'unknown'],
  ['DB-FILTER-8', [['name ', '==', 'x']], 'filter[0]', 'unknown'],
  ['DB-FILTER-8', [['"name"', '==', 'x']], 'filter[0]', 'unknown'],
  ['DB-FILTER-8', [['', '==', 'x']], 'filter[0]', 'unknown'],
  ['DB-FILTER-8', [['n\u0430me', '==', 'x']], 'filter[0]', 'unknown'],
  ['DB-FILTER-8', [['name\0', '==', 'x']], 'filter[0]', 'unknown'],
  ['DB-FILTER-8', [['extra.k', '==', 'v']], 'filter[0]', 'unknown'],
  ['DB-FILTER-8', [['secret', '==', 's1']], 'filter[0]', 'unknown'],
  ['DB-FILTER-8', [['__proto__', '==', null]], 'filter[0]', 'unknown'],
  ['DB-FILTER-8', [['constructor', '!=', null]], 'filter[0]', 'unknown'],
  ['DB-FILTER-8', [['rowid', '>', 0]], 'filter[0]', 'unknown'],
  ['DB-FILTER-12', [['x" OR 1=1--', '==', 1]], 'filter[0]', 'unknown'],
  ['DB-FILTER-12', [["a'); DROP TABLE things;--", '==', 1]], 'filter[0]', 'unknown'],
  ['DB-FILTER-12', [['`name`', '==', 'x']], 'filter[0]', 'unknown'],
  ['DB-FILTER-12', [['name', '==', 'a\0b']], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['name', '=', 'x']], 'filter[0]', 'operator'],
  ['DB-FILTER-9', [['name', '===', 'x']], 'filter[0]', 'operator'],
  ['DB-FILTER-9', [['name', 'LIKE', 'x']], 'filter[0]', 'operator'],
  ['DB-FILTER-9', [['name', 'CONTAINS', 'x']], 'filter[0]', 'operator'],
  ['DB-FILTER-9', [['name', 'constructor', 'x']], 'filter[0]', 'operator'],
  ['DB-FILTER-9', [['name', '== 1 OR 1', 'x']], 'filter[0]', 'operator'],
  ['DB-FILTER-9', [['name', '==', 1]], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['name', '==', true]], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['name', '==', { $gt: '' }]], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['name', '==', ['apple']]], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['rank', '==', '1']], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['rank', '>', true]], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['done', '==', 1]], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['done', '==', 'true']], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['due', '==', 5]], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['due', '==', 'yesterday']], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['due', '==', '2026-02-30T00:00:00Z']], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['name', 'in', 'apple']], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['name', 'in', { 0: 'apple' }]], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['name', 'in', ['apple', 1]]], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['rank', 'in', [[1]]]], 'filter[0]', 'type'],
  ['DB-FILTER-9', [['rank', 'contains', 1]], 'filter[0]'],
  ['DB-FILTER-9', [['name', 'contains', 5]], 'filter[0]'],
  ['DB-FILTER-9', [['done', '>', false]], 'filter[0]'],
  [
    'DB-FILTER-9',
    [
      ['rank', '>', 1],
      ['rank', '<', 9],
      ['rank', '==', 'x'],
    ],
    'filter[2]',
    'type',
  ],
  ['DB-FILTER-7', [['name', '>', null]], 'filter[0]'],
  ['DB-FILTER-7', [['name', '<=', null]], 'filter[0]'],
  ['DB-FILTER-7', [['name', 'contains', null]], 'filter[0]'],
  ['DB-FILTER-7', [['name', 'in', null]], 'filter[0]'],
  ['DB-FILTER-7', [['name', 'not in', null]], 'filter[0]'],
  ['DB-FILTER-7', [['name', 'in', ['apple', null]]], 'filter[0]'],
  ['DB-FILTER-7', [['name', 'not in', [null]]], 'filter[0]'],
  ['DB-FILTER-10', { name: 'apple' }, 'filter'],
  ['DB-FILTER-10', 'apple', 'filter'],
  ['DB-FILTER-10', 5, 'filter'],
  ['DB-FILTER-10', ['name', '==', 'apple'], 'filter[0]'],
  ['DB-FILTER-10', [[]], 'filter[0]'],
  ['DB-FILTER-10', [['name', '==']], 'filter[0]'],
  ['DB-FILTER-10', [['name', '==', 'x', 'y']], 'filter[0]'],
  ['DB-FILTER-10', [['id', '==', 'a'], null], 'filter[1]'],
  ['DB-FILTER-10', [{ field: 'name', op: '==', value: 'x' }], 'filter[0]'],
  ['DB-FILTER-10', [[['name'], '==', 'x']], 'filter[0]'],
  ['DB-FILTER-10', [[5, '==', 'x']], 'filter[0]'],
  ['DB-FILTER-10', [['name', 5, 'x']], 'filter[0]'],
  ['DB-FILTER-10', [['name', null, 'x']], 'filter[0]'],
  ['DB-FILTER-11', Array.from({ length: 101 }, () => ['rank', '!=', 5]), 'filter', 'max'],
  ['DB-FILTER-11', [['rank', 'in', Array.from({ length: 1001 }, (_, i) => i)]], 'filter[0]', 'max'],
]

describeServer('invalid filters', { config }, (server) => {
  beforeAll(async () => {
    const inserts = [{ id: 'a', name: 'x', rank: 1, secret: 's1' }, ...[...'bcdef'].map((id) => ({ id }))]
    expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
  })

  for (const [rule, filter, at, code] of invalid)
    test(`[${rule}] ${JSON.stringify(filter).slice(0, 80)}`, async () => {
      const before = await server.dump(base)
      for (const path of [base, `${base}/count`, `${base}/search`]) {
        const { data } = expectRefusal(
          await server.anonymous.get(
            path + query({ filter: JSON.stringify(filter), ...(path.endsWith('/search') ? { q: 'x' } : {}) }),
          ),
          400,
        )
        expect(Object.keys(data)).toEqual([at])
        if (code) expect(codesOf(data)[at]).toBe(code)
      }
      const body = { action: 'delete', filter }
      const { data } = expectRefusal(await server.anonymous.post(`${base}/batch-by-filter`, body), 400)
      expect(Object.keys(data)).toEqual([at])
      expect(await server.dump(base)).toEqual(before)
    })

  for (const text of [
    '',
    '[',
    '[["name","==","x"]',
    'name==x',
    '[["rank","==",NaN]]',
    '[["rank","==",1e999]]',
    "[['name','==','x']]",
    '%5B%5D',
  ])
    test(`[DB-FILTER-10] ${JSON.stringify(text)}`, async () => {
      expectRefusal(await server.anonymous.get(base + query({ filter: text })), 400, 'filter')
      expectRefusal(await server.anonymous.get(base + query({ orFilter: text })), 400, 'orFilter')
    })

  test('[DB-FILTER-11] orFilter accepts five conditions and refuses six', async () => {
    const conditions = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ['id', '==', id])
    const five = await server.anonymous.get(base + query({ orFilter: conditions.slice(0, 5) }))
    expect(five.body.items.map(({ id }: { id: string }) => id)).toEqual([...'abcde'])
    for (const path of [base, `${base}/count`, `${base}/search`])
      expectRefusal(await server.anonymous.get(path + query({ orFilter: conditions, q: 'x' })), 400, 'orFilter')
    expectRefusal(
      await server.anonymous.post(`${base}/batch-by-filter`, { action: 'delete', orFilter: conditions }),
      400,
      'orFilter',
    )
    expect((await server.service.get(`${base}/count`)).body.total).toBe(6)
  })

  test('[DB-FILTER-8, DB-FILTER-9] an invalid tuple of orFilter is named', async () => {
    const { data } = expectRefusal(
      await server.anonymous.get(
        base +
          query({
            orFilter: [
              ['id', '==', 'a'],
              ['nope', '==', 1],
            ],
          }),
      ),
      400,
    )
    expect(codesOf(data)).toEqual({ 'orFilter[1]': 'unknown' })
  })

  test('[DB-FILTER-8] a hidden field and an unknown one get the same error', async () => {
    for (const condition of [
      ['==', 's1'],
      ['==', 5],
      ['contains', 's'],
      ['in', ['s1']],
      ['==', null],
    ]) {
      const [hidden, unknown] = await Promise.all(
        ['secret', 'secreu'].map((field) => server.anonymous.get(base + query({ filter: [[field, ...condition]] }))),
      )
      expect(hidden?.text.replaceAll('secret', 'X')).toBe(unknown?.text.replaceAll('secreu', 'X') as string)
    }
    const service = await server.service.get(base + query({ filter: [['secret', '==', 's1']] }))
    expect(service.body.items.map(({ id }: { id: string }) => id)).toEqual(['a'])
  })
})
