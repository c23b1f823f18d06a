/** Texts of conditions that were built before. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type SqlText, sql } from '../engines/sql/sql-text.ts'
import { sqliteDialect } from '../engines/sqlite/dialect.ts'
import { conditionShapesMax } from '../limits/sqlite.ts'
import { createConditionTexts } from './condition-texts.ts'
import type { Expr } from './expr.ts'
import { createdAtField, type Field, idField, type Table, updatedAtField } from './table.ts'
import { createSqlBackEnd, type SqlBackEnd } from './to-sql.ts'

const field = (name: string, type: Field['type']): Field => ({ name, type, required: false, unique: false })
const fields = [
  idField,
  field('a', 'string'),
  field('b', 'boolean'),
  field('n', 'number'),
  createdAtField,
  updatedAtField,
]

const table: Table = {
  namespace: 'test',
  name: 'things',
  perInstance: false,
  schemaless: true,
  fields: new Map(fields.map((one) => [one.name, one])),
  hidden: new Set(),
  indexes: [],
  search: [],
  computed: [],
}

const openBackEnd = (): SqlBackEnd => createSqlBackEnd(sqliteDialect, () => table)

/** `free` is not declared: the text of a comparison with it depends on the type of the value. */
const name = fc.constantFrom('a', 'b', 'n', 'free')
const value = fc.oneof(fc.constantFrom('x', 'y'), fc.constantFrom(0, 1), fc.boolean())
const op = fc.constantFrom('==' as const, '<' as const)
const { tree } = fc.letrec<{ tree: Expr }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 2, depthSize: 'small' },
    fc.record({ kind: fc.constant('compare' as const), field: name, op, value }),
    fc.record({ kind: fc.constant('null' as const), field: name, negated: fc.boolean() }),
    fc.record({ kind: fc.constant('contains' as const), field: fc.constantFrom('a', 'free'), value }),
    fc.record({
      kind: fc.constant('in' as const),
      field: name,
      values: fc.array(value, { maxLength: 2 }),
      negated: fc.boolean(),
    }),
    fc.array(tie('tree'), { minLength: 1, maxLength: 2 }).map((of): Expr => ({ kind: 'and', of })),
    fc.array(tie('tree'), { minLength: 1, maxLength: 2 }).map((of): Expr => ({ kind: 'or', of })),
    tie('tree').map((of): Expr => ({ kind: 'not', of })),
  ),
}))

test('a condition has the same SQL whatever conditions were built before', () => {
  const used = openBackEnd()
  fc.assert(
    fc.property(fc.array(tree, { minLength: 2, maxLength: 20 }), (trees) => {
      for (const expr of trees) expect(used.condition(expr, table)).toEqual(openBackEnd().condition(expr, table))
    }),
    { numRuns: 500 },
  )
})

const compare = (fieldName: string, compared: string | number | boolean): Expr => ({
  kind: 'compare',
  field: fieldName,
  op: '==',
  value: compared,
})

/** How often a condition is built; the same text for each field. */
function counting() {
  let builds = 0
  const conditionOf = createConditionTexts((bound) => bound)
  const condition = (expr: Expr, values: SqlText = sql`x = ${'1'}`): SqlText =>
    conditionOf(expr, table, () => {
      builds++
      return values
    })
  return { condition, builds: () => builds }
}

test('other values of the same comparisons are not built again', () => {
  const { condition, builds } = counting()
  expect(condition(compare('a', '1')).values).toEqual(['1'])
  expect(condition(compare('a', '2'))).toEqual({ text: 'x = ?', values: ['2'] })
  expect(builds()).toBe(1)
  condition(compare('n', '1'))
  expect(builds()).toBe(2)
})

test('a condition whose parameters are not its values in order is built each time', () => {
  const { condition, builds } = counting()
  for (let run = 0; run < 2; run++) condition(compare('a', '2'))
  for (let run = 0; run < 2; run++) condition(compare('free', '1'))
  expect(builds()).toBe(4)
})

test('the last shapes of a table are kept', () => {
  const { condition, builds } = counting()
  const nested = (depth: number): Expr => (depth === 0 ? compare('a', '1') : { kind: 'not', of: nested(depth - 1) })
  for (let depth = 0; depth <= conditionShapesMax; depth++) condition(nested(depth))
  condition(nested(conditionShapesMax))
  expect(builds()).toBe(conditionShapesMax + 1)
  condition(nested(0))
  expect(builds()).toBe(conditionShapesMax + 2)
})
