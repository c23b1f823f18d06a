/**
 * Random rows and access rules of four related tables with locations, computed and hidden fields and a ranked search:
 * their configuration, and what the oracle has to know of it.
 */
import fc from 'fast-check'
import { and, exists, field as fieldRef, not, or, where } from '../../../../src/access/filter.ts'
import type { OracleOptions } from '../ranked-oracle.ts'
import type { LonLat } from './geo-oracle.ts'
import type { Data, FieldTuple, OracleRelations, Row, Rule, Rules, Value } from './query-oracle.ts'

function buildRule(rule: Rule): object | boolean {
  if (typeof rule === 'boolean') return rule
  if ('all' in rule) return and(...(rule.all.map(buildRule) as object[]))
  if ('any' in rule) return or(...(rule.any.map(buildRule) as object[]))
  if ('none' in rule) return not(buildRule(rule.none) as object)
  if ('tuple' in rule) {
    const [name, op, value] = rule.tuple
    return where(name, op as '==', value as string)
  }
  const values = Object.entries(rule.where).map(([name, value]) => [
    name,
    typeof value === 'object' && value !== null ? fieldRef(value.field) : value,
  ])
  return exists(rule.exists, Object.fromEntries(values))
}

type Auth = { custom: { rules?: Rules } } | null
const ruled = (table: string) => ({ read: (auth: Auth) => buildRule(auth?.custom.rules?.[table] ?? false) })
// biome-ignore lint/suspicious/noExplicitAny: the types of expressions have tests of their own.
type Fields = any
export const searchOptions: OracleOptions = {
  weights: { title: 3, body: 1 },
  typos: true,
  prefix: true,
  substring: false,
}
const text = { type: 'string' } as const
const number = { type: 'number' } as const
const reference = (references: string) => ({ type: 'string', references }) as const

export const config = {
  databases: {
    space: {
      instance: true,
      access: () => true,
      tables: {
        users: {
          schema: {
            name: text,
            level: number,
            secret: text,
            home: { type: 'geo', index: true },
            bossId: reference('users'),
            hint: { type: 'string', computed: (f: Fields) => f.secret.upper() },
            next: { type: 'number', computed: (f: Fields) => f.level.plus(1) },
          },
          hidden: ['secret', 'home', 'hint'],
          access: ruled('users'),
        },
        labels: { access: ruled('labels') },
        posts: {
          schema: {
            title: text,
            body: { type: 'text' },
            score: number,
            at: { type: 'datetime' },
            spot: { type: 'geo', index: true },
            plain: { type: 'geo' },
            double: { type: 'number', computed: (f: Fields) => f.score.times(2) },
            loud: { type: 'string', computed: (f: Fields) => f.title.upper() },
            live: { type: 'boolean' },
            authorId: reference('users'),
            editor_id: reference('users'),
            labelId: reference('labels'),
          },
          indexes: [{ fields: ['authorId', 'score'] }, { fields: ['double'] }],
          search: Object.entries(searchOptions.weights).map(([field, weight]) => ({ field, weight })),
          searchOptions: { typos: true, prefix: true, substring: false },
          access: ruled('posts'),
        },
        comments: {
          schema: { body: text, rank: number, postId: reference('posts'), writer: reference('users') },
          access: ruled('comments'),
        },
      },
    },
  },
}

export const relations: OracleRelations = {
  users: {
    boss: { kind: 'one', target: 'users', by: 'bossId' },
    users: { kind: 'many', target: 'users', by: 'bossId' },
    'posts.authorId': { kind: 'many', target: 'posts', by: 'authorId' },
    'posts.editor_id': { kind: 'many', target: 'posts', by: 'editor_id' },
    comments: { kind: 'many', target: 'comments', by: 'writer' },
  },
  labels: { posts: { kind: 'many', target: 'posts', by: 'labelId' } },
  posts: {
    author: { kind: 'one', target: 'users', by: 'authorId' },
    editor: { kind: 'one', target: 'users', by: 'editor_id' },
    label: { kind: 'one', target: 'labels', by: 'labelId' },
    comments: { kind: 'many', target: 'comments', by: 'postId' },
  },
  comments: {
    post: { kind: 'one', target: 'posts', by: 'postId' },
    writer: { kind: 'one', target: 'users', by: 'writer' },
  },
}

