import { expect, test } from 'bun:test'
import type { Expr } from '../expr.ts'
import type { Row } from '../matches.ts'
import { decisiveClauses } from './decisive-clauses.ts'
import { trace } from './trace.ts'

const is = (field: string, value: string): Expr => ({ kind: 'compare', field, op: '==', value })
const and = (...of: Expr[]): Expr => ({ kind: 'and', of })
const or = (...of: Expr[]): Expr => ({ kind: 'or', of })
const not = (of: Expr): Expr => ({ kind: 'not', of })

const decide = async (expr: Expr, row: Row): Promise<readonly string[]> => {
  const never = (): boolean => false
  const { clauses } = await trace(expr, { path: 'read', row, isTrue: never, isMasked: never, isSecret: never })
  return decisiveClauses(clauses).map(({ path }) => path)
}

const [a, b, c] = [is('a', '1'), is('b', '1'), is('c', '1')]

test.each<[name: string, expr: Expr, row: Row, paths: readonly string[]]>([
  ['a single clause', a, { a: '1' }, ['read']],
  ['a constant', { kind: 'const', value: false }, {}, ['read']],
  ['the first false part of an and', and(a, b, c), { a: '1' }, ['read.and[1]']],
  ['all parts of a true and', and(a, b), { a: '1', b: '1' }, ['read.and[0]', 'read.and[1]']],
  ['the first true part of an or', or(a, b, c), { b: '1', c: '1' }, ['read.or[1]']],
  ['all parts of a false or', or(a, b), { a: '2' }, ['read.or[0]', 'read.or[1]']],
  ['the part of a not', not(a), { a: '1' }, ['read.not']],
  ['parts of parts', and(a, or(b, not(c))), { a: '1', b: '2', c: '1' }, ['read.and[1].or[0]', 'read.and[1].or[1].not']],
  ['a not around an and', not(and(a, b)), { a: '1' }, ['read.not.and[1]']],
])('%s decides', async (_, expr, row, paths) => {
  expect(await decide(expr, row)).toEqual(paths)
})

test('at most three clauses are named', async () => {
  expect(await decide(or(a, b, c, is('d', '1'), is('e', '1')), {})).toHaveLength(3)
})
