/**
 * Lists of random rows under random rules, filters and sorts, compared with an independent implementation on plain
 * arrays.
 */
import { beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { and, not, or, where } from '../../../src/access/filter.ts'
import { query } from '../../harness/client.ts'
import { compare, matchesTuple, type Row, type Tuple, type Value } from '../../harness/records/filter-oracle.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'

/** A rule as JSON, which is passed in the claims of the caller. */
type Rule = {
  readonly all?: readonly Rule[]
  readonly any?: readonly Rule[]
  readonly none?: Rule
  readonly tuple?: Tuple
}

function buildRule(rule: Rule): object {
  if (rule.all) return and(...rule.all.map(buildRule))
  if (rule.any) return or(...rule.any.map(buildRule))
  if (rule.none) return not(buildRule(rule.none))
  const [field, op, value] = rule.tuple as Tuple
  return where(field, op as '==', value as string)
}

const config = {
  databases: {
    shared: {
      tables: {
        items: {
          schema: {
            text: { type: 'string' },
            number: { type: 'number' },
            flag: { type: 'boolean' },
            when: { type: 'datetime' },
          },
          indexes: [{ fields: ['number', 'text'] }],
          access: {
            read: (auth: { custom: { rule?: Rule } } | null) =>
              auth?.custom.rule ? buildRule(auth.custom.rule) : auth !== null,
          },
        },
      },
    },
  },
}

const texts = [
  '',
  'a',
  'A',
  'b',
  'ab',
  'aB',
  'ä',
  'a%',
  'a_',
  '%',
  '\\',
  "'",
  '"',
  '\uFF21',
  '\u{1F600}',
  'a\u0000'.slice(0, 1),
  'zz',
]
const numbers = [-2.5, -1, 0, 0.1, 1, 2, 3, 1e300]
const times = [
  '1999-12-31T23:59:59.999Z',
  '2026-01-01T00:00:00.000Z',
  '2026-01-01T00:00:00.001Z',
  '2030-06-01T12:00:00.000Z',
]
const pools: Readonly<Record<string, readonly Value[]>> = {
  text: texts,
  number: numbers,
  flag: [true, false],
  when: times,
}

const valueIn = (field: string): fc.Arbitrary<Value> => fc.constantFrom(...(pools[field] ?? ['']))
const row: fc.Arbitrary<Row> = fc.record(
  Object.fromEntries(
    Object.keys(pools).map((field) => [
      field,
      fc.oneof({ weight: 1, arbitrary: fc.constant(null) }, { weight: 4, arbitrary: valueIn(field) }),
    ]),
  ),
)

/** `leastValues`: a rule with an empty list denies access instead of filtering rows. */
const tupleOf = (leastValues: number): fc.Arbitrary<Tuple> =>
  fc.constantFrom(...Object.keys(pools)).chain((field): fc.Arbitrary<Tuple> => {
    const ops = ['==', '!=', ...(field === 'flag' ? [] : ['>', '>=', '<', '<='])]
    const plain = fc.tuple(fc.constant(field), fc.constantFrom(...ops), valueIn(field))
    const nulls = fc.tuple(fc.constant(field), fc.constantFrom('==', '!='), fc.constant(null))
    const lists = fc.tuple(
      fc.constant(field),
      fc.constantFrom('in', 'not in'),
      fc.array(valueIn(field), { minLength: leastValues, maxLength: 4 }),
    )
    const contains = fc.tuple(fc.constant(field), fc.constant('contains'), valueIn(field))
    return fc.oneof(
      { weight: 4, arbitrary: plain },
      { weight: 1, arbitrary: nulls },
      { weight: 2, arbitrary: lists },
      ...(field === 'text' ? [{ weight: 2, arbitrary: contains }] : []),
    )
  })

const tuple = tupleOf(0)

const rule: fc.Arbitrary<Rule> = fc.letrec<{ rule: Rule }>((tie) => ({
  rule: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ tuple: tupleOf(1) }),
    fc.record({ all: fc.array(tie('rule'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ any: fc.array(tie('rule'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ none: tie('rule') }),
  ),
})).rule

function permits(of: Rule, one: Row): boolean {
  if (of.all) return of.all.every((part) => permits(part, one))
  if (of.any) return of.any.some((part) => permits(part, one))
  if (of.none) return !permits(of.none, one)
  return matchesTuple(of.tuple as Tuple, one)
}

const sortKey = fc.tuple(fc.constantFrom(...Object.keys(pools)), fc.boolean())
type SortKey = readonly [field: string, descending: boolean]

/** Nulls first ascending and last descending; ties by id in the direction of the last key. */
function ordered(rows: readonly Row[], keys: readonly SortKey[]): Row[] {
  const all: readonly SortKey[] = [...keys, ['id', keys.at(-1)?.[1] ?? false]]
  return [...rows].sort((a, b) => {
    for (const [field, descending] of all) {
      const [x, y] = [a[field] ?? null, b[field] ?? null]
      const order = x === y ? 0 : x === null ? -1 : y === null ? 1 : compare(x, y)
      if (order !== 0) return descending ? -order : order
    }
    return 0
  })
}

describeServer('random filters', { config }, (server) => {
  let rows: readonly Row[] = []
  beforeAll(async () => {
    const inserts = fc.sample(row, 120).map((one, n) => ({ id: `r${String(n).padStart(3, '0')}`, ...one }))
    expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
    rows = ((await server.dump(base))[base]?.items ?? []) as readonly Row[]
  })

  test('[RULE-5, DB-FILTER-1, DB-FILTER-2, DB-FILTER-6, DB-LIST-11, DB-LIST-12, DB-LIST-15] a list is its table, filtered, sorted and paged', async () => {
    const request = fc.record({
      rule: fc.option(rule, { nil: undefined }),
      filter: fc.option(fc.array(tuple, { maxLength: 3 }), { nil: undefined }),
      orFilter: fc.option(fc.array(tuple, { minLength: 1, maxLength: 5 }), { nil: undefined }),
      sort: fc.uniqueArray(sortKey, { maxLength: 3, selector: ([field]) => field }),
      limit: fc.integer({ min: 1, max: 40 }),
      offset: fc.integer({ min: 0, max: 60 }),
    })
    await fc.assert(
      fc.asyncProperty(request, async ({ rule: allowed, filter, orFilter, sort, limit, offset }) => {
        const expected = ordered(
          rows.filter(
            (one) =>
              (!allowed || permits(allowed, one)) &&
              (filter ?? []).every((each) => matchesTuple(each, one)) &&
              (!orFilter || orFilter.some((each) => matchesTuple(each, one))),
          ),
          sort,
        ).map(({ id }) => id)
        const client = server.as({ id: 'u', custom: allowed ? { rule: allowed } : {} })
        const params = {
          filter,
          orFilter,
          sort:
            sort.length === 0
              ? undefined
              : sort.map(([field, descending]) => `${field}:${descending ? 'desc' : 'asc'}`).join(','),
        }
        const list = await client.get(base + query({ ...params, limit, offset }))
        expect(list.body.items?.map(({ id }: { id: string }) => id) ?? list.text).toEqual(
          expected.slice(offset, offset + limit),
        )
        expect(list.status).toBe(200)
        expect(list.body.total).toBe(expected.length)
        const count = await client.get(`${base}/count${query({ filter, orFilter })}`)
        expect(count.body).toEqual({ total: expected.length })
        const all = await client.get(base + query({ ...params, after: '', limit: 1000 }))
        expect(all.body.items.map(({ id }: { id: string }) => id)).toEqual(expected)
      }),
      { numRuns: 400 },
    )
  })
})
