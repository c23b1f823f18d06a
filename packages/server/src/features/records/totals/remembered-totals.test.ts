import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  pinnedFieldsMax,
  pinnedTotalsMax,
  pinnedTotalsPerValueMax,
  rememberedTotalsMax,
} from '../../../limits/sqlite.ts'
import { allOf, type Expr } from '../../../query/expr.ts'
import { matches, type Row } from '../../../query/matches.ts'
import { createRememberedTotals } from './remembered-totals.ts'

const equal = (field: string, value: string | number | boolean): Expr => ({ kind: 'compare', field, op: '==', value })

const value = fc.constantFrom('a', 'b', '1', 1, 0, -0, true, false, null)
const field = fc.constantFrom('x', 'y', 'z')
const row = fc.option(fc.dictionary(field, value, { noNullPrototype: true }), { freq: 3 })
const scalar = fc.constantFrom('a', 'b', '1', 1, 0, true)
const condition: fc.Arbitrary<Expr> = fc.oneof(
  fc.tuple(field, scalar).map(([name, one]) => equal(name, one)),
  fc.tuple(field, scalar, field, scalar).map(([a, b, c, d]) => allOf([equal(a, b), equal(c, d)])),
  fc.tuple(field, scalar).map(([name, one]): Expr => ({ kind: 'not', of: equal(name, one) })),
  fc.tuple(field, scalar, field).map(([a, b, c]) => allOf([equal(a, b), { kind: 'null', field: c, negated: false }])),
)
const step = fc.oneof(
  fc.record({ remembered: condition }),
  fc.record({ before: row as fc.Arbitrary<Row | null>, after: row as fc.Arbitrary<Row | null> }),
)

test('[DB-LIST-12] every total that is found has moved with the changes since it was remembered', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const totals = createRememberedTotals()()
      const expected = new Map<string, { expr: Expr; total: number }>()
      for (const one of steps) {
        if ('remembered' in one) {
          const key = JSON.stringify(one.remembered)
          totals.remember(key, one.remembered, 100)
          expected.set(key, { expr: one.remembered, total: 100 })
        } else {
          totals.apply(one.before, one.after)
          for (const entry of expected.values()) {
            if (one.before && matches(entry.expr, one.before)) entry.total -= 1
            if (one.after && matches(entry.expr, one.after)) entry.total += 1
          }
        }
        for (const [key, { total }] of expected) expect(totals.find(key)?.total ?? total).toBe(total)
      }
    }),
    { numRuns: 500 },
  )
})

/** How many of the totals are found. */
const countFound = (totals: ReturnType<ReturnType<typeof createRememberedTotals>>, keys: readonly string[]): number =>
  keys.filter((key) => totals.find(key)).length

test('thousands of authors have totals, and no more than the bound', () => {
  const create = createRememberedTotals()
  const [totals, other] = [create(), create()]
  const keys = Array.from({ length: 5000 }, (_, n) => `author ${n}`)
  for (const key of keys) totals.remember(key, equal('authorId', key), 1)
  expect(countFound(totals, keys)).toBe(5000)
  expect(countFound(other, keys)).toBe(0)
  totals.apply(null, { authorId: 'author 7' })
  expect([totals.find('author 7')?.total, totals.find('author 8')?.total]).toEqual([2, 1])
  const later = Array.from({ length: pinnedTotalsMax }, (_, n) => `later ${n}`)
  for (const key of later) other.remember(key, equal('authorId', key), 1)
  expect(countFound(totals, keys) + countFound(other, later)).toBeLessThanOrEqual(pinnedTotalsMax)
})

test('the totals that one write matches are bounded', () => {
  const totals = createRememberedTotals()()
  const ofOneValue = Array.from({ length: 1000 }, (_, n) => allOf([equal('x', 'a'), equal('y', n)]))
  const ofFields = Array.from({ length: 1000 }, (_, n) => equal(`field${n}`, 'a'))
  const all = [...ofOneValue, ...ofFields]
  for (const [n, expr] of all.entries()) totals.remember(`${n}`, expr, 1)
  const found = countFound(totals, [...all.keys()].map(String))
  expect(found).toBeLessThanOrEqual(rememberedTotalsMax + pinnedFieldsMax * pinnedTotalsPerValueMax)
})
