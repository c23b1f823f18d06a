/**
 * Geo conditions reveal nothing of records and fields that the caller may not read: every probe gets the same response
 * from a table with denied records and hidden spots as from one with the caller's records alone, and a hidden field
 * is unknown.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { type Client, query } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const tables = '/api/db/shared/tables'
const mixed = `${tables}/mixed`
const bare = `${tables}/bare`

type Auth = { id: string } | null
const table = {
  schema: {
    ownerId: { type: 'string' },
    name: { type: 'string' },
    location: { type: 'geo', index: true },
    home: { type: 'geo', index: true },
  },
  hidden: ['home'],
  search: ['name'],
  access: {
    read: (auth: Auth) => auth !== null && { ownerId: auth.id },
    insert: true,
    update: (auth: Auth) => auth !== null && { ownerId: auth.id },
  },
}
const config = { databases: { shared: { tables: { mixed: table, bare: table, locked: { schema: table.schema } } } } }

const home = [2.35, 48.85]
const time = { createdAt: '2026-01-01T00:00:00Z', updatedAt: '2026-01-01T00:00:00Z' }
const own = [
  { id: 'b', ownerId: 'u', name: 'stop', location: [13.4, 52.5], ...time },
  { id: 'd', ownerId: 'u', name: 'stop', location: [13.5, 52.5], ...time },
  { id: 'f', ownerId: 'u', name: 'stop', location: null, ...time },
]
/** Nearer than every record of the caller, at the same location as one, and far away. */
const denied = [
  { id: 'a', ownerId: 'v', name: 'stop', location: [13.4, 52.5], ...time },
  { id: 'c', ownerId: 'v', name: 'stop', location: [13.41, 52.5], ...time },
  { id: 'e', ownerId: null, name: 'stop', location: [-170, -80], ...time },
]
const near = (distance: string) => ['location', 'near', [13.4, 52.5, distance]]
const all = [
  [-180, -90],
  [180, 90],
]

const probes: readonly (readonly [path: string, params: Readonly<Record<string, unknown>>])[] = [
  ['', { filter: [near('20000km')], sort: 'location.distance:asc' }],
  ['', { filter: [near('20000km')], sort: 'location.distance:desc', limit: 1 }],
  ['', { filter: [near('0m')] }],
  ['', { filter: [near('20km')], sort: 'location.distance:asc', offset: 1, limit: 1 }],
  ['', { filter: [['location', 'within', all]] }],
  ['', { orFilter: [near('1m'), ['location', '==', null]], sort: 'location.distance:asc' }],
  [
    '',
    {
      orFilter: [
        ['location', 'within', all],
        ['ownerId', '==', 'v'],
      ],
    },
  ],
  ['/count', { filter: [near('20000km')] }],
  ['/search', { q: 'stop', filter: [near('20000km')] }],
  ['/aggregate', { measures: { n: 'count' }, filter: [near('20000km')] }],
]

describeServer('geo under rules', { config }, (server) => {
  let user: Client
  beforeAll(async () => {
    user = server.as('u')
    const insert = async (base: string, rows: readonly object[]) => {
      for (const row of rows) expect((await server.service.post(base, row)).status).toBe(201)
    }
    await insert(
      mixed,
      [...denied, ...own].map((row) => ({ ...row, home })),
    )
    await insert(bare, own)
  })

  test.each(probes)('[DB-GEO-12] %s %j is the response without denied records', async (path, params) => {
    const expected = await user.get(bare + path + query(params))
    expect(expected.status, expected.text).toBe(200)
    const answer = await user.get(mixed + path + query(params))
    expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([
      200,
      expected.text,
      expected.headers.get('etag'),
    ])
  })

  test('[DB-GEO-12] pages by cursor neither show nor count denied records', async () => {
    const found: string[] = []
    for (let after: string | null = ''; after !== null; ) {
      const params = { filter: [near('20000km')], sort: 'location.distance:asc', after, limit: 1 }
      const { body } = await user.get(mixed + query(params))
      for (const { id, distances, home: hidden } of body.items) {
        found.push(id)
        expect([Object.keys(distances), hidden]).toEqual([['location'], undefined])
      }
      after = body.hasMore ? body.cursor : null
    }
    expect(found).toEqual(['b', 'd'])
  })

  describe('a hidden field is an unknown one', () => {
    const nearHome = (field: string) => ({ filter: [[field, 'near', [...home, '1km']]] })
    const withinAll = (field: string) => ({ filter: [[field, 'within', all]] })
    test.each<[string, (field: string) => Readonly<Record<string, unknown>>]>([
      ['', nearHome],
      ['', withinAll],
      ['/count', nearHome],
      ['/search', (field) => ({ q: 'stop', ...nearHome(field) })],
      ['', (field) => ({ sort: `${field}.distance` })],
      ['', (field) => ({ filter: [near('1km')], sort: `${field}.distance` })],
      ['', (field) => ({ fields: field })],
      ['/aggregate', (field) => ({ measures: { n: 'count' }, ...nearHome(field) })],
    ])('[DB-GEO-12] %s %#', async (path, paramsOf) => {
      const hidden = await user.get(mixed + path + query(paramsOf('home')))
      const unknown = await user.get(mixed + path + query(paramsOf('none')))
      expectRefusal(hidden, 400)
      expect(hidden.text.replaceAll('home', 'none')).toBe(unknown.text)
    })

    test('[DB-GEO-12] in a write', async () => {
      const before = await server.dump(mixed)
      for (const body of [
        { ownerId: 'u', home: [0, 0] },
        { ownerId: 'u', home: [500, 0] },
      ])
        expectRefusal(await user.post(mixed, body), 400, 'unknown')
      expect(await server.dump(mixed)).toEqual(before)
    })

    test('[DB-GEO-12] the service key has its distance', async () => {
      const { body } = await server.service.get(mixed + query(nearHome('home')))
      expect(body.items.map(({ distances }: { distances: object }) => distances)).toEqual(
        Array.from({ length: 6 }, () => ({ home: 0 })),
      )
    })
  })

  test('[DB-GEO-12] without a read rule the request is refused before its conditions are parsed', async () => {
    for (const condition of [near('1km'), ['location', 'near', 'x']])
      expectRefusal(await user.get(`${tables}/locked${query({ filter: [condition] })}`), 403)
  })
})