const words = ['', 'a', 'A', 'ab', 'ä', '%', "'", '\u{1F600}', 'paris', 'prais', 'Zürich berlin', 'berlin paris']
const instants = [
  '2025-12-31T23:30:00.000Z',
  '2026-03-29T00:59:59.999Z',
  '2026-03-29T01:00:00.000Z',
  '2026-07-01T12:00:00.000Z',
]
/** No two are as far from a third, unless they are the same. */
const locations: readonly LonLat[] = [
  [13.4, 52.52],
  [13.41, 52.53],
  [13.1, 52.4],
  [9.99, 53.55],
  [180, 0],
  [-180, 0],
  [0, 90],
  [-70.5, -53.1],
]
const pools: Readonly<Record<string, readonly (Value | LonLat)[]>> = {
  text: words,
  number: [-1, 0, 0.5, 1, 2],
  boolean: [true, false],
  datetime: instants,
  location: locations,
  users: ['u0', 'u1', 'u2', 'u3'],
  labels: ['l0', 'l1'],
  posts: ['p0', 'p1', 'p2', 'p3', 'p4', 'p5'],
  comments: [],
}

export type PoolByField = Readonly<Record<string, string>>
interface Fielded {
  /** The pool of each field's values: a type, or a table whose ids they are. Labels have no schema. */
  readonly stored: PoolByField
  readonly computed?: PoolByField
  readonly hidden?: PoolByField
}
const fields: Readonly<Record<string, Fielded>> = {
  users: {
    stored: { name: 'text', level: 'number', bossId: 'users' },
    computed: { next: 'number' },
    hidden: { secret: 'text', home: 'location' },
  },
  labels: { stored: { name: 'text', weight: 'number' } },
  posts: {
    stored: {
      title: 'text',
      body: 'text',
      score: 'number',
      live: 'boolean',
      at: 'datetime',
      spot: 'location',
      plain: 'location',
      authorId: 'users',
      editor_id: 'users',
      labelId: 'labels',
    },
    computed: { double: 'number', loud: 'text' },
  },
  comments: { stored: { body: 'text', rank: 'number', postId: 'posts', writer: 'users' } },
}
export const tables = Object.keys(fields)
export const hidden = { users: ['secret', 'home', 'hint'] }
/** What a caller may name. */
export const shownIn = (table: string): PoolByField => ({ ...fields[table]?.stored, ...fields[table]?.computed })
export const namesIn = (table: string, pool: (pool: string) => boolean): string[] =>
  Object.entries(shownIn(table)).flatMap(([name, of]) => (pool(of) ? [name] : []))

/** The computed fields of a stored row. */
export function computedOf(table: string, { level, secret, score, title }: Row): Row {
  const upper = (value: unknown): string | null => (typeof value === 'string' ? value.toUpperCase() : null)
  if (table === 'users') return { hint: upper(secret), next: typeof level === 'number' ? level + 1 : null }
  if (table === 'posts') return { double: typeof score === 'number' ? score * 2 : null, loud: upper(title) }
  return {}
}

export const valueIn = (pool: string): fc.Arbitrary<Value> => fc.constantFrom(...(pools[pool] as readonly Value[]))
const cellOf = (pool: string): fc.Arbitrary<Value | LonLat> =>
  fc.oneof({ weight: 1, arbitrary: fc.constant(null) }, { weight: 4, arbitrary: valueIn(pool) })

const rowsOf = (table: string, ids: readonly string[]): fc.Arbitrary<Row[]> => {
  const pools = Object.entries({ ...fields[table]?.stored, ...fields[table]?.hidden })
  const row = fc.record(Object.fromEntries(pools.map(([name, pool]) => [name, cellOf(pool)])))
  return fc.tuple(...ids.map((id) => row.map((values) => ({ id, ...values }))))
}

