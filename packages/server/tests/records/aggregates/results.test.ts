/** GET {base}/aggregate: keys, measures, conditions, order, limits, search and instances. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { runScenarios, type Scenario } from '../../harness/records/scenarios.ts'
import { describeServer } from '../../harness/server.ts'

const orders = '/api/db/shared/tables/orders'
const loose = '/api/db/shared/tables/loose'
const texts = '/api/db/shared/tables/texts'

const config = {
  databases: {
    shared: {
      tables: {
        orders: {
          schema: {
            status: { type: 'string', enum: ['open', 'paid'] },
            amount: { type: 'number' },
            userId: { type: 'string' },
            isGift: { type: 'boolean' },
            placedAt: { type: 'datetime' },
            note: { type: 'text' },
          },
          search: ['note'],
          access: open,
        },
        loose: { access: open },
        texts: { schema: { body: { type: 'text' }, n: { type: 'number' } }, access: open },
      },
    },
    space: {
      instance: true,
      access: () => true,
      tables: { items: { schema: { n: { type: 'number' } }, access: open } },
    },
  },
} as const

const order = (
  id: string,
  status: string | null,
  amount: number | null,
  userId: string,
  placedAt: string,
  rest = {},
) => ({
  id,
  status,
  amount,
  userId,
  placedAt,
  ...rest,
})

const rows = [
  order('a', 'open', 10, 'u1', '2026-03-28T22:30:00Z', { isGift: true, note: 'red shoes' }),
  order('b', 'paid', 2.5, 'u1', '2026-03-28T23:30:00Z', { isGift: false, note: 'blue shoes' }),
  order('c', 'paid', 30, 'u2', '2026-03-29T21:59:59.999Z', { note: 'green hat' }),
  order('d', 'paid', null, 'u2', '2026-03-29T22:00:00Z', { isGift: true, note: 'red hat' }),
  order('e', null, 2 ** 53 - 1, 'u3', '2026-10-25T23:00:00Z', { note: '' }),
]

const at = (
  name: string,
  params: Readonly<Record<string, unknown>>,
  groups: readonly unknown[],
  truncated = false,
): Scenario => ({
  name,
  path: `${orders}/aggregate`,
  query: { measures: { n: 'count' }, ...params },
  status: 200,
  json: { groups, truncated },
})

describeServer('aggregates', { config }, (server) => {
  beforeAll(async () => {
    expect((await server.service.post(`${orders}/batch`, { inserts: rows })).status).toBe(200)
  })

  runScenarios(
    server,
    [orders],
    [
      at('[DB-AGG-1] without keys there is one group', {}, [{ n: 5 }]),
      at('[DB-AGG-1] fields is ignored', { fields: 'nope' }, [{ n: 5 }]),
      at('[DB-AGG-1] also of no rows', { filter: [['amount', '<', 0]] }, [{ n: 0 }]),
      at(
        '[DB-AGG-1] with keys there are no groups of no rows',
        { group: ['status'], filter: [['amount', '<', 0]] },
        [],
      ),
      at(
        '[DB-AGG-2] measures over values that are not null',
        {
          filter: [['status', '==', 'paid']],
          measures: {
            n: 'count',
            total: { sum: 'amount' },
            mean: { avg: 'amount' },
            least: { min: 'amount' },
            last: { max: 'placedAt' },
            first: { min: 'userId' },
            buyers: { countDistinct: 'userId' },
            amounts: { countDistinct: 'amount' },
            gifts: { countDistinct: 'isGift' },
          },
        },
        [
          {
            ...{ n: 3, total: 32.5, mean: 16.25, least: 2.5, last: '2026-03-29T22:00:00.000Z', first: 'u1' },
            ...{ buyers: 2, amounts: 2, gifts: 2 },
          },
        ],
      ),
      at(
        '[DB-AGG-2] of nothing the sum is 0, the others are null, and counts are 0',
        {
          filter: [['id', '==', 'd']],
          measures: {
            sum: { sum: 'amount' },
            avg: { avg: 'amount' },
            min: { min: 'amount' },
            max: { max: 'amount' },
            distinct: { countDistinct: 'amount' },
          },
        },
        [{ sum: 0, avg: null, min: null, max: null, distinct: 0 }],
      ),
      at(
        '[DB-AGG-16] sums of integers are exact',
        { filter: [['amount', '>', 2.5]], measures: { s: { sum: 'amount' } } },
        [{ s: 2 ** 53 - 1 + 40 }],
      ),
      at('[DB-AGG-3] rows without a value are a group of their own, first', { group: ['status'] }, [
        { status: null, n: 1 },
        { status: 'open', n: 1 },
        { status: 'paid', n: 3 },
      ]),
      at(
        '[DB-AGG-3] booleans, numbers, datetimes and ids are keys',
        { group: ['isGift', 'amount', 'placedAt', 'id'] },
        [
          { isGift: null, amount: 30, placedAt: '2026-03-29T21:59:59.999Z', id: 'c', n: 1 },
          { isGift: null, amount: 2 ** 53 - 1, placedAt: '2026-10-25T23:00:00.000Z', id: 'e', n: 1 },
          { isGift: false, amount: 2.5, id: 'b' },
          { isGift: true, amount: null, id: 'd' },
          { isGift: true, amount: 10, id: 'a' },
        ],
      ),
      at('[DB-AGG-4] days are in UTC by default', { group: [{ day: 'placedAt' }] }, [
        { placedAt: '2026-03-28', n: 2 },
        { placedAt: '2026-03-29', n: 2 },
        { placedAt: '2026-10-25', n: 1 },
      ]),
      at(
        '[DB-AGG-4] a local day on which daylight saving time begins ends an hour early',
        { group: [{ day: 'placedAt', tz: 'Europe/Berlin', as: 'day' }] },
        [
          { day: '2026-03-28', n: 1 },
          { day: '2026-03-29', n: 2 },
          { day: '2026-03-30', n: 1 },
          { day: '2026-10-26', n: 1 },
        ],
      ),
      at(
        '[DB-AGG-4] hours, weeks, months and years have the names of local time',
        {
          filter: [['id', 'in', ['b', 'c']]],
          group: [
            { hour: 'placedAt', tz: 'Europe/Berlin', as: 'hour' },
            { week: 'placedAt', tz: 'Europe/Berlin', as: 'week' },
            { month: 'placedAt', tz: 'Pacific/Kiritimati', as: 'month' },
            { year: 'placedAt', tz: '-03:00', as: 'year' },
          ],
        },
        [
          { hour: '2026-03-29T00', week: '2026-03-23', month: '2026-03', year: '2026', n: 1 },
          { hour: '2026-03-29T23', week: '2026-03-23', month: '2026-03', year: '2026', n: 1 },
        ],
      ),
      at(
        '[DB-AGG-5] buckets are named by their lower bounds',
        { group: [{ bucket: 'amount', width: 25, as: 'from' }] },
        [
          { from: null, n: 1 },
          { from: 0, n: 2 },
          { from: 25, n: 1 },
          { from: Math.floor((2 ** 53 - 1) / 25) * 25, n: 1 },
        ],
      ),
      at(
        '[DB-AGG-6] conditions and order by the names of keys and measures',
        {
          group: ['userId'],
          measures: { n: 'count', total: { sum: 'amount' } },
          having: [
            ['n', '>', 1],
            ['userId', 'in', ['u1', 'u2', 'u3']],
          ],
          sort: 'total:desc',
        },
        [
          { userId: 'u2', n: 2, total: 30 },
          { userId: 'u1', n: 2, total: 12.5 },
        ],
      ),
      at('[DB-AGG-6] equal groups are ordered by their keys', { group: ['userId'], sort: 'n:desc,userId:desc' }, [
        { userId: 'u2', n: 2 },
        { userId: 'u1', n: 2 },
        { userId: 'u3', n: 1 },
      ]),
      at(
        '[DB-AGG-6] a group without a mean matches no comparison with it',
        {
          group: ['id'],
          measures: { mean: { avg: 'amount' } },
          having: [['mean', '!=', 10]],
          sort: 'mean',
          limit: 1,
        },
        [{ id: 'b', mean: 2.5 }],
        true,
      ),
      at(
        '[DB-AGG-9] a limit leaves out the other groups and says so',
        { group: ['userId'], limit: 2 },
        [{ userId: 'u1' }, { userId: 'u2' }],
        true,
      ),
      at('[DB-AGG-9] a limit above the maximum is clamped', { group: ['userId'], limit: 100000 }, [
        { userId: 'u1' },
        { userId: 'u2' },
        { userId: 'u3' },
      ]),
      at('[DB-AGG-12] a search restricts the rows', { q: 're', group: ['userId'] }, [
        { userId: 'u1', n: 1 },
        { userId: 'u2', n: 1 },
      ]),
      at('[DB-AGG-12] with a filter', { q: 'shoes', filter: [['status', '==', 'paid']], group: ['id'] }, [
        { id: 'b', n: 1 },
      ]),
      at('[DB-AGG-12] a text without words finds nothing', { q: '?!' }, [{ n: 0 }]),
      at(
        '[DB-AGG-8, DB-FILTER-13] both groups of filters',
        {
          filter: [['status', '!=', null]],
          orFilter: [
            ['id', '==', 'a'],
            ['id', '==', 'e'],
          ],
        },
        [{ n: 1 }],
      ),
    ],
  )

  test('[DB-AGG-1] the members of a group are its keys and measures, in the order of the request', async () => {
    const group = ['status', { day: 'placedAt', as: 'day' }]
    const params = { group, measures: { z: 'count', a: { sum: 'amount' } }, limit: 1 }
    const { text } = await server.anonymous.get(`${orders}/aggregate${query(params)}`)
    expect(text).toBe(`{"groups":[{"status":null,"day":"2026-10-25","z":1,"a":${2 ** 53 - 1}}],"truncated":true}`)
  })

  test('[DB-AGG-1] an equal result has an equal ETag, and is 304', async () => {
    const path = `${orders}/aggregate${query({ measures: { n: 'count' } })}`
    const etag = (await server.anonymous.get(path)).headers.get('etag') ?? ''
    expect((await server.anonymous.get(path, { 'if-none-match': etag })).status).toBe(304)
  })

  test('[DB-AGG-7] undeclared fields group by text, number and boolean', async () => {
    const inserts = [1, '1', true, null, 1, { a: 1 }, [1], false].map((v) => ({ v }))
    expect((await server.service.post(`${loose}/batch`, { inserts })).status).toBe(200)
    const request = async (params: object) =>
      (await server.anonymous.get(`${loose}/aggregate${query({ measures: { n: 'count' }, ...params })}`)).body.groups
    expect(await request({ group: ['v'] })).toEqual([
      { v: null, n: 3 },
      { v: false, n: 1 },
      { v: true, n: 1 },
      { v: 1, n: 2 },
      { v: '1', n: 1 },
    ])
    expect(await request({ group: ['v'], having: [['v', 'in', ['1', true]]] })).toEqual([
      { v: true, n: 1 },
      { v: '1', n: 1 },
    ])
    const measures = { d: { countDistinct: 'v' }, s: { sum: 'v' }, m: { max: 'v' }, x: { sum: 'none' } }
    expect(await request({ measures })).toEqual([{ d: 4, s: 2, m: 1, x: 0 }])
  })

  test('[DB-AGG-9] long keys end a result early', async () => {
    const body = (at: number): string => `${at}`.repeat(300_000)
    for (let at = 1; at <= 5; at++)
      expect((await server.service.post(texts, { body: body(at), n: at })).status).toBe(201)
    const request = async (params: object) =>
      (await server.anonymous.get(`${texts}/aggregate${query({ measures: { n: 'count' }, ...params })}`)).body
    const { groups, truncated } = await request({ group: ['body'] })
    expect(groups).toEqual([1, 2, 3].map((at) => ({ body: body(at), n: 1 })))
    expect(truncated).toBe(true)
    const sorted = await request({ group: ['n'], measures: { last: { max: 'body' } }, sort: 'last:desc' })
    expect(sorted.groups.map(({ n }: { n: number }) => n)).toEqual([5, 4, 3])
    expect(await request({ group: ['body'], having: [['body', '>=', '5']] })).toEqual({
      groups: [{ body: body(5), n: 1 }],
      truncated: false,
    })
  })

  test('[DB-AGG-16] a sum beyond the range of numbers is refused', async () => {
    const inserts = [1e308, 1.5e308].map((n) => ({ n }))
    expect((await server.service.post(`${texts}/batch`, { inserts })).status).toBe(200)
    for (const kind of ['sum', 'avg']) {
      const { status, body } = await server.anonymous.get(
        `${texts}/aggregate${query({ measures: { s: { [kind]: 'n' } }, filter: [['n', '>', 1e300]] })}`,
      )
      expect([status, Object.keys(body.data)]).toEqual([400, ['measures']])
    }
    const each = await server.anonymous.get(
      `${texts}/aggregate${query({ group: ['n'], measures: { s: { avg: 'n' } }, filter: [['n', '>', 1e300]] })}`,
    )
    expect(each.body.groups).toEqual([
      { n: 1e308, s: 1e308 },
      { n: 1.5e308, s: 1.5e308 },
    ])
  })

  describe('in instances', () => {
    const items = (instance: string): string => `/api/db/space/${instance}/tables/items`
    const total = async (instance: string) =>
      (
        await server.anonymous.get(
          `${items(instance)}/aggregate${query({ measures: { n: 'count', s: { sum: 'n' } } })}`,
        )
      ).body.groups

    test('[DB-AGG-17] each has its own rows, and one that was never written has none', async () => {
      for (const n of [1, 2]) expect((await server.service.post(items('one'), { n })).status).toBe(201)
      expect((await server.service.post(items('two'), { n: 10 })).status).toBe(201)
      expect(await total('one')).toEqual([{ n: 2, s: 3 }])
      expect(await total('two')).toEqual([{ n: 1, s: 10 }])
      expect(await total('three')).toEqual([{ n: 0, s: 0 }])
      if (server.settings().databaseUrl === null)
        expect(readdirSync(`${server.dataFolder}/instances/space`, { recursive: true }).join()).not.toContain('three')
      expect((await server.service.post(items('three'), { n: 7 })).status).toBe(201)
      expect(await total('three')).toEqual([{ n: 1, s: 7 }])
    })
  })
})
