import { expect, test } from 'bun:test'
import { computedFieldsMax, computedNodesMax } from '../../../../limits/writes.ts'
import { findMistakes } from '../../../validate.ts'
import { when } from './build-expression.ts'

// biome-ignore lint/suspicious/noExplicitAny: expressions that the compiler would refuse.
type Fields = any
const number = (computed: unknown) => ({ type: 'number', computed })

const schema = {
  price: { type: 'number' },
  title: { type: 'string' },
  paid: { type: 'boolean' },
  dueAt: { type: 'datetime' },
  tags: { type: 'json' },
  cost: { type: 'number' },
}
const mistakesOf = (more: object, hidden: readonly string[] = []): readonly string[] =>
  findMistakes({ databases: { shared: { tables: { orders: { schema: { ...schema, ...more }, hidden } } } } }, '')
const at = 'databases.shared.tables.orders.schema'

test.each<[name: string, computed: unknown, message: string]>([
  ['an unknown field', (f: Fields) => f.prise.plus(1), '"prise" is not a field of this table. Did you mean "price"?'],
  ['a JSON field', (f: Fields) => f.tags.length(), '"tags" is of type json, which expressions cannot read'],
  ['an unknown operation', (f: Fields) => f.price.add(1), '"add" is not an operation on a number.'],
  ['an operation on another type', (f: Fields) => f.title.times(2), '"times" is not an operation on a text.'],
  ['an operand of another type', (f: Fields) => f.price.plus(f.title), '"plus" needs a number, not a text'],
  ['a constant of another type', (f: Fields) => f.price.plus('1'), '"plus" needs a number'],
  ['an operand too few', (f: Fields) => f.price.plus(), '"plus" needs a number'],
  ['a constant that is not finite', (f: Fields) => f.price.plus(Number.NaN), '"plus" needs a number'],
  ['a malformed datetime', (f: Fields) => f.dueAt.secondsSince('soon'), '"secondsSince" needs a datetime'],
  ['a constant with NUL', (f: Fields) => f.title.concat('\0').length(), '"concat" needs a text'],
  ['a lone surrogate', (f: Fields) => f.title.concat('\ud800').length(), '"concat" needs a text'],
  ['an unknown comparison', (f: Fields) => when(f.price.is('=', 1), 1, 2), '"is" needs one of == != < <= > >='],
  ['an order of booleans', (f: Fields) => when(f.paid.is('<', true), 1, 2), '"is" needs one of == !='],
  ['a condition that is none', (f: Fields) => when(f.price, 1, 2), '"when" needs true or false, not a number'],
  ['branches of two types', (f: Fields) => when(f.paid, f.price, 'x' as never), '"when" needs a number'],
  ['too many decimals', (f: Fields) => f.price.round(16), '"round" needs a number of decimals from 0 to 15'],
  ['a result of another type', (f: Fields) => f.title, 'gives a value of type text, and the field is of type number'],
  ['a constant', () => 5, 'must return an expression of the fields, such as f.price.times(f.quantity)'],
  ['a failure', () => JSON.parse('{'), 'fails: SyntaxError'],
  ['an asynchronous function', async (f: Fields) => f.price, 'must not be asynchronous'],
  ['no function', true, 'must be a function of the fields'],
  ['itself', (f: Fields) => f.total.plus(1), 'is computed from itself: total → total'],
])('[DB-COMPUTED-4] %s is refused', (_, computed, message) => {
  const [first, ...others] = mistakesOf({ total: number(computed) })
  expect(first).toStartWith(`${at}.total.computed: ${message}`)
  expect(others).toEqual([])
})

test('[DB-COMPUTED-4] a cycle is refused with its fields', () => {
  const cycle = {
    a: number((f: Fields) => f.b.plus(1)),
    b: number((f: Fields) => f.c.plus(1)),
    c: number((f: Fields) => f.b.times(2)),
  }
  expect(mistakesOf(cycle)).toEqual([`${at}.b.computed: is computed from itself: b → c → b`])
})

test('[DB-COMPUTED-4] the size of expressions and the number of computed fields are bounded', () => {
  const doubled = (f: Fields) => {
    let all = f.price
    for (let n = 0; n < 60; n++) all = all.plus(all)
    return all
  }
  expect(mistakesOf({ total: number(doubled) })).toEqual([
    `${at}.total.computed: has more than ${computedNodesMax} operations, fields and constants`,
  ])
  const copies = Array.from({ length: computedFieldsMax + 1 }, (_, n) => [`c${n}`, number((f: Fields) => f.price)])
  expect(mistakesOf(Object.fromEntries(copies))).toEqual([`${at}: has more than ${computedFieldsMax} computed fields`])
})

test.each([
  ['required', true],
  ['default', 1],
  ['min', 0],
  ['max', 9],
  ['enum', [1]],
])('[DB-COMPUTED-4] the option %s is refused', (option, value) => {
  const total = { ...number((f: Fields) => f.price), [option]: value }
  expect(mistakesOf({ total })).toEqual([`${at}.total.${option}: is not for computed fields`])
})

test.each(['json', 'geo'])('[DB-COMPUTED-4] a field of type %s is not computed', (type) => {
  expect(mistakesOf({ total: { type, computed: (f: Fields) => f.price } })).toContain(
    `${at}.total.computed: is not for fields of type ${type}`,
  )
})

test('[DB-COMPUTED-5] what reads a hidden field must be hidden, through other computed fields too', () => {
  const margin = number((f: Fields) => f.price.minus(f.cost))
  const twice = number((f: Fields) => f.margin.times(2))
  const reads = (field: string, operand: string) =>
    `${at}.${field}.computed: reads "${operand}", which is hidden: "${field}" must be hidden too, or it would reveal it`
  expect(mistakesOf({ margin }, ['cost'])).toEqual([reads('margin', 'cost')])
  expect(mistakesOf({ margin, twice }, ['cost', 'margin'])).toEqual([reads('twice', 'margin')])
  expect(mistakesOf({ margin, twice }, ['cost', 'margin', 'twice'])).toEqual([])
  const untouched = number((f: Fields) => when(f.cost.isNull(), 1, 2))
  expect(mistakesOf({ untouched }, ['cost'])).toEqual([reads('untouched', 'cost')])
})
