/**
 * Aggregates reveal nothing of rows and fields that the caller may not read: every probe gets the same response, to the
 * byte, from a table with denied rows and hidden values as from one that has only the caller's rows.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { type Answer, type Client, query } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const mixed = '/api/db/shared/tables/mixed'
const bare = '/api/db/shared/tables/bare'
const locked = '/api/db/shared/tables/locked'
const teams = '/api/db/shared/tables/teams'

type Auth = { id: string } | null
const schema = {
  ownerId: { type: 'string' },
  kind: { type: 'string' },
  n: { type: 'number' },
  flag: { type: 'boolean' },
  at: { type: 'datetime' },
  body: { type: 'text' },
  secret: { type: 'string' },
  salary: { type: 'number' },
} as const
const table = {
  schema,
  hidden: ['secret', 'salary'],
  search: ['body'],
  access: { read: (auth: Auth) => auth !== null && { ownerId: auth.id } },
}
const config = {
  databases: {
    shared: {
      tables: {
        mixed: table,
        bare: table,
        locked: { schema },
        teams: { schema: { name: { type: 'string' } }, access: { read: () => ({ name: 'open' }) } },
      },
    },
  },
}

const own = [
  { id: 'a', ownerId: 'u', kind: 'x', n: 1, flag: true, at: '2026-01-05T00:00:00Z', body: 'red fox' },
  { id: 'b', ownerId: 'u', kind: 'x', n: 2.5, flag: false, at: '2026-01-11T23:59:59Z', body: 'blue fox' },
  { id: 'c', ownerId: 'u', kind: 'y', n: null, flag: null, at: null, body: null },
  { id: 'd', ownerId: 'u', kind: null, n: -3, flag: true, at: '2026-03-29T01:30:00Z', body: 'red hen' },
]
/** Rows of another user: other keys, extreme measures, sums out of range, long texts, words that are searched for. */
const denied = [
  { id: 'e', ownerId: 'v', kind: 'x', n: 1e308, flag: false, at: '2026-01-06T00:00:00Z', body: 'red fox' },
  { id: 'f', ownerId: 'v', kind: 'x', n: 1e308, flag: true, at: '0000-01-01T00:00:00Z', body: 'fox' },
  { id: 'g', ownerId: 'v', kind: 'a', n: -1e308, at: '9999-12-31T23:59:59Z', body: 'z'.repeat(900_000) },
  { id: 'h', ownerId: 'v', kind: 'é'.repeat(450_000), n: 5e-324 },
  { id: 'i', ownerId: null, kind: 'x', n: 7, at: '2026-01-05T00:00:00Z', body: 'hen' },
  { id: 'j', kind: 'y', n: 1 },
]
const hidden = { secret: 'cipher', salary: 1e308 }

const all = {
  n: 'count',
  s: { sum: 'n' },
  m: { avg: 'n' },
  lo: { min: 'n' },
  hi: { max: 'n' },
  d: { countDistinct: 'n' },
}
const count = { n: 'count' }

const probes: readonly (readonly [what: string, params: Readonly<Record<string, unknown>>])[] = [
  ['measures of all rows', { measures: all }],
  ['values as keys', { group: ['kind'], measures: all }],
  ['ids as keys', { group: ['id'], measures: count }],
  ['owners as keys', { group: ['ownerId'], measures: count }],
  ['booleans as keys', { group: ['flag', 'kind'], measures: count }],
  ['texts as keys', { group: ['body'], measures: count }],
  ['the number of groups', { group: ['kind'], measures: count, limit: 3 }],
  ['whether there are more groups', { group: ['kind'], measures: count, limit: 2 }],
  ['days', { group: [{ day: 'at' }], measures: count }],
  ['local weeks', { group: [{ week: 'at', tz: 'Asia/Tokyo' }], measures: count }],
  ['local years', { group: [{ year: 'at', tz: 'America/Lima' }], measures: count }],
  ['buckets', { group: [{ bucket: 'n', width: 0.5, as: 'from' }], measures: all }],
  ['a tiny bucket', { group: [{ bucket: 'n', width: 1e-9, as: 'from' }], measures: count }],
  ['distinct owners', { measures: { d: { countDistinct: 'ownerId' }, k: { countDistinct: 'kind' } } }],
  ['extreme texts', { measures: { lo: { min: 'kind' }, hi: { max: 'kind' }, b: { max: 'body' }, at: { max: 'at' } } }],
  ['a condition that denied rows would meet', { group: ['kind'], measures: count, having: [['n', '>', 2]] }],
  ['a condition on a sum out of range', { group: ['kind'], measures: all, having: [['s', '>', 1e300]] }],
  ['a condition on a key of denied rows', { group: ['kind'], measures: count, having: [['kind', '==', 'a']] }],
  ['an order by measures', { group: ['kind'], measures: all, sort: 's:desc,hi', limit: 1 }],
  ['a filter that names an owner', { filter: [['ownerId', '==', 'v']], measures: all }],
  ['a filter that names the missing owner', { filter: [['ownerId', '==', null]], measures: all }],
  [
    'alternatives',
    {
      orFilter: [
        ['ownerId', '==', 'v'],
        ['n', '>', 1],
      ],
      measures: all,
    },
  ],
  ['a search', { q: 'fox', group: ['kind'], measures: count }],
  ['a search for a word of denied rows', { q: 'hen', measures: all }],
  ['a search by prefix', { q: 'zzz', measures: count }],
]

