/** Computed fields are right after every request that can write a row, and no request can set them. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { when } from '../../../src/config/define.ts'
import type { Answer } from '../../harness/client.ts'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { watch } from '../../harness/records/live.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'

// biome-ignore lint/suspicious/noExplicitAny: the types of expressions have tests of their own.
type Fields = any
const schema = {
  // Declared before what they read: the order of declaration does not matter.
  size: { type: 'string', computed: (f: Fields) => when(f.total.is('>', 100), 'large', 'small') },
  total: { type: 'number', computed: (f: Fields) => f.price.times(f.quantity) },
  price: { type: 'number' },
  quantity: { type: 'number', default: 1 },
  email: { type: 'string' },
  address: { type: 'string', unique: true, computed: (f: Fields) => f.email.trim().lower() },
  cost: { type: 'number' },
  margin: { type: 'number', computed: (f: Fields) => f.price.minus(f.cost) },
}
const table = { schema, hidden: ['cost', 'margin'], search: ['address'], access: open }
const config = {
  databases: {
    shared: { tables: { orders: table, notes: { access: open } } },
    team: { instance: true, access: () => true, tables: { orders: table } },
  },
}

interface Stored {
  readonly [field: string]: unknown
  readonly price: number | null
  readonly quantity: number | null
  readonly email: string | null
  readonly cost: number | null
}

const times = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a * b)

/** What the computed fields of a row must be. */
function computedOf({ price, quantity, email, cost }: Stored) {
  const total = times(price, quantity)
  return {
    total,
    size: total === null ? null : total > 100 ? 'large' : 'small',
    address: email?.trim().toLowerCase() ?? null,
    margin: price === null || cost === null ? null : price - cost,
  }
}

const bases = ['/api/db/shared/tables/orders', '/api/db/team/t1/tables/orders'] as const
const transactionOf = (base: string): string => `${base.slice(0, base.indexOf('/tables'))}/transaction`

type Send = (server: TestServer, base: string) => Promise<Answer>
const post =
  (path: string, body: object): Send =>
  ({ service }, base) =>
    service.post(base + path, body)

/** Requests that write rows; `a` and `b` exist. */
const writes: readonly (readonly [string, Send])[] = [
  ['insert', post('', { price: 60, quantity: 2, email: ' New@X.org ', cost: 50 })],
  ['insert without operands', post('', {})],
  ['update of an operand', ({ service }, base) => service.patch(`${base}/a`, { price: 99.5 })],
  ['update of a hidden operand', ({ service }, base) => service.patch(`${base}/a`, { cost: 4 })],
  ['update to null', ({ service }, base) => service.patch(`${base}/a`, { price: null })],
  ['increment', ({ service }, base) => service.patch(`${base}/a`, { quantity: { $op: 'increment', value: 40 } })],
  ['deleteField', ({ service }, base) => service.patch(`${base}/a`, { email: { $op: 'deleteField' } })],
  ['upsert that inserts', post('?upsert=true', { id: 'n', price: 1, quantity: 500 })],
  ['upsert that updates', post('?upsert=true', { id: 'a', quantity: 500 })],
  [
    'batch',
    post('/batch', {
      inserts: [{ price: 5 }, { price: 6, quantity: 7 }],
      updates: [
        { id: 'a', data: { price: 7 } },
        { id: 'a', data: { quantity: { $op: 'increment', value: 1 } } },
        { id: 'b', data: { email: 'Other@X' } },
      ],
    }),
  ],
  [
    'batch of upserts',
    post('/batch?upsert=true', {
      inserts: [
        { id: 'a', price: 8 },
        { id: 'n', price: 9 },
      ],
    }),
  ],
  ['batch by filter', post('/batch-by-filter', { action: 'update', filter: [['total', '>', 1]], data: { price: 3 } })],
  [
    'transaction',
    ({ service }, base) =>
      service.post(transactionOf(base), {
        operations: [
          { table: 'orders', insert: { id: 'n', price: 1, quantity: 1 } },
          { table: 'orders', update: { id: 'n', data: { quantity: { $op: 'increment', value: 200 } } } },
          { table: 'orders', upsert: { id: 'a', price: 2 } },
          { table: 'orders', update: { id: 'b', data: { price: null } } },
        ],
      }),
  ],
  [
    'repeated request',
    async ({ service }, base) => {
      const headers = { 'idempotency-key': crypto.randomUUID() }
      const first = await service.post(base, { price: 4, quantity: 4 }, headers)
      const again = await service.post(base, { price: 4, quantity: 4 }, headers)
      expect(again.body).toEqual(first.body)
      expect(first.body).toMatchObject({ total: 16, size: 'small' })
      return again
    },
  ],
]

/** Requests that name a computed field. */
const refused: readonly (readonly [string, Send, string])[] = [
  ['insert', post('', { price: 1, total: 1 }), 'total'],
  ['insert of the right value', post('', { price: 1, quantity: 2, total: 2 }), 'total'],
  ['insert of null', post('', { total: null }), 'total'],
  ['update', ({ service }, base) => service.patch(`${base}/a`, { total: 1 }), 'total'],
  ['hidden', ({ service }, base) => service.patch(`${base}/a`, { margin: 1 }), 'margin'],
  ['increment', ({ service }, base) => service.patch(`${base}/a`, { total: { $op: 'increment', value: 1 } }), 'total'],
  ['deleteField', ({ service }, base) => service.patch(`${base}/a`, { size: { $op: 'deleteField' } }), 'size'],
  ['upsert', post('?upsert=true', { id: 'a', size: 'large' }), 'size'],
  ['batch of inserts', post('/batch', { inserts: [{}, { total: 1 }] }), 'inserts[1].total'],
  ['batch of updates', post('/batch', { updates: [{ id: 'a', data: { total: 1 } }] }), 'updates[0].total'],
  ['batch by filter', post('/batch-by-filter', { action: 'update', filter: [], data: { size: 'x' } }), 'data.size'],
  [
    'transaction',
    ({ service }, base) =>
      service.post(transactionOf(base), {
        operations: [
          { table: 'orders', insert: {} },
          { table: 'orders', insert: { total: 1 } },
        ],
      }),
    'operations[1].total',
  ],
]

