/**
 * Queries reveal nothing of what the caller may not read: two worlds that agree on the caller's records and shown
 * fields, and differ in denied records and hidden values, give the same responses, to the byte.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { type Answer, type Client, query } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

type Auth = { id: string } | null
const access = { read: (auth: Auth) => auth !== null && { ownerId: auth.id } }
const ownerId = { type: 'string' } as const
// biome-ignore lint/suspicious/noExplicitAny: the types of expressions have tests of their own.
type Fields = any

const config = {
  databases: {
    worlds: {
      instance: true,
      access: () => true,
      tables: {
        people: {
          schema: {
            ownerId,
            name: { type: 'string' },
            level: { type: 'number' },
            secret: { type: 'string' },
            home: { type: 'geo', index: true },
            next: { type: 'number', computed: (f: Fields) => f.level.plus(1) },
            hint: { type: 'string', computed: (f: Fields) => f.secret.upper() },
          },
          hidden: ['secret', 'home', 'hint'],
          access,
        },
        posts: {
          schema: {
            ownerId,
            title: { type: 'string' },
            kind: { type: 'string' },
            n: { type: 'number' },
            at: { type: 'datetime' },
            location: { type: 'geo', index: true },
            salary: { type: 'number' },
            double: { type: 'number', computed: (f: Fields) => f.n.times(2) },
            margin: { type: 'number', computed: (f: Fields) => f.n.minus(f.salary) },
            authorId: { type: 'string', references: 'people' },
          },
          hidden: ['salary', 'margin'],
          indexes: [{ fields: ['ownerId', 'n'] }],
          search: [{ field: 'title', weight: 2 }],
          searchOptions: { typos: true },
          access,
        },
        notes: { schema: { postId: { type: 'string', references: 'posts' } } },
        comments: {
          schema: {
            ownerId,
            text: { type: 'string' },
            n: { type: 'number' },
            postId: { type: 'string', references: 'posts' },
          },
          indexes: [{ fields: ['postId', 'n'] }],
          access,
        },
      },
    },
  },
} as const

const time = { createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-01T00:00:00.000Z' }
type Rows = readonly Readonly<Record<string, unknown>>[]
type World = Readonly<Record<'people' | 'posts' | 'comments', Rows>>

const own: World = {
  people: [
    { id: 'ann', ownerId: 'u', name: 'Ann', level: 1 },
    { id: 'bob', ownerId: 'u', name: 'Bob', level: 2 },
  ],
  posts: [
    {
      id: 'p1',
      ownerId: 'u',
      title: 'paris',
      kind: 'x',
      n: 1,
      at: '2026-01-05T00:00:00Z',
      location: [13.4, 52.5],
      authorId: 'ann',
    },
    {
      id: 'p2',
      ownerId: 'u',
      title: 'berlin',
      kind: 'x',
      n: 2.5,
      at: '2026-02-11T23:59:59Z',
      location: [13.5, 52.5],
      authorId: 'eve',
    },
    { id: 'p3', ownerId: 'u', title: 'paris berlin', kind: 'y', n: null, at: null, location: null, authorId: null },
  ],
  comments: [
    { id: 'c1', ownerId: 'u', text: 'red', n: 1, postId: 'p1' },
    { id: 'c2', ownerId: 'u', text: 'blue', n: 5, postId: 'p1' },
  ],
}
/** One denied record, which a record of the caller refers to; nothing is in hidden fields. */
const sparse: World = { people: [{ id: 'eve', ownerId: 'v', name: 'Eve', level: 3 }], posts: [], comments: [] }
/** Denied records before, between and after those of the caller, by every key; values in every hidden field. */
const crowded: World = {
  people: [
    { id: 'eve', ownerId: 'v', name: 'Ann', level: 1, secret: 'cipher', home: [13.4, 52.5] },
    { id: 'mal', ownerId: null, name: 'Mal', level: 1e308, secret: 'cipher' },
  ],
  posts: [
    {
      id: 'o1',
      ownerId: 'v',
      title: 'paris',
      kind: 'x',
      n: 1e308,
      at: '2026-01-06T00:00:00Z',
      location: [13.4, 52.5],
      authorId: 'ann',
    },
    {
      id: 'p15',
      ownerId: 'v',
      title: 'prais',
      kind: 'a',
      n: -1e308,
      at: '0000-01-01T00:00:00Z',
      location: [13.41, 52.5],
      authorId: 'bob',
    },
    {
      id: 'q1',
      ownerId: null,
      title: 'parma',
      kind: 'z',
      n: 2,
      at: '9999-12-31T23:59:59Z',
      location: [-170, -80],
      authorId: 'eve',
    },
  ],
  comments: [
    { id: 'c0', ownerId: 'v', text: 'green', n: 9, postId: 'p1' },
    { id: 'c15', ownerId: 'v', text: 'red', n: 3, postId: 'p2' },
    { id: 'c3', ownerId: null, text: 'blue', n: -1, postId: 'p3' },
    { id: 'c4', ownerId: 'u', text: 'of a denied post', n: 0, postId: 'o1' },
  ],
}
const hiddenValues = {
  people: { secret: 'cipher', home: [2.35, 48.85] },
  posts: { salary: 1e308 },
}

