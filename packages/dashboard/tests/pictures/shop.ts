/** A server with the data of a small shop, for the pictures of the guides: its configuration, and what fills it. */
import { createECDH } from 'node:crypto'
import { or } from '../../../server/src/access/filter.ts'
import { openPushEndpoint } from '../../../server/tests/harness/push/push-endpoint.ts'
import { adminUsers } from '../../../server/tests/harness/users/accounts.ts'
import { startDashboardServer, type TestServer } from '../harness/dashboard.ts'

type Auth = { id: string } | null
const text = { type: 'string' } as const

const databases = {
  shared: {
    tables: {
      customers: {
        schema: { name: { ...text, required: true }, email: { ...text, unique: true }, city: text },
        search: ['name'],
        access: { read: (auth: Auth) => auth && { id: auth.id } },
      },
      suppliers: { schema: { name: text, country: text }, access: { read: true } },
      products: {
        schema: {
          sku: { ...text, required: true, unique: true },
          name: { ...text, required: true, max: 40 },
          price: { type: 'number', min: 0 },
          stock: { type: 'number', min: 0 },
          available: { type: 'boolean', default: true },
          details: { type: 'json' },
          supplierId: { ...text, references: 'suppliers' },
        },
        search: ['name'],
        access: { read: true },
      },
      orders: {
        schema: {
          item: text,
          customerId: { ...text, references: 'customers' },
          status: { ...text, enum: ['open', 'paid', 'shipped', 'returned'] },
          total: { type: 'number' },
          placedAt: { type: 'datetime' },
          note: { type: 'text' },
          gift: { type: 'boolean' },
          address: { type: 'json' },
          margin: { type: 'number' },
        },
        hidden: ['margin'],
        search: ['item', 'note'],
        indexes: [{ fields: ['status'] }, { fields: ['status', 'placedAt'] }],
        access: {
          read: (auth: Auth) => auth && or({ customerId: auth.id }, { status: 'returned' }),
          insert: (auth: Auth) => auth && { customerId: auth.id },
        },
      },
      reviews: {
        schema: { productId: { ...text, references: 'products' }, customerId: text, stars: { type: 'number' }, text },
        access: { read: true, insert: true },
      },
    },
  },
  branches: {
    instance: true,
    access: () => true,
    tables: { shifts: { schema: { who: text, day: text }, access: { read: true } } },
  },
} as const

const people = [
  ['Marie Curie', 'Paris'],
  ['Omar Khayyam', 'Isfahan'],
  ['Ada Lovelace', 'London'],
  ['Grace Hopper', 'New York'],
  ['Sofja Kowalewskaja', 'Stockholm'],
  ['Srinivasa Ramanujan', 'Chennai'],
  ['Emmy Noether', 'Göttingen'],
  ['محمد الخوارزمي', 'بغداد'],
] as const
const items = [
  'Desk lamp',
  'Globe',
  'Sextant',
  'Fountain pen',
  'Slide rule',
  'Compass',
  'Telescope',
  'Notebook',
] as const
const states = ['open', 'paid', 'shipped', 'shipped', 'returned'] as const
const notes = [
  null,
  'Please ring twice.',
  null,
  'A gift: no invoice in the parcel.',
  'Leave it\nwith the neighbors.',
] as const

const orderCount = 1_200
export const orderId = (at: number): string => `o-${1_001 + at}`
const customerId = (at: number): string => `c-${1 + (at % people.length)}`

const placedFrom = Date.UTC(2026, 8, 1, 8)
const hourMs = 3_600_000

const order = (at: number): object => ({
  id: orderId(at),
  item: items[(at * 5) % items.length],
  customerId: customerId(at * 3),
  status: states[at % states.length],
  total: 19 + ((at * 37) % 240) + 0.9,
  placedAt: new Date(placedFrom + at * hourMs).toISOString(),
  note: notes[at % notes.length],
  gift: at % 5 === 3,
  address: { street: `Harbor Street ${1 + (at % 90)}`, city: people[(at * 3) % people.length]?.[1], floor: at % 6 },
  margin: 0.2,
})

const product = (at: number): object => ({
  id: `p-${1 + at}`,
  sku: `SKU-${100 + at}`,
  name: `${items[at % items.length]} ${['classic', 'travel', 'large'][at % 3]}`,
  price: 19.9 + at * 5,
  stock: (at * 7) % 60,
  available: at % 7 !== 6,
  details: { weight: `${200 + at * 10} g`, colors: ['black', 'brass'] },
  supplierId: at % 2 === 0 ? 's-1' : 's-2',
})

const many = (count: number, rowOf: (at: number) => object): object[] =>
  Array.from({ length: count }, (_, at) => rowOf(at))

export interface Shop {
  readonly server: TestServer
  /** A user who is one of the customers. */
  readonly marie: string
  close(): Promise<void>
}

/** Must be closed. */
export async function openShop(): Promise<Shop> {
  const ecdh = createECDH('prime256v1')
  const publicKey = ecdh.generateKeys('base64url')
  const privateKey = Buffer.from(ecdh.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url')
  const devices = openPushEndpoint(publicKey, { now: () => Date.now() })
  const vapid = { subject: 'mailto:ops@example.com', publicKey, privateKey, localServices: [devices.origin] }
  const server = await startDashboardServer({
    databases,
    auth: { mail: { from: 'shop@example.com', appName: 'Atlas Shop' } },
    push: { vapid },
  })
  const { service } = server
  const insert = async (path: string, inserts: readonly object[]): Promise<void> => {
    for (let at = 0; at < inserts.length; at += 400) {
      const { status, text } = await service.post(`/api/db/${path}/batch`, { inserts: inserts.slice(at, at + 400) })
      if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
    }
  }
  await insert(
    'shared/tables/customers',
    people.map(([name, city], at) => ({ id: customerId(at), name, city, email: `customer${1 + at}@example.com` })),
  )
  await insert('shared/tables/suppliers', [
    { id: 's-1', name: 'Brass & Sons', country: 'Portugal' },
    { id: 's-2', name: 'North Instruments', country: 'Norway' },
  ])
  await insert('shared/tables/products', many(60, product))
  await insert('shared/tables/orders', many(orderCount, order))
  await insert('branches/lisbon/tables/shifts', [{ id: 'm1', who: 'Ana', day: 'Monday' }])
  const created = await service.post(adminUsers, {
    email: 'marie@example.com',
    password: 'a long password',
    displayName: 'Marie Curie',
  })
  const marie: string = created.body.user.id
  await insert('shared/tables/customers', [
    { id: marie, name: 'Marie Curie', city: 'Paris', email: 'marie@example.com' },
  ])
  await insert(
    'shared/tables/orders',
    many(9, (at) => ({ ...order(at * 7), id: `m-${1 + at}`, customerId: marie })),
  )
  for (const user of [marie, 'omar']) {
    const device = { deviceId: 'd', token: devices.subscribe().token, platform: 'web' }
    await server.as(user).post('/api/push/register', device)
  }
  return {
    server,
    marie,
    async close() {
      await server.close()
      await devices.close()
    },
  }
}