describeServer('computed fields', { config }, (server) => {
  beforeEach(async () => {
    for (const base of bases) {
      const cleared = await server.service.post(`${base}/batch-by-filter`, { action: 'delete', filter: [] })
      expect(cleared.status).toBe(200)
      const inserts = [
        { id: 'a', price: 10, quantity: 3, email: 'Ada@X.org', cost: 8 },
        { id: 'b', price: 50.25, quantity: 4, email: 'bob@x.org', cost: null },
      ]
      expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
    }
  })

  describe.each(bases)('%s', (base) => {
    const list = async (): Promise<Stored[]> => (await server.service.get(base)).body.items

    test.each(writes)('[DB-COMPUTED-1] are right after: %s', async (_, send) => {
      const before = JSON.stringify(await list())
      const answer = await send(server, base)
      expect(answer.status).toBeLessThan(300)
      const rows = await list()
      expect(JSON.stringify(rows)).not.toBe(before)
      for (const row of rows) expect(row).toMatchObject(computedOf(row))
    })

    test.each(refused)('[DB-COMPUTED-2] cannot be written by: %s', async (_, send, place) => {
      const before = await server.dump(...bases)
      const answer = await send(server, base)
      expectRefusal(answer, 400, 'invalid-input')
      expect(Object.keys(answer.body.data)).toEqual([place])
      expect(answer.body.data[place].message).toBe('is computed from other fields and cannot be written')
      expect(await server.dump(...bases)).toEqual(before)
    })

    test('[DB-COMPUTED-2] a hidden computed field is unknown to other callers', async () => {
      const { anonymous, service } = server
      const answer = await anonymous.patch(`${base}/a`, { margin: 1, total: 2 })
      expectRefusal(answer, 400, 'invalid-input')
      expect(answer.body.data.margin).toEqual({ code: 'unknown', message: 'unknown field' })
      expect((await anonymous.get(`${base}/a`)).body).not.toHaveProperty('margin')
      expect((await service.get(`${base}/a`)).body.margin).toBe(2)
    })

    test('[DB-COMPUTED-6] filter, sort, group, measure, search and explain as other fields', async () => {
      const { anonymous, service } = server
      const ids = async (parameters: Record<string, unknown>) =>
        (await anonymous.get(base + query(parameters))).body.items.map(({ id }: { id: string }) => id)
      expect(await ids({ filter: [['total', '>', 30]] })).toEqual(['b'])
      expect(await ids({ filter: [['size', '==', 'small']] })).toEqual(['a'])
      expect(await ids({ sort: 'total:desc' })).toEqual(['b', 'a'])
      const aggregate = await anonymous.get(
        `${base}/aggregate${query({ group: ['size'], measures: { sum: { sum: 'total' } }, sort: 'sum:asc' })}`,
      )
      expect(aggregate.body.groups).toEqual([
        { size: 'small', sum: 30 },
        { size: 'large', sum: 201 },
      ])
      const found = await anonymous.get(`${base}/search${query({ q: 'ada' })}`)
      expect(found.body.items.map(({ id }: { id: string }) => id)).toEqual(['a'])
      await anonymous.patch(`${base}/a`, { email: 'Grace@X.org' })
      expect((await anonymous.get(`${base}/search${query({ q: 'grace' })}`)).body.items).toHaveLength(1)
      expect((await anonymous.get(`${base}/search${query({ q: 'ada' })}`)).body.items).toHaveLength(0)
      const explained = await service.get(base + query({ filter: [['total', '>', 30]], explain: 1 }))
      expect(explained.body.explain.sql).toContain('total')
    })

    test('[DB-COMPUTED-7] a unique computed field refuses a second value', async () => {
      const { anonymous } = server
      const answer = await anonymous.post(base, { email: ' ADA@x.org' })
      expectRefusal(answer, 409, 'conflict')
      expect(answer.body.data).toEqual({ address: { code: 'unique', message: 'is already taken' } })
      expectRefusal(await anonymous.patch(`${base}/b`, { email: 'ada@X.ORG' }), 409, 'conflict')
      expectRefusal(await anonymous.post(`${base}?upsert=true&conflictTarget=address`, { email: 'x' }), 400)
    })
  })

  test('[DB-COMPUTED-6] a change of an operand is a change of the computed field for subscribers', async () => {
    const token = await server.token({ id: 'u' })
    const subscribe = { filter: [['total', '>', 100]] }
    const socket = await watch(server.url, { channel: 'dblive:shared:orders', token, subscribe })
    await server.anonymous.patch(`${bases[0]}/a`, { quantity: 30 })
    const change = await socket.expect('db_change')
    expect(change).toMatchObject({ changeType: 'added', data: { id: 'a', total: 300, size: 'large' } })
    expect(JSON.stringify(change)).not.toContain('margin')
    await socket.close()
  })
})