const near = (distance: string) => ['location', 'near', [13.4, 52.5, distance]]
const all = [
  [-180, -90],
  [180, 90],
]
const n = { n: 'count' }
const sums = { n: 'count', s: { sum: 'n' }, lo: { min: 'n' }, hi: { max: 'n' }, d: { countDistinct: 'n' } }

type Probe = readonly [table: string, path: string, parameters: Readonly<Record<string, unknown>>]
const list = (parameters: Probe[2], table = 'posts'): Probe => [table, '', parameters]
const count = (...filter: readonly unknown[]): Probe => ['posts', '/count', { filter }]
const aggregate = (parameters: Probe[2], table = 'posts'): Probe => [table, '/aggregate', parameters]
const search = (parameters: Probe[2]): Probe => ['posts', '/search', parameters]
const facet = (q: string, parameters: Probe[2] = {}): Probe =>
  aggregate({ q, group: ['kind'], measures: n, ...parameters })

const probes: Readonly<Record<string, readonly Probe[]>> = {
  include: [
    list({ include: { author: {} } }),
    list({ include: { author: { where: [['level', '>', 2]] } } }),
    list({ include: { comments: { sort: 'n:desc', limit: 1 } } }),
    list({ include: { comments: { where: [['text', '==', 'green']] } } }),
    list({ include: { comments: { include: { post: { include: { author: {} } } } } } }),
    list({ include: { post: {} }, filter: [['id', '!=', 'c4']] }, 'comments'),
    ['posts', '/p2', { include: { author: {}, comments: {} } }],
  ],
  filters: [
    list({ filter: [['ownerId', '!=', 'u']] }),
    list({
      orFilter: [
        ['ownerId', '==', null],
        ['kind', 'in', ['a', 'z']],
      ],
    }),
    list({ filter: [['author.name', '==', 'Ann']] }),
    list({ filter: [['author.level', 'not in', [1, 2]]] }),
    list({ filter: [['comments', 'none', []]] }),
    list({ filter: [['comments', 'some', [['n', '>', 5]]]] }),
    list({ filter: [['posts', 'some', [['comments', 'some', [['text', '==', 'green']]]]]] }, 'people'),
  ],
  'group keys': [
    aggregate({ group: ['kind'], measures: n }),
    aggregate({ group: ['ownerId', 'authorId'], measures: n }),
    aggregate({ group: [{ month: 'at', tz: 'Europe/Berlin' }], measures: n }),
    aggregate({ group: [{ bucket: 'n', width: 2, as: 'from' }], measures: n, limit: 1 }),
    aggregate({ group: ['title'], measures: n, filter: [['comments', 'some', []]] }),
  ],
  having: [
    aggregate({ group: ['kind'], measures: n, having: [['n', '>', 2]] }),
    aggregate({ group: ['kind'], measures: sums, having: [['s', '>', 1e300]] }),
    aggregate({ group: ['kind'], measures: sums, having: [['lo', '<', 0]], sort: 'hi:desc' }),
    aggregate({ group: ['kind'], measures: n, having: [['kind', 'in', ['a', 'z']]] }),
  ],
  computed: [
    list({ filter: [['double', '>', 3]], sort: 'double:desc' }),
    list({ include: { author: { fields: ['next'] } }, filter: [['author.next', '>', 1]] }),
    aggregate({ measures: { s: { sum: 'double' }, hi: { max: 'double' }, lo: { min: 'double' } } }),
    aggregate({ group: ['double'], measures: n, having: [['double', '>', 4]] }),
    aggregate({ group: ['next'], measures: n }, 'people'),
  ],
  geo: [
    list({ filter: [near('20000km')], sort: 'location.distance:asc', limit: 1 }),
    list({ filter: [near('20000km')], sort: 'location.distance:desc', after: '', limit: 1 }),
    list({ filter: [['location', 'within', all]] }),
    list({ filter: [['comments', 'some', [['post.location', 'near', [13.4, 52.5, '1km']]]]] }),
    // Of a table that is denied to all, a condition is true of no record, or of every one.
    list({ filter: [near('20000km')], orFilter: [['notes', 'some', []]], sort: 'location.distance:asc' }),
    list({ orFilter: [near('1km'), ['notes', 'none', []]], sort: 'location.distance:desc' }),
    count(near('5km')),
    search({ q: 'paris', filter: [near('20000km')] }),
    aggregate({ group: ['kind'], measures: n, filter: [near('20000km')] }),
  ],
  facets: [
    facet('paris'),
    facet('prais'),
    facet('par', { having: [['n', '>', 1]] }),
    facet('parma'),
    search({ q: 'prais', include: { comments: { count: true } } }),
  ],
  counts: [
    count(),
    count(['author.level', '>', 2]),
    count(['comments', 'some', [['n', '<', 0]]]),
    list({ limit: 1, offset: 2 }),
    list({ include: { comments: { count: true, limit: 0 } } }),
    list({ include: { posts: { count: true, where: [['kind', '==', 'a']] } } }, 'people'),
  ],
}

