import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { allOf, anyOf, type Expr, negate, type Scalar } from './expr.ts'
import { createExprIndex } from './expr-index.ts'
import { matches } from './matches.ts'

const scalar: fc.Arbitrary<Scalar> = fc.constantFrom<Scalar>('a', 'b', '1', '', 0, 1, -0, 2.5, true, false)
const field = fc.constantFrom('x', 'y', 'z')
const leaf: fc.Arbitrary<Expr> = fc.oneof(
  fc.record({ kind: fc.constant('const' as const), value: fc.boolean() }),
  fc.record({ kind: fc.constant('null' as const), field, negated: fc.boolean() }),
  fc.record({
    kind: fc.constant('compare' as const),
    field,
    op: fc.constantFrom('==' as const, '==' as const, '!=' as const, '>' as const, '<=' as const),
    value: scalar,
  }),
  fc.record({ kind: fc.constant('contains' as const), field, value: scalar }),
  fc.record({
    kind: fc.constant('in' as const),
    field,
    values: fc.array(scalar, { maxLength: 3 }),
    negated: fc.boolean(),
  }),
)
const { tree } = fc.letrec<{ tree: Expr }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('tree'), { maxLength: 4 }).map(allOf),
    fc.array(tie('tree'), { maxLength: 4 }).map(anyOf),
    tie('tree').map(negate),
  ),
}))
const row = fc.record(
  { x: fc.option(scalar), y: fc.option(fc.oneof(scalar, fc.array(scalar, { maxLength: 2 }))), z: scalar },
  { requiredKeys: ['x'] },
)

const candidates = (index: ReturnType<typeof createExprIndex<number>>, of: Record<string, unknown>): Set<number> => {
  const found = new Set<number>()
  index.candidates(of, found)
  return found
}

describe('the index of conditions', () => {
  test('candidates include every condition that is true for a row, and none that was removed', () => {
    fc.assert(
      fc.property(fc.array(tree, { maxLength: 20 }), fc.array(row, { maxLength: 5 }), (trees, rows) => {
        const index = createExprIndex<number>()
        for (const [at, one] of trees.entries()) index.add(one, at)
        trees.forEach((one, at) => {
          if (at % 3 === 0) index.remove(one, at)
        })
        for (const one of rows) {
          const found = candidates(index, one)
          trees.forEach((expr, at) => {
            if (at % 3 === 0) expect(found.has(at)).toBe(false)
            else if (matches(expr, one)) expect(found.has(at)).toBe(true)
          })
        }
      }),
      { numRuns: 500 },
    )
  })

  test('candidates exclude conditions on other values, nested ones included', () => {
    const index = createExprIndex<string>()
    const is = (name: string, value: Scalar): Expr => ({ kind: 'compare', field: name, op: '==', value })
    const above: Expr = { kind: 'compare', field: 'n', op: '>', value: 5 }
    index.add(is('owner', 'ann'), 'ann')
    index.add(allOf([above, is('owner', 'bob')]), 'bob')
    index.add(anyOf([is('owner', 'cid'), allOf([is('team', 't'), above])]), 'cid or t')
    index.add({ kind: 'in', field: 'owner', values: ['ann', 'dan'], negated: false }, 'ann or dan')
    index.add(above, 'any owner')
    index.add({ kind: 'const', value: false }, 'no row')
    const found = (of: Record<string, unknown>): string[] => {
      const set = new Set<string>()
      index.candidates(of, set)
      return [...set].sort()
    }
    expect(found({ owner: 'ann', team: 'x' })).toEqual(['ann', 'ann or dan', 'any owner'])
    expect(found({ owner: 'zoe', team: 't' })).toEqual(['any owner', 'cid or t'])
    expect(found({})).toEqual(['any owner'])
    expect(index.size).toBe(6)
  })
})