export const data: fc.Arbitrary<Data> = fc.record({
  users: rowsOf('users', pools.users as string[]),
  labels: rowsOf('labels', pools.labels as string[]),
  posts: rowsOf('posts', pools.posts as string[]),
  comments: fc.integer({ min: 0, max: 12 }).chain((count) =>
    rowsOf(
      'comments',
      Array.from({ length: count }, (_, at) => `c${at}`),
    ),
  ),
})

const near = fc.tuple(fc.constantFrom(...locations), fc.constantFrom('0m', '5km', '40km', '300km', '20016km'))
const areas: readonly (readonly LonLat[])[] = [
  [
    [13, 52],
    [14, 53],
  ],
  [
    [-180, -90],
    [180, 90],
  ],
  [
    [8, 52],
    [12, 52],
    [12, 55],
    [13.405, 55],
    [13.405, 51],
    [8, 51],
  ],
]
const locationTuple = (name: string): fc.Arbitrary<FieldTuple> =>
  fc.oneof(
    { weight: 3, arbitrary: near.map(([[lon, lat], distance]): FieldTuple => [name, 'near', [lon, lat, distance]]) },
    { weight: 2, arbitrary: fc.tuple(fc.constant(name), fc.constant('within'), fc.constantFrom(...areas)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant(name), fc.constantFrom('==', '!='), fc.constant(null)) },
  )

export const fieldTuple = (of: PoolByField, leastValues: number): fc.Arbitrary<FieldTuple> =>
  fc.constantFrom(...Object.entries(of)).chain(([name, pool]): fc.Arbitrary<FieldTuple> => {
    if (pool === 'location') return locationTuple(name)
    const isText = !['number', 'boolean', 'datetime'].includes(pool)
    const ops = ['==', '!=', ...(pool === 'boolean' ? [] : ['>', '<='])]
    return fc.oneof(
      { weight: 4, arbitrary: fc.tuple(fc.constant(name), fc.constantFrom(...ops), valueIn(pool)) },
      { weight: 2, arbitrary: fc.tuple(fc.constant(name), fc.constantFrom('==', '!='), fc.constant(null)) },
      {
        weight: 2,
        arbitrary: fc.tuple(
          fc.constant(name),
          fc.constantFrom('in', 'not in'),
          fc.array(valueIn(pool), { minLength: leastValues, maxLength: 3 }),
        ),
      },
      ...(isText
        ? [{ weight: 1, arbitrary: fc.tuple(fc.constant(name), fc.constant('contains'), valueIn(pool)) }]
        : []),
    )
  })

const joins: Readonly<Record<string, readonly Rule[]>> = {
  users: [{ exists: 'posts', where: { authorId: { field: 'id' }, live: true } }],
  labels: [{ exists: 'posts', where: { labelId: { field: 'id' } } }],
  posts: [{ exists: 'users', where: { id: { field: 'authorId' }, level: 1 } }],
  comments: [{ exists: 'posts', where: { id: { field: 'postId' }, live: true } }],
}

const ruleOf = (table: string): fc.Arbitrary<Rule> => {
  const leaf = fc.oneof(
    { weight: 4, arbitrary: fc.record({ tuple: fieldTuple({ ...shownIn(table), ...fields[table]?.hidden }, 1) }) },
    { weight: 1, arbitrary: fc.constantFrom(...(joins[table] as Rule[])) },
  ) as fc.Arbitrary<Rule>
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant<Rule>(true) },
    { weight: 1, arbitrary: fc.constant<Rule>(false) },
    { weight: 4, arbitrary: leaf },
    { weight: 1, arbitrary: fc.record({ all: fc.array(leaf, { minLength: 1, maxLength: 2 }) }) },
    { weight: 2, arbitrary: fc.record({ any: fc.array(leaf, { minLength: 1, maxLength: 3 }) }) },
    { weight: 2, arbitrary: fc.record({ none: leaf }) },
  )
}
export const rules: fc.Arbitrary<Rules> = fc.record(Object.fromEntries(tables.map((table) => [table, ruleOf(table)])))