/** Errors that name a field: of a hidden one they are those of an unknown one. */
const refusals: readonly (readonly [table: string, hidden: string, probe: (name: string) => Probe])[] = [
  ['posts', 'salary', (name) => list({ filter: [[name, '>', 0]] })],
  ['posts', 'margin', (name) => list({ sort: `${name}:desc` })],
  ['posts', 'margin', (name) => count([name, '<', 0])],
  ['posts', 'salary', (name) => aggregate({ group: [name], measures: n })],
  ['posts', 'margin', (name) => aggregate({ measures: n, having: [[name, '>', 1]] })],
  ['posts', 'salary', (name) => facet('paris', { measures: { s: { sum: name } } })],
  ['people', 'secret', (name) => list({ filter: [[`author.${name}`, '==', 'cipher']] })],
  ['people', 'hint', (name) => list({ include: { author: { fields: [name] } } })],
  ['people', 'hint', (name) => list({ include: { author: { where: [[name, '==', 'CIPHER']] } } })],
  ['people', 'home', (name) => list({ filter: [[`author.${name}`, 'near', [2.35, 48.85, '1km']]] })],
  ['people', 'home', (name) => list({ filter: [[name, 'within', all]] }, 'people')],
]

describeServer('queries in two worlds', { config }, (server) => {
  let user: Client
  const inWorld = (world: string, client: Client, [table, path, parameters]: Probe): Promise<Answer> =>
    client.get(`/api/db/worlds/${world}/tables/${table}${path}${query({ ...parameters })}`)

  async function insert(world: string, table: keyof World, rows: Rows): Promise<void> {
    const answer = await server.service.post(`/api/db/worlds/${world}/tables/${table}/batch`, {
      inserts: rows.map((row) => ({ ...row, ...time })),
    })
    expect(answer.status, answer.text).toBe(200)
  }

  beforeAll(async () => {
    user = server.as('u')
    for (const table of ['people', 'posts', 'comments'] as const) {
      await insert('sparse', table, [...sparse[table], ...own[table]])
      const hidden = table === 'comments' ? {} : hiddenValues[table]
      await insert('crowded', table, [...crowded[table], ...own[table].map((row) => ({ ...row, ...hidden }))])
    }
  })

  const cases = Object.entries(probes).flatMap(([channel, some]) => some.map((probe) => [channel, probe] as const))

  test('[DB-INC-5] there are more than 40 probes, in every channel', () => {
    expect(cases.length + refusals.length).toBeGreaterThan(50)
    for (const [, some] of Object.entries(probes)) expect(some.length).toBeGreaterThan(3)
  })

  test.each(cases)('[DB-INC-5, DB-REL-3, DB-AGG-8, DB-GEO-12, DB-COMPUTED-5] %s: %j', async (_, probe) => {
    const expected = await inWorld('sparse', user, probe)
    expect(expected.status, expected.text).toBe(200)
    // The result for the service key, which has all rows, is another one, cached or not.
    await inWorld('crowded', server.service, probe)
    for (let times = 0; times < 2; times++) {
      const answer = await inWorld('crowded', user, probe)
      expect([answer.status, answer.text]).toEqual([200, expected.text])
      // The tag of a single record is the version of its row.
      if (!/^\/p\d/.test(probe[1])) expect(answer.headers.get('etag')).toBe(expected.headers.get('etag'))
    }
  })

  describe('errors', () => {
    test.each(refusals)('[DB-TABLE-11, DB-COMPUTED-5, DB-GEO-12] %s.%s %#', async (_, name, probe) => {
      const answer = await inWorld('crowded', user, probe(name))
      expectRefusal(answer, 400)
      const unknown = 'x'.repeat(name.length)
      expect(answer.text.replaceAll(name, unknown)).toBe((await inWorld('crowded', user, probe(unknown))).text)
      expect((await inWorld('sparse', user, probe(name))).text).toBe(answer.text)
    })

    test.each(['o1', 'p15', 'q1'])('[DB-INC-5] the denied record %s is one that does not exist', async (id) => {
      for (const parameters of [{}, { include: { author: {} } }]) {
        const denied = await inWorld('crowded', user, ['posts', `/${id}`, parameters])
        const absent = await inWorld('sparse', user, ['posts', `/${id}`, parameters])
        expectRefusal(denied, 404)
        expect(denied.text).toBe(absent.text)
      }
    })
  })
})
