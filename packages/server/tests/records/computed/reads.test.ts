/** Computed fields where they are read: through `include`, in conditions through relations, and by functions. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { openFunctionProject } from '../../harness/functions.ts'
import { describeServer } from '../../harness/server.ts'

// biome-ignore lint/suspicious/noExplicitAny: the types of expressions have tests of their own.
type Fields = any
const config = {
  databases: {
    shared: {
      tables: {
        orders: {
          schema: { name: { type: 'string' }, label: { type: 'string', computed: (f: Fields) => f.name.upper() } },
          access: { read: true },
        },
        lines: {
          schema: {
            orderId: { type: 'string', references: 'orders' },
            price: { type: 'number' },
            quantity: { type: 'number' },
            cost: { type: 'number' },
            total: { type: 'number', computed: (f: Fields) => f.price.times(f.quantity) },
            margin: { type: 'number', computed: (f: Fields) => f.total.minus(f.cost) },
          },
          hidden: ['cost', 'margin'],
          access: { read: true, insert: true, update: true },
        },
      },
    },
  },
} as const
const orders = '/api/db/shared/tables/orders'
const lines = '/api/db/shared/tables/lines'

const project = openFunctionProject(`
export const add = rpc({ caller: 'anyone' }, (line, ctx) => ctx.db('shared').lines.insert(line))
export const change = rpc({ caller: 'anyone' }, async ({ id, ...patch }, ctx) => {
  const before = await ctx.db('shared').lines.get(id)
  const after = await ctx.db('shared').lines.update(id, patch)
  return [before.total, after.total]
})
export const large = rpc({ caller: 'anyone' }, (least, ctx) => ctx.db('shared').lines.where('total', '>=', least).sort('total', 'desc').list())
export const margins = rpc({ caller: 'anyone' }, (input, ctx) => ctx.service.db('shared').lines.sort('margin').list())
`)

afterAll(() => project.remove())

describeServer('reads of computed fields', { config, settings: { projectFolder: project.folder } }, (server) => {
  beforeAll(async () => {
    const insert = async (base: string, inserts: readonly object[]) =>
      expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
    await insert(orders, [
      { id: 'a', name: 'ann' },
      { id: 'b', name: 'bob' },
    ])
    await insert(lines, [
      { id: 'l1', orderId: 'a', price: 2, quantity: 3, cost: 1 },
      { id: 'l2', orderId: 'a', price: 10, quantity: 1, cost: 8 },
      { id: 'l3', orderId: 'b', price: 1, quantity: null, cost: 0 },
    ])
  })

  test('[DB-COMPUTED-6] include shows, selects and sorts by them', async () => {
    const include = { lines: { where: [['total', '>', 5]], sort: 'total:desc', fields: ['id', 'total'], count: true } }
    const { body } = await server.anonymous.get(orders + query({ include, fields: 'label' }))
    expect(body.items).toEqual([
      {
        label: 'ANN',
        lines: {
          items: [
            { id: 'l2', total: 10 },
            { id: 'l1', total: 6 },
          ],
          total: 2,
        },
      },
      { label: 'BOB', lines: { items: [], total: 0 } },
    ])
    const record = await server.anonymous.get(`${lines}/l3${query({ include: { order: { fields: ['label'] } } })}`)
    expect(record.body).toMatchObject({ total: null, order: { label: 'BOB' } })
    expect(record.text).not.toContain('margin')
  })

  test('[DB-COMPUTED-6] conditions through relations compare them', async () => {
    const some = [['lines', 'some', [['total', '==', 6]]]]
    expect((await server.anonymous.get(orders + query({ filter: some }))).body.items).toMatchObject([{ id: 'a' }])
    const ofBob = [['order.label', '==', 'BOB']]
    expect((await server.anonymous.get(lines + query({ filter: ofBob }))).body.items).toMatchObject([{ id: 'l3' }])
  })

  test('[DB-COMPUTED-1, DB-COMPUTED-5, DB-COMPUTED-6] functions read what the caller may, and the service all', async () => {
    const call = async (name: string, input?: unknown) => {
      const answer = await server.anonymous.post(`/api/fn/${name}`, input)
      expect(answer.status, answer.text).toBe(200)
      return answer.body
    }
    const added = await call('add', { id: 'l4', orderId: 'b', price: 5, quantity: 5 })
    expect(added.total).toBe(25)
    expect(added).not.toHaveProperty('margin')
    expect(await call('change', { id: 'l4', quantity: 4 })).toEqual([25, 20])
    expect((await call('large', 10)).items.map(({ id }: { id: string }) => id)).toEqual(['l4', 'l2'])
    expect((await call('margins')).items.map(({ margin }: { margin: number | null }) => margin)).toEqual([
      null,
      null,
      2,
      5,
    ])
  })
})
