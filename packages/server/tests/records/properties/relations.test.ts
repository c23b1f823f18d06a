/**
 * Random data under random rules, read with random conditions through relations and random `include`s, compared with an
 * independent implementation on plain arrays. `PLINTH_RELATION_CASES` is the number of queries per engine.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { and, exists, field as fieldRef, not, or, where } from '../../../src/access/filter.ts'
import { type Client, query } from '../../harness/client.ts'
import {
  type Condition,
  createOracle,
  type Data,
  type FieldTuple,
  type Include,
  type IncludeOptions,
  includedIn,
  type OracleQuery,
  type OracleRelations,
  type Row,
  type Rule,
  type Rules,
  relationsIn,
  type SortKey,
  type Value,
  wireCondition,
  wireInclude,
  wireSort,
} from '../../harness/records/relation-oracle.ts'
import { describeServer } from '../../harness/server.ts'

const cases = Number(process.env.PLINTH_RELATION_CASES ?? 200)
const queriesPerCase = 20

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
const text = { type: 'string' } as const
const number = { type: 'number' } as const
const reference = (references: string) => ({ type: 'string', references }) as const

const config = {
  databases: {
    space: {
      instance: true,
      access: () => true,
      tables: {
        users: {
          schema: { name: text, level: number, secret: text, bossId: reference('users') },
          hidden: ['secret'],
          access: ruled('users'),
        },
        labels: { access: ruled('labels') },
        posts: {
          schema: {
            title: text,
            score: number,
            live: { type: 'boolean' },
            authorId: reference('users'),
            editor_id: reference('users'),
            labelId: reference('labels'),
          },
          indexes: [{ fields: ['authorId', 'score'] }],
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

const relations: OracleRelations = {
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

const pools: Readonly<Record<string, readonly Value[]>> = {
  text: ['', 'a', 'A', 'ab', 'ä', '%', "'", '\u{1F600}'],
  number: [-1, 0, 0.5, 1, 2],
  boolean: [true, false],
  users: ['u0', 'u1', 'u2', 'u3'],
  labels: ['l0', 'l1'],
  posts: ['p0', 'p1', 'p2', 'p3', 'p4', 'p5'],
  comments: [],
}
/** The pool of each field's values: a type, or a table whose ids they are. Labels have no schema. */
const fields: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  users: { name: 'text', level: 'number', bossId: 'users' },
  labels: { name: 'text', weight: 'number' },
  posts: { title: 'text', score: 'number', live: 'boolean', authorId: 'users', editor_id: 'users', labelId: 'labels' },
  comments: { body: 'text', rank: 'number', postId: 'posts', writer: 'users' },
}
const tables = Object.keys(fields)
const hidden = { users: ['secret'] }

const valueIn = (pool: string): fc.Arbitrary<Value> => fc.constantFrom(...(pools[pool] as readonly Value[]))
const cellOf = (pool: string): fc.Arbitrary<Value> =>
  fc.oneof({ weight: 1, arbitrary: fc.constant(null) }, { weight: 4, arbitrary: valueIn(pool) })

const rowsOf = (table: string, ids: readonly string[]): fc.Arbitrary<Row[]> =>
  fc.tuple(
    ...ids.map((id) =>
      fc
        .record(Object.fromEntries(Object.entries(fields[table] ?? {}).map(([name, pool]) => [name, cellOf(pool)])))
        .map((row) => ({ id, ...row })),
    ),
  )

const data: fc.Arbitrary<Data> = fc.record({
  users: rowsOf('users', pools.users as string[]).map((rows) => rows.map((row) => ({ ...row, secret: 'hidden' }))),
  labels: rowsOf('labels', pools.labels as string[]),
  posts: rowsOf('posts', pools.posts as string[]),
  comments: fc.integer({ min: 0, max: 12 }).chain((count) =>
    rowsOf(
      'comments',
      Array.from({ length: count }, (_, at) => `c${at}`),
    ),
  ),
})

