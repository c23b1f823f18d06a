/**
 * Random expressions over random rows: the stored values are those of a naive implementation, to the last bit, and so
 * the same on every engine; filters and orders agree with them.
 */
import { beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { when } from '../../../src/config/define.ts'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { describeServer } from '../../harness/server.ts'

type Value = number | string | boolean | null
type Row = Readonly<Record<string, Value>>
// biome-ignore lint/suspicious/noExplicitAny: expressions of any type.
type Any = any

/** An expression for the configuration, and its value by a naive implementation. */
interface Case {
  readonly build: (fields: Any) => Any
  readonly value: (row: Row) => Value
}

const numbers = [0, 1, -1, 2.5, 0.1, 1.005, -2.5, 1e-7, 3, 1e15, 2 ** 53, 1e21, -1e300, 1.7e308, 5e-324, 100]
const texts = ['', 'a', ' A b ', 'İstanbul', 'straße', 'ÀÉ', '😀x', '\u00a0y', "'", '"%_\\', 'Z', '\uff21']
const instants = [
  '0000-01-01T00:00:00.000Z',
  '2026-01-31T12:00:00.123Z',
  '2026-03-29T01:00:00.000Z',
  '9999-12-31T23:59:59.999Z',
]

const field = (...names: readonly string[]): fc.Arbitrary<Case> =>
  fc.constantFrom(...names).map((name) => ({ build: (f) => f[name], value: (row) => row[name] ?? null }))
const constant = (...values: readonly Value[]): fc.Arbitrary<Case> =>
  fc.constantFrom(...values).map((value) => ({ build: () => value, value: () => value }))

/** Null where an operand is null, or where the result is not a finite number. */
const strict =
  (compute: (...values: Any[]) => Value) =>
  (...operands: readonly Case[]) =>
  (row: Row): Value => {
    const values = operands.map((one) => one.value(row))
    if (values.includes(null)) return null
    const result = compute(...values)
    return typeof result === 'number' && !Number.isFinite(result) ? null : result === 0 ? 0 : result
  }

const method = (name: string, compute: (...values: Any[]) => Value, ...operands: readonly fc.Arbitrary<Case>[]) =>
  fc.tuple(...operands).map((all): Case => {
    const [self, ...others] = all as [Case, ...Case[]]
    return {
      build: (f) => self.build(f)[name](...others.map((one) => one.build(f))),
      value: strict(compute)(...all),
    }
  })

const points = (text: string): number[] => [...text].map((point) => point.codePointAt(0) as number)
const ordered = (a: string, b: string): number => {
  const [x, y] = [points(a), points(b)]
  const at = x.findIndex((point, index) => point !== y[index])
  return at === -1 ? x.length - y.length : (x[at] as number) - (y[at] ?? -1)
}
const by: Readonly<Record<string, (order: number) => boolean>> = {
  '==': (order) => order === 0,
  '!=': (order) => order !== 0,
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
}
const comparison = (self: fc.Arbitrary<Case>, other: fc.Arbitrary<Case>, order: (a: Any, b: Any) => number) =>
  fc.tuple(self, other, fc.constantFrom(...Object.keys(by))).map(
    ([a, b, op]): Case => ({
      build: (f) => a.build(f).is(op, b.build(f)),
      value: strict((x, y) => (by[op] as (order: number) => boolean)(order(x, y)))(a, b),
    }),
  )
const difference = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0)

const orElse = (self: fc.Arbitrary<Case>, other: fc.Arbitrary<Case>) =>
  fc
    .tuple(self, other)
    .map(
      ([a, b]): Case => ({ build: (f) => a.build(f).orElse(b.build(f)), value: (row) => a.value(row) ?? b.value(row) }),
    )
const choice = (condition: fc.Arbitrary<Case>, self: fc.Arbitrary<Case>, other: fc.Arbitrary<Case>) =>
  fc.tuple(condition, self, other).map(
    ([c, a, b]): Case => ({
      build: (f) => when(c.build(f), a.build(f), b.build(f)),
      value(row) {
        const isTrue = c.value(row)
        return isTrue === null ? null : (isTrue ? a : b).value(row)
      },
    }),
  )

const shift = (instant: string, seconds: number): Value => {
  const ms = new Date(instant).getTime() + Math.round(seconds * 1000)
  return ms < Date.parse(instants[0] as string) || ms > Date.parse(instants[3] as string)
    ? null
    : new Date(ms).toISOString()
}

