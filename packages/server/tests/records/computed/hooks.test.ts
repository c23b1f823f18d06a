/** Computed fields and functions that run before a write: they see the values, cannot set them, and change operands. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { engines } from '../../harness/engines.ts'
import { type Hook, type HookedRecords, openHookedRecords } from '../../harness/records/hooked-records.ts'

// biome-ignore lint/suspicious/noExplicitAny: the types of expressions have tests of their own.
type Fields = any
const tables = {
  orders: {
    schema: {
      price: { type: 'number' },
      quantity: { type: 'number' },
      total: { type: 'number', computed: (f: Fields) => f.price.times(f.quantity) },
    },
    access: { read: true, insert: true, update: true, delete: true },
  },
}

describe.each(engines.map((engine) => [engine.name, engine] as const))('computed fields on %s', (_, engine) => {
  let records: HookedRecords
  beforeAll(async () => {
    records = await openHookedRecords(engine, tables)
  })
  afterAll(() => records.close())

  const set = (hook: Hook): void => {
    records.hooks.clear()
    records.events.length = 0
    for (const operation of ['insert', 'update']) records.hooks.set(`orders.${operation}`, hook)
  }
  const insert = (id: string) =>
    records.request('records.insert', { table: 'orders', body: { id, price: 2, quantity: 3 } })
  const update = (id: string, body: object) => records.request('records.update', { table: 'orders', id, body })

  test('[DB-COMPUTED-1] a hook is given the value, and what it makes of operands is computed', async () => {
    set(({ row }) => ({ ...row, quantity: 10 }))
    expect((await insert('a')).body).toMatchObject({ quantity: 10, total: 20 })
    expect(records.events[0]?.row).toMatchObject({ quantity: 3, total: 6 })
    set(({ row }) => ({ ...row, quantity: 4 }))
    expect((await update('a', { price: 5 })).body).toMatchObject({ price: 5, quantity: 4, total: 20 })
    expect(records.events[0]).toMatchObject({ previous: { total: 20 }, row: { price: 5, total: 50 } })
  })

  test('[DB-COMPUTED-1] a hook may return the row without the computed field', async () => {
    set(({ row: { total, ...row } }) => ({ ...row, quantity: 7 }))
    expect((await insert('b')).body.total).toBe(14)
    expect((await update('b', { price: 3 })).body.total).toBe(21)
  })

  test('[DB-COMPUTED-2] a hook cannot set it', async () => {
    set(({ row }) => ({ ...row, total: 1 }))
    const before = await records.dump()
    const refused = await insert('c')
    expect(refused.status).toBe(500)
    expect(JSON.stringify(refused.body)).toContain('total: is computed from other fields and cannot be written')
    expect((await update('a', { price: 1 })).status).toBe(500)
    expect(await records.dump()).toEqual(before)
  })
})
