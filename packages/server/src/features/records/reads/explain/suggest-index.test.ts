import { expect, test } from 'bun:test'
import { allOf, anyOf, type Expr } from '../../../../query/expr.ts'
import { defaultSort, type Sort } from '../../../../query/sort.ts'
import type { Field, Table } from '../../../../query/table.ts'
import { scansTable, suggestIndex } from './suggest-index.ts'

const field = (name: string, type: Field['type'] = 'string'): [string, Field] => [
  name,
  { name, type, required: false, unique: false },
]
const table: Table = {
  namespace: 'shared',
  name: 'posts',
  perInstance: false,
  schemaless: true,
  fields: new Map([field('id'), field('a'), field('b'), field('c'), field('d'), field('e'), field('data', 'json')]),
  hidden: new Set(),
  indexes: [],
  search: [],
  computed: [],
}
const is = (name: string): Expr => ({ kind: 'compare', field: name, op: '==', value: 'x' })
const above = (name: string): Expr => ({ kind: 'compare', field: name, op: '>', value: 'x' })
const sortBy = (...keys: readonly string[]): Sort =>
  [...keys, 'id'].map((key) => ({ field: key, descending: false, nullable: true }))
const suggest = (parts: readonly Expr[], sort = defaultSort, present: readonly (readonly string[])[] = []) =>
  suggestIndex(table, { condition: allOf(parts), sort }, present)

test('fields bound to one value come before those bound to several', () => {
  expect(suggest([{ kind: 'in', field: 'a', values: ['x', 'y'], negated: false }, is('b'), is('b')])).toEqual([
    'b',
    'a',
  ])
  expect(suggest([{ kind: 'null', field: 'c', negated: false }])).toEqual(['c'])
})

test('fields of the sort follow, or else one of a range', () => {
  expect(suggest([above('a'), is('b')])).toEqual(['b', 'a'])
  expect(suggest([above('a'), is('b')], sortBy('c', 'd'))).toEqual(['b', 'c', 'd'])
  expect(suggest([is('b')], sortBy('b', 'c'))).toEqual(['b', 'c'])
  const mixed: Sort = sortBy('c').map((key, at) => ({ ...key, descending: at === 0 }))
  expect(suggest([is('b')], mixed)).toEqual(['b'])
})

test('an index has at most four fields, declared ones that have an order', () => {
  expect(suggest([is('a'), is('b'), is('c'), is('d'), is('e')])).toEqual(['a', 'b', 'c', 'd'])
  expect(suggest([is('data'), is('undeclared'), is('id')])).toBeNull()
  expect(suggest([is('a')], sortBy('data'))).toEqual(['a'])
})

test('negations and alternatives bind no field', () => {
  expect(suggest([anyOf([is('a'), is('b')])])).toBeNull()
  expect(suggest([{ kind: 'not', of: is('a') }])).toBeNull()
  expect(suggest([{ kind: 'null', field: 'c', negated: true }])).toBeNull()
})

test('an index that starts with the fields makes another one superfluous', () => {
  expect(suggest([is('a'), is('b')], sortBy('c'), [['b', 'a', 'c', 'd']])).toBeNull()
  expect(
    suggest([is('a'), is('b')], sortBy('c'), [
      ['a', 'b'],
      ['a', 'c', 'b'],
    ]),
  ).toEqual(['a', 'b', 'c'])
})

test('a list scans where no index narrows or sorts it', () => {
  const unique: Field = { name: 'd', type: 'string', required: false, unique: true }
  const indexed = {
    fields: new Map([...table.fields, ['id', { ...unique, name: 'id' }], ['d', unique]]),
    indexes: [{ fields: ['a', 'b'], unique: false }],
  }
  const scans = (parts: readonly Expr[], sort = defaultSort, isFiltered = true): boolean =>
    scansTable(indexed, { condition: allOf(parts), sort }, isFiltered)
  const mixed: Sort = sortBy('a').map((key, at) => ({ ...key, descending: at === 1 }))
  for (const parts of [[is('a')], [above('a'), is('c')], [is('d')], [is('id'), is('c')]])
    expect(scans(parts)).toBe(false)
  for (const parts of [[is('b')], [is('c'), above('e')], [anyOf([is('a'), is('c')])]]) expect(scans(parts)).toBe(true)
  // The condition of a rule alone.
  expect(scans([is('c')], defaultSort, false)).toBe(false)
  expect([scans([], sortBy('a'), false), scans([], sortBy('c'), false), scans([], mixed, false)]).toEqual([
    false,
    true,
    true,
  ])
  expect(scans([is('d')], sortBy('c'))).toBe(false)
})