const { number, text, flag, instant } = fc.letrec<Record<'number' | 'text' | 'flag' | 'instant', Case>>((tie) => {
  const [n, t, b, d] = [tie('number'), tie('text'), tie('flag'), tie('instant')]
  const nOr = fc.oneof(n, constant(...numbers))
  const tOr = fc.oneof(t, constant(...texts))
  const dOr = fc.oneof(d, constant(...instants))
  const deep = { maxDepth: 3, depthSize: 'small' } as const
  return {
    number: fc.oneof(
      deep,
      field('n', 'm', 'k'),
      method('plus', (x, y) => x + y, n, nOr),
      method('minus', (x, y) => x - y, n, nOr),
      method('times', (x, y) => x * y, n, nOr),
      method('dividedBy', (x, y) => (y === 0 ? null : x / y), n, nOr),
      method('round', (x, digits) => Number(x.toFixed(digits)), n, constant(0, 1, 2, 15)),
      method('floor', Math.floor, n),
      method('ceil', Math.ceil, n),
      method('abs', Math.abs, n),
      method('length', (x) => points(x).length, t),
      method('secondsSince', (x, y) => (new Date(x).getTime() - new Date(y).getTime()) / 1000, d, dOr),
      orElse(n, nOr),
      choice(b, n, nOr),
    ),
    text: fc.oneof(
      deep,
      field('s', 'u'),
      method('lower', (x) => x.toLowerCase(), t),
      method('upper', (x) => x.toUpperCase(), t),
      method('trim', (x) => x.trim(), t),
      method('concat', (x, y) => x + y, t, tOr),
      orElse(t, tOr),
      choice(b, t, tOr),
    ),
    flag: fc.oneof(
      deep,
      field('p'),
      method('and', (x, y) => x && y, b, fc.oneof(b, constant(true, false))),
      method('or', (x, y) => x || y, b, fc.oneof(b, constant(true, false))),
      method('not', (x) => !x, b),
      fc.oneof(n, t, d).map(
        (one): Case => ({
          build: (f) => one.build(f).isNull(),
          value: (row) => one.value(row) === null,
        }),
      ),
      comparison(n, nOr, difference),
      comparison(t, tOr, ordered),
      comparison(d, dOr, ordered),
    ),
    instant: fc.oneof(
      deep,
      field('at', 'until'),
      method('plusSeconds', shift, d, fc.oneof(n, constant(-3600, 0.0004, 0.0005, 86400, 1e12))),
      orElse(d, dOr),
      choice(b, d, dOr),
    ),
  }
})

/** The seed is fixed, since the configuration is made of the expressions. */
const seed = Number(process.env.PLINTH_FUZZ_SEED ?? 20_261)
const sample = (type: string, cases: fc.Arbitrary<Case>, count: number) =>
  fc.sample(cases, { numRuns: count, seed }).map((one, at) => ({ name: `${type}${at}`, type, ...one }))
const computed = [
  ...sample('number', number, 16),
  ...sample('text', text, 12),
  ...sample('boolean', flag, 12),
  ...sample('datetime', instant, 8),
]

const nullable = (values: readonly Value[]) => fc.option(fc.constantFrom(...values), { nil: null, freq: 4 })
const rows = fc.sample(
  fc.record({
    n: nullable(numbers),
    m: nullable(numbers),
    k: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }), { nil: null }),
    s: nullable(texts),
    u: nullable(texts),
    p: nullable([true, false]),
    at: nullable(instants),
    until: nullable(instants),
  }),
  { numRuns: 150, seed },
)

const plain = (type: string) => ({ type })
const schema = {
  ...{ n: plain('number'), m: plain('number'), k: plain('number'), s: plain('string'), u: plain('text') },
  ...{ p: plain('boolean'), at: plain('datetime'), until: plain('datetime') },
  ...Object.fromEntries(computed.map(({ name, type, build }) => [name, { type, computed: build }])),
}
const config = { databases: { shared: { tables: { items: { schema, access: open } } } } }
const items = '/api/db/shared/tables/items'

describeServer('random expressions', { config }, (server) => {
  beforeAll(async () => {
    const inserts = rows.map((row, at) => ({ id: `r${String(at).padStart(3, '0')}`, ...row }))
    expect((await server.service.post(`${items}/batch`, { inserts })).status).toBe(200)
  })

  const expected = rows.map((row) => Object.fromEntries(computed.map(({ name, value }) => [name, value(row as Row)])))

  test('[DB-COMPUTED-3] every value is that of the naive implementation', async () => {
    const found = (await server.anonymous.get(items + query({ limit: 1000, sort: 'id:asc' }))).body.items
    expect(found).toHaveLength(rows.length)
    for (const [at, row] of found.entries()) expect(row).toMatchObject(expected[at] as object)
    const values = expected.flatMap((one) => Object.values(one))
    expect(values.filter((value) => value !== null).length).toBeGreaterThan(values.length / 5)
    expect(values.filter((value) => value === null).length).toBeGreaterThan(values.length / 50)
  })

  test('[DB-COMPUTED-6] filters find the rows with a value', async () => {
    for (const { name, type } of computed) {
      const value = expected.map((one) => one[name]).find((one) => one !== null && one !== undefined)
      if (value === undefined) continue
      const { body } = await server.anonymous.get(items + query({ filter: [[name, '==', value]], limit: 1000 }))
      const isSame = (other: Value | undefined): boolean =>
        type === 'text' ? ordered(String(other), String(value)) === 0 : other === value
      expect(body.total).toBe(expected.filter((one) => one[name] !== null && isSame(one[name])).length)
    }
  })
})