describeServer('aggregates under rules', { config }, (server) => {
  let user: Client
  beforeAll(async () => {
    user = server.as('u')
    const insert = async (base: string, inserts: readonly object[]) => {
      for (const row of inserts) expect((await server.service.post(base, row)).status).toBe(201)
    }
    await insert(
      mixed,
      [...denied, ...own].map((row) => ({ ...row, ...hidden })),
    )
    await insert(bare, own)
    await insert(locked, own)
    await insert(teams, [{ name: 'open' }, { name: 'closed' }])
  })

  const aggregate = (client: Client, base: string, params: object): Promise<Answer> =>
    client.get(`${base}/aggregate${query({ ...params })}`)

  test.each(probes)('[DB-AGG-8] %s', async (_, params) => {
    const expected = await aggregate(user, bare, params)
    expect(expected.status).toBe(200)
    // The service key's result, which has all rows, is another one, cached or not.
    await aggregate(server.service, mixed, params)
    for (let times = 0; times < 2; times++) {
      const answer = await aggregate(user, mixed, params)
      expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([
        200,
        expected.text,
        expected.headers.get('etag'),
      ])
    }
  })

  describe('hidden fields are unknown', () => {
    test.each([
      ['as a key', (name: string) => ({ group: [name], measures: count })],
      ['as a day', (name: string) => ({ group: [{ day: name }], measures: count })],
      ['as a bucket', (name: string) => ({ group: [{ bucket: name, width: 1 }], measures: count })],
      ['as a sum', (name: string) => ({ measures: { s: { sum: name } } })],
      ['as a distinct value', (name: string) => ({ measures: { s: { countDistinct: name } } })],
      ['in a condition', (name: string) => ({ measures: count, having: [[name, '>', 1]] })],
      ['in the order', (name: string) => ({ measures: count, sort: name })],
      ['in a filter', (name: string) => ({ measures: count, filter: [[name, '==', 'cipher']] })],
    ])('[DB-AGG-8, DB-TABLE-11] %s', async (_, params) => {
      for (const name of ['secret', 'salary']) {
        const wrong = expectRefusal(await aggregate(user, mixed, params(name)), 400)
        const unknown = expectRefusal(await aggregate(user, mixed, params('absent')), 400)
        expect(JSON.stringify(wrong).replaceAll(name, 'absent')).toBe(JSON.stringify(unknown))
      }
      expect(
        (await aggregate(server.service, mixed, { group: ['secret'], measures: { s: { max: 'salary' } } })).body.groups,
      ).toEqual([{ secret: 'cipher', s: 1e308 }])
    })
  })

  test('[DB-AGG-8] a table that the caller may not read is refused before its parameters are validated', async () => {
    for (const params of [{ measures: count }, { measures: '{' }, { group: ['absent'] }]) {
      expectRefusal(await aggregate(server.anonymous, locked, params), 401)
      expectRefusal(await aggregate(user, locked, params), 403)
      expectRefusal(await aggregate(server.anonymous, mixed, params), 401)
    }
    expectRefusal(await aggregate(server.service, '/api/db/shared/tables/absent', { measures: count }), 404)
  })

  test('[DB-AGG-8] anonymous callers get the rows that their rule permits', async () => {
    expect((await aggregate(server.anonymous, teams, { group: ['name'], measures: count })).body.groups).toEqual([
      { name: 'open', n: 1 },
    ])
  })

  test('[DB-AGG-14] a cached result is that of its rule, not of its request', async () => {
    const params = { group: ['ownerId'], measures: count }
    for (let times = 0; times < 2; times++) {
      expect((await aggregate(server.as('v'), mixed, params)).body.groups).toEqual([{ ownerId: 'v', n: 4 }])
      expect((await aggregate(user, mixed, params)).body.groups).toEqual([{ ownerId: 'u', n: 4 }])
      expect((await aggregate(server.as('w'), mixed, params)).body.groups).toEqual([])
      expect((await aggregate(server.service, mixed, params)).body.groups.length).toBe(3)
    }
  })
})
