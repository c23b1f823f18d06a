/** The shop on a real server, with a clock that moves: `npx plinth test`. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { type TestServer, testServer } from 'plinth/testing'
import { isPlinthError } from 'plinth-client'
import { Webhook } from 'standardwebhooks'
import type * as functions from './functions/index.ts'
import type config from './plinth.config.ts'

const paymentSecret = `whsec_${randomBytes(32).toString('base64')}`
let shop: TestServer<typeof config, typeof functions>
beforeAll(async () => {
  shop = await testServer<typeof config, typeof functions>({
    config: new URL('plinth.config.ts', import.meta.url),
    secrets: { PAYMENT_SECRET: paymentSecret },
    now: new Date('2026-03-01T12:00:00Z'),
  })
})
afterAll(() => shop.close())

const tables = () => shop.client.db('shared')
const addProduct = (id: string, stock: number) => tables().products.insert({ id, name: ` ${id} `, price: 500, stock })

/** The message of the payment provider. */
function pay(orderId: string, secret = paymentSecret): Promise<Response> {
  const body = JSON.stringify({ orderId })
  const at = shop.now()
  return fetch(`${shop.url}/api/fn/payments`, {
    method: 'POST',
    body,
    headers: {
      'Content-Type': 'application/json',
      'webhook-id': `msg_${orderId}`,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign(`msg_${orderId}`, at, body),
    },
  })
}

test('a hundred concurrent buyers never take more than the stock', async () => {
  await addProduct('lamp', 30)
  const buyers = await Promise.all(Array.from({ length: 10 }, (_, at) => shop.as({ email: `buyer${at}@example.com` })))
  const orders = buyers.flatMap((buyer) =>
    Array.from({ length: 10 }, () =>
      buyer.call('checkout', { productId: 'lamp', quantity: 1 }).then(
        () => 'ordered',
        (error: unknown) => (isPlinthError(error, 'sold-out') ? 'sold out' : String(error)),
      ),
    ),
  )
  const outcomes = await Promise.all(orders)
  expect(outcomes.filter((outcome) => outcome === 'ordered')).toHaveLength(30)
  expect(outcomes.filter((outcome) => outcome === 'sold out')).toHaveLength(70)
  const { name, stock } = await tables().products.get('lamp')
  expect({ name, stock }).toEqual({ name: 'lamp', stock: 0 })
  expect(await tables().orders.where('productId', '==', 'lamp').count()).toBe(30)
})

test('a payment is booked once, and its customer gets one receipt', async () => {
  await addProduct('cup', 2)
  const ada = await shop.as({ email: 'ada@example.com' })
  const { orderId, total } = await ada.call('checkout', { productId: 'cup', quantity: 2 })
  expect(total).toBe(1000)
  expect((await pay(orderId, `whsec_${randomBytes(32).toString('base64')}`)).status).toBe(401)
  expect([(await pay(orderId)).status, (await pay(orderId)).status]).toEqual([204, 204])
  await shop.settled()
  const receipts = shop.mail.filter(({ to }) => to === 'ada@example.com')
  expect(receipts).toHaveLength(1)
  expect(receipts[0]?.subject).toBe('Your receipt for cup')
  expect(receipts[0]?.html).toContain('2 × <strong>cup</strong>')
  expect(await ada.db('shared').orders.get(orderId)).toMatchObject({ status: 'paid', receiptAt: expect.any(String) })
})

test('customers see their own orders and write none', async () => {
  const eve = await shop.as({ email: 'eve@example.com' })
  const others = await eve.db('shared').orders.list()
  expect(others.items).toEqual([])
  const refused = await eve
    .db('shared')
    .products.update('lamp', { price: 1 })
    .catch((error: unknown) => error)
  expect(isPlinthError(refused)).toBe(true)
  const anonymous = await shop.as(null)
  const denied = await anonymous.call('checkout', { productId: 'lamp', quantity: 1 }).catch((error: unknown) => error)
  expect(denied).toMatchObject({ status: 401 })
})

test('at three in the night there is a report of the day', async () => {
  await shop.advance('1d')
  expect(await tables().reports.first()).toMatchObject({ day: '2026-03-01', orders: 1, revenue: 1000 })
  await shop.advance('1d')
  expect(await tables().reports.count()).toBe(2)
})