const fieldTuple = (table: string, leastValues: number): fc.Arbitrary<FieldTuple> =>
  fc.constantFrom(...Object.entries(fields[table] ?? {})).chain(([name, pool]): fc.Arbitrary<FieldTuple> => {
    const isText = pool !== 'number' && pool !== 'boolean'
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
    { weight: 4, arbitrary: fc.record({ tuple: fieldTuple(table, 1) }) },
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
const rules: fc.Arbitrary<Rules> = fc.record(Object.fromEntries(tables.map((table) => [table, ruleOf(table)])))

const relationNames = (table: string, kind: 'one' | 'many'): string[] =>
  Object.entries(relations[table] ?? {}).flatMap(([name, one]) => (one.kind === kind ? [name] : []))
const targetOf = (table: string, name: string): string => relations[table]?.[name]?.target ?? ''

function conditionOf(table: string, depth: number): fc.Arbitrary<Condition> {
  const plain = fieldTuple(table, 0).map((tuple): Condition => ({ tuple }))
  if (depth === 3) return plain
  const [ones, manys] = [relationNames(table, 'one'), relationNames(table, 'many')]
  const through = ones.map((one) =>
    conditionOf(targetOf(table, one), depth + 1).map((rest): Condition => ({ one, rest })),
  )
  const quantified = manys.map((many) =>
    fc
      .tuple(
        fc.constantFrom('some' as const, 'none' as const),
        fc.array(conditionOf(targetOf(table, many), depth + 1), { maxLength: 2 }),
      )
      .map(([op, all]): Condition => ({ many, op, all })),
  )
  return fc.oneof(
    { weight: 3, arbitrary: plain },
    ...[...through, ...quantified].map((arbitrary) => ({ weight: 2, arbitrary })),
  )
}

const sortOf = (table: string): fc.Arbitrary<SortKey[]> =>
  fc.uniqueArray(fc.tuple(fc.constantFrom(...Object.keys(fields[table] ?? {})), fc.boolean()), {
    maxLength: 2,
    selector: ([name]) => name,
  })

function includeOf(table: string, depth: number): fc.Arbitrary<Include> {
  const names = Object.keys(relations[table] ?? {})
  return fc
    .uniqueArray(fc.constantFrom(...names), { maxLength: depth === 1 ? 3 : 2 })
    .chain((chosen) => fc.record(Object.fromEntries(chosen.map((name) => [name, optionsOf(table, name, depth)]))))
}

function optionsOf(table: string, name: string, depth: number): fc.Arbitrary<IncludeOptions> {
  const target = targetOf(table, name)
  const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
  const common = {
    fields: maybe(
      fc.uniqueArray(fc.constantFrom('id', ...Object.keys(fields[target] ?? {})), { minLength: 1, maxLength: 3 }),
    ),
    where: maybe(fc.array(conditionOf(target, 2), { maxLength: 2 })),
    include: depth === 3 ? fc.constant(undefined) : maybe(includeOf(target, depth + 1)),
  }
  if (relations[table]?.[name]?.kind === 'one') return fc.record(common)
  return fc.record({
    ...common,
    sort: maybe(sortOf(target)),
    limit: maybe(fc.integer({ min: 0, max: 3 })),
    count: maybe(fc.boolean()),
  })
}

const isWithinBounds = ({ filter, orFilter, include }: OracleQuery): boolean =>
  [filter, orFilter].every((group) => group.reduce((sum, one) => sum + relationsIn(one), 0) <= 10) &&
  includedIn(include) <= 10

const listQuery: fc.Arbitrary<OracleQuery> = fc
  .constantFrom(...tables)
  .chain((table) =>
    fc.record({
      table: fc.constant(table),
      filter: fc.oneof(fc.constant([]), fc.array(conditionOf(table, 0), { maxLength: 2 })),
      orFilter: fc.oneof(
        { weight: 2, arbitrary: fc.constant([]) },
        fc.array(conditionOf(table, 0), { minLength: 1, maxLength: 3 }),
      ),
      sort: sortOf(table),
      include: includeOf(table, 1),
    }),
  )
  .filter(isWithinBounds)

let instances = 0

/** Inserts the rows into an instance of their own; bosses last, since they refer to users. */
async function store(service: Client, rows: Data): Promise<string> {
  const base = `/api/db/space/i${instances++}`
  const operations = tables.flatMap((table) =>
    (rows[table] ?? []).map(({ bossId: _, ...insert }) => ({ table, insert })),
  )
  const bosses = (rows.users ?? []).map(({ id, bossId }) => ({ table: 'users', update: { id, data: { bossId } } }))
  const { status, text: answer } = await service.post(`${base}/transaction`, { operations: [...operations, ...bosses] })
  if (status !== 200) throw new Error(answer)
  return base
}

const rulesUser = (of: Rules) => ({ id: 'u', custom: { rules: of } })

describeServer('random relations', { config }, (server) => {
  async function check(base: string, stored: Data, of: Rules, one: OracleQuery): Promise<void> {
    const expected = createOracle(stored, relations, of, hidden).list(one)
    const client = server.as(rulesUser(of))
    const groups = {
      filter: one.filter.map(wireCondition),
      orFilter: one.orFilter.length > 0 ? one.orFilter.map(wireCondition) : undefined,
    }
    const path = `${base}/tables/${one.table}`
    const include = Object.keys(one.include).length > 0 ? wireInclude(one.include) : undefined
    const list = await client.get(path + query({ ...groups, sort: wireSort(one.sort), include }))
    if (expected === null) {
      expect(list.status).toBe(403)
      return
    }
    expect(list.body.items ?? list.text).toEqual(expected)
    expect(list.body.total).toBe(expected.length)
    expect((await client.get(`${path}/count${query(groups)}`)).body).toEqual({ total: expected.length })
    const [first] = expected
    if (first) expect((await client.get(`${path}/${first.id}${query({ include })}`)).body).toEqual(first)
  }

  test('[DB-INC-1, DB-INC-5, DB-REL-1, DB-REL-2, DB-REL-3] lists, counts and records are what a naive implementation gives', async () => {
    await fc.assert(
      fc.asyncProperty(
        data,
        fc.array(fc.tuple(rules, listQuery), { minLength: queriesPerCase, maxLength: queriesPerCase }),
        async (rows, queries) => {
          const base = await store(server.service, rows)
          const stored: Record<string, readonly Row[]> = {}
          for (const table of tables) stored[table] = (await server.service.get(`${base}/tables/${table}`)).body.items
          for (const [of, one] of queries) await check(base, stored, of, one)
        },
      ),
      { numRuns: Math.ceil(cases / queriesPerCase), endOnFailure: true },
    )
  }, 3_600_000)
})
