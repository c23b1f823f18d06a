/**
 * What the types of computed fields accept and refuse: their expressions in the configuration, and rows, inserts and
 * patches of clients and functions. The compiler is the test, as in `config-types.test.ts`.
 */
import { expect, test } from 'bun:test'
import type { Insert, Patch, Row, Upsert } from 'plinth-client'
import { type ComputedOperands, defineConfig, type PlinthConfig, when } from '../../src/config/define.ts'

const config = defineConfig({
  databases: {
    shared: {
      tables: {
        orders: {
          schema: {
            price: { type: 'number', required: true, min: 0 },
            quantity: { type: 'number', default: 1 },
            title: { type: 'string' },
            body: { type: 'text' },
            paid: { type: 'boolean' },
            dueAt: { type: 'datetime' },
            tags: { type: 'json' },
            total: { type: 'number', computed: (f) => f.price.times(f.quantity).round(2) },
            label: { type: 'string', unique: true, computed: (f) => f.title.lower().trim().concat('-', f.body) },
            size: { type: 'text', computed: (f) => when(f.price.is('>', 100), 'large', null) },
            open: { type: 'boolean', computed: (f) => f.paid.not().or(f.dueAt.isNull()) },
            remindAt: { type: 'datetime', computed: (f) => f.dueAt.orElse('2030-01-01').plusSeconds(-3600) },
            age: { type: 'number', computed: (f) => f.updatedAt.secondsSince(f.createdAt) },
            twice: { type: 'number', computed: (f) => f.total.times(2) },
            secret: { type: 'number', computed: (f) => f.price.minus(1) },

            // @ts-expect-error: no such field.
            a: { type: 'number', computed: (f) => f.prise.times(2) },
            // @ts-expect-error: an operation on numbers.
            b: { type: 'number', computed: (f) => f.title.times(2) },
            // @ts-expect-error: an operand of another type.
            c: { type: 'number', computed: (f) => f.price.plus(f.title) },
            // @ts-expect-error: an operation on numbers, of another computed field.
            g: { type: 'number', computed: (f) => f.label.times(2) },
            // @ts-expect-error: a constant of another type.
            d: { type: 'number', computed: (f) => f.price.plus('1') },
            // @ts-expect-error: JSON fields have no operations.
            e: { type: 'number', computed: (f) => f.tags.length() },
            // @ts-expect-error: no such comparison.
            f: { type: 'boolean', computed: (f) => f.price.is('=', 2) },
          },
          indexes: [{ fields: ['total', 'size'] }],
          search: ['label'],
          hidden: ['secret'],
          access: { read: true, insert: (auth) => auth && { total: 5 } },
        },
        others: { schema: { name: { type: 'string' }, lower: { type: 'string', computed: (f) => f.name.lower() } } },
      },
    },
    team: {
      instance: true,
      tables: { tasks: { schema: { n: { type: 'number' }, m: { type: 'number', computed: (f) => f.n.plus(1) } } } },
    },
  },
})

defineConfig({
  databases: {
    shared: {
      tables: {
        results: {
          schema: {
            n: { type: 'number' },
            s: { type: 'string' },
            // @ts-expect-error: the expression is a number.
            a: { type: 'string', computed: (f) => f.n.plus(1) },
          },
        },
        constants: {
          schema: {
            // @ts-expect-error: not an expression.
            a: { type: 'number', computed: () => 5 },
          },
        },
        options: {
          schema: {
            n: { type: 'number' },
            // @ts-expect-error: computed fields have no default.
            a: { type: 'number', default: 1, computed: (f) => f.n.plus(1) },
          },
        },
        required: {
          schema: {
            n: { type: 'number' },
            // @ts-expect-error: a computed field is null where what it reads is.
            a: { type: 'number', required: true, computed: (f) => f.n.plus(1) },
          },
        },
        json: {
          schema: {
            n: { type: 'number' },
            // @ts-expect-error: not for JSON.
            a: { type: 'json', computed: (f) => f.n },
          },
        },
      },
    },
  },
})

/** A configuration whose type is not inferred. */
type Operands = ComputedOperands<{ n: 'number' }>
export const annotated: PlinthConfig = {
  databases: {
    shared: {
      tables: {
        t: { schema: { n: { type: 'number' }, m: { type: 'number', computed: (f: Operands) => f.n.plus(1) } } },
      },
    },
  },
}

type Orders = (typeof config)['databases']['shared']['tables']['orders']

export const row = (order: Row<Orders>): [number | null, string | null, boolean | null] => [
  order.total,
  order.remindAt,
  order.open,
]
// @ts-expect-error: hidden.
export const hidden = (order: Row<Orders>) => order.secret

export const insert: Insert<Orders> = { price: 1 }
export const badInserts: Insert<Orders>[] = [
  // @ts-expect-error: computed.
  { price: 1, total: 1 },
  // @ts-expect-error: computed.
  { price: 1, label: null },
]
export const patch: Patch<Orders> = { price: 1 }
// @ts-expect-error: computed.
export const badPatch: Patch<Orders> = { total: 1 }
// @ts-expect-error: computed.
export const badUpsert: Upsert<Orders> = { price: 1, total: 1 }

test('[DB-COMPUTED-9] the declared types are those at run time', () => {
  expect(config.databases.shared.tables.orders.schema.total.type).toBe('number')
  expect(typeof config.databases.shared.tables.orders.schema.total.computed).toBe('function')
})
