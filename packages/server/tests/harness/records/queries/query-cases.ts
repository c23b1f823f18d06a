/** Random lists, searches and aggregates over the tables of `query-data`. */
import fc from 'fast-check'
import type { Aggregate, Key, Measure } from '../aggregate-oracle.ts'
import type { Tuple } from '../filter-oracle.ts'
import { fieldTuple, namesIn, relations, shownIn, tables, valueIn } from './query-data.ts'
import {
  type Condition,
  centersOf,
  type Include,
  type IncludeOptions,
  includedIn,
  type OracleQuery,
  relationsIn,
  type SortKey,
} from './query-oracle.ts'

const relationNames = (table: string, kind: 'one' | 'many'): string[] =>
  Object.entries(relations[table] ?? {}).flatMap(([name, one]) => (one.kind === kind ? [name] : []))
const targetOf = (table: string, name: string): string => relations[table]?.[name]?.target ?? ''

function conditionOf(table: string, depth: number): fc.Arbitrary<Condition> {
  const plain = fieldTuple(shownIn(table), 0).map((tuple): Condition => ({ tuple }))
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
  fc.uniqueArray(fc.tuple(fc.constantFrom(...namesIn(table, (pool) => pool !== 'location')), fc.boolean()), {
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
      fc.uniqueArray(fc.constantFrom('id', ...Object.keys(shownIn(target))), { minLength: 1, maxLength: 3 }),
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

/** With the order by distance, where a request has a center for it. */
const byDistance = (query: OracleQuery): fc.Arbitrary<OracleQuery> => {
  const names = [...centersOf([...query.filter, ...query.orFilter]).keys()]
  if (names.length === 0) return fc.constant(query)
  return fc
    .tuple(fc.constantFrom(...names), fc.boolean(), fc.boolean())
    .map(([name, descending, isSorted]) =>
      isSorted ? { ...query, sort: [[`${name}.distance`, descending], ...query.sort.slice(0, 1)] } : query,
    )
}

const selectionOf = (table: string): fc.Arbitrary<OracleQuery> =>
  fc
    .record({
      table: fc.constant(table),
      filter: fc.oneof(fc.constant([]), fc.array(conditionOf(table, 0), { maxLength: 2 })),
      orFilter: fc.oneof(
        { weight: 2, arbitrary: fc.constant([]) },
        fc.array(conditionOf(table, 0), { minLength: 1, maxLength: 3 }),
      ),
      fields: fc.option(
        fc.uniqueArray(fc.constantFrom('id', ...Object.keys(shownIn(table))), { minLength: 1, maxLength: 3 }),
        {
          nil: undefined,
          freq: 3,
        },
      ),
      sort: sortOf(table),
      include: includeOf(table, 1),
    })
    .filter(isWithinBounds)
    .chain(byDistance)

const nameOf = (key: Key): string => (typeof key === 'string' ? key : ((key as { as?: string }).as ?? ''))

function aggregateIn(table: string): fc.Arbitrary<Aggregate> {
  const [numbers, texts] = [namesIn(table, (pool) => pool === 'number'), namesIn(table, (pool) => pool === 'text')]
  const values = namesIn(table, (pool) => pool !== 'location')
  const times = namesIn(table, (pool) => pool === 'datetime')
  const key: fc.Arbitrary<Key> = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...values) },
    fc.record({ bucket: fc.constantFrom(...numbers), width: fc.constantFrom(0.5, 2), as: fc.constant('from') }),
    ...times.flatMap((name) =>
      ['hour', 'day', 'month'].map((period) => fc.constant<Key>({ [period]: name, tz: 'Europe/Berlin', as: period })),
    ),
  )
  const measure: fc.Arbitrary<Measure> = fc.oneof(
    fc.constant('count' as const),
    fc.record({ countDistinct: fc.constantFrom(...values) }),
    ...['sum', 'avg'].map((kind) => fc.constantFrom(...numbers).map((name) => ({ [kind]: name }))),
    ...['min', 'max'].map((kind) => fc.constantFrom(...numbers, ...texts).map((name) => ({ [kind]: name }))),
  )
  return fc
    .record({
      group: fc.uniqueArray(key, { maxLength: 3, selector: nameOf }),
      measures: fc.dictionary(fc.constantFrom('m1', 'm2', 'm3'), measure, { minKeys: 1 }),
      limit: fc.constantFrom(1, 3, 1000),
    })
    .chain(({ group, measures, limit }) => {
      const names = [...group.map(nameOf), ...Object.keys(measures)]
      return fc.record({
        group: fc.constant(group.length === 0 ? undefined : group),
        measures: fc.constant({ ...measures }),
        having: fc.option(fc.array(havingOn(table, group, measures), { maxLength: 2 }), { nil: undefined }),
        sort: fc.option(
          fc.uniqueArray(fc.tuple(fc.constantFrom(...names), fc.boolean()), {
            minLength: 1,
            maxLength: 2,
            selector: ([name]) => name,
          }),
          { nil: undefined },
        ),
        limit: fc.constant(limit),
      })
    })
}

/** A condition on a key or a measure that has values of one type. */
function havingOn(table: string, group: readonly Key[], measures: Aggregate['measures']): fc.Arbitrary<Tuple> {
  const keyed = group.flatMap((key): [string, string][] => {
    if (typeof key === 'string') return [[key, shownIn(table)[key] ?? '']]
    return 'bucket' in key ? [[nameOf(key), 'number']] : []
  })
  const measured = Object.entries(measures).map(([name, measure]): [string, string] => {
    const [kind = '', field = ''] = Object.entries(measure)[0] ?? []
    return [name, kind === 'min' || kind === 'max' ? (shownIn(table)[field] ?? '') : 'number']
  })
  return fc.constantFrom(...keyed, ...measured).chain(([name, pool]): fc.Arbitrary<Tuple> => {
    const ops = pool === 'boolean' ? ['==', '!='] : ['==', '!=', '>', '>=', '<', '<=']
    return fc.oneof(
      { weight: 4, arbitrary: fc.tuple(fc.constant(name), fc.constantFrom(...ops), valueIn(pool)) },
      { weight: 1, arbitrary: fc.tuple(fc.constant(name), fc.constantFrom('==', '!='), fc.constant(null)) },
    )
  })
}

const searched = fc.constantFrom('paris', 'par', 'prais', 'berlin par', 'zurich', 'zürihc', 'a', 'x')

export type QueryCase =
  | { readonly kind: 'list'; readonly query: OracleQuery; readonly limit: number }
  | { readonly kind: 'search'; readonly query: OracleQuery; readonly q: string }
  | {
      readonly kind: 'aggregate'
      readonly query: OracleQuery
      readonly aggregate: Aggregate
      readonly q: string | undefined
    }

const declared = tables.filter((table) => table !== 'labels')

export const queryCase: fc.Arbitrary<QueryCase> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('list' as const),
      query: fc.constantFrom(...tables).chain(selectionOf),
      limit: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('search' as const), query: selectionOf('posts'), q: searched }),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(...declared).chain((table) =>
      fc.record({
        kind: fc.constant('aggregate' as const),
        query: selectionOf(table),
        aggregate: aggregateIn(table),
        q: table === 'posts' ? fc.option(searched, { nil: undefined }) : fc.constant(undefined),
      }),
    ),
  },
)
