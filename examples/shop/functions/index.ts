/** The server code of the shop. Each export is a function; its name is the export's name. */
import { functionsFor, HttpError, secret, verifyWebhook } from 'plinth/functions'
import { increment, isPlinthError } from 'plinth-client'
import { z } from 'zod'
import type config from '../plinth.config.ts'

const { before, onChange, rpc, http, schedule } = functionsFor<typeof config>()

secret('PAYMENT_SECRET')

/** Names are stored without spaces around them, on whichever path a product is added. */
export const tidyProducts = before('shared.products', ['insert'], ({ row }) => ({
  ...row,
  name: row.name.trim(),
}))

/** Takes an order: the stock and the order change together, or not at all. */
export const checkout = rpc(
  { input: z.object({ productId: z.string(), quantity: z.int().min(1).max(100) }), limit: '60/m per user' },
  async ({ productId, quantity }, ctx) => {
    const { auth } = ctx
    if (!auth?.email) throw new HttpError(403, 'email-required', 'Verify your email address before you order')
    const { id: userId, email } = auth
    const db = ctx.service.db('shared')
    const product = await db.products.find(productId)
    if (!product) throw new HttpError(404, 'no-such-product')
    const order = {
      id: crypto.randomUUID(),
      userId,
      email,
      productId,
      productName: product.name,
      quantity,
      total: product.price * quantity,
      status: 'open' as const,
    }
    try {
      await db.transaction(async (tx) => {
        // The database refuses a stock below zero, so buyers need not wait for each other.
        tx.products.update(productId, { stock: increment(-quantity) })
        tx.orders.insert(order)
      })
    } catch (error) {
      if (isPlinthError(error, 'invalid-input')) throw new HttpError(409, 'sold-out')
      throw error
    }
    return { orderId: order.id, total: order.total }
  },
)

/** The payment provider reports a payment with a signed webhook, possibly more than once. */
export const payments = http.post('/payments', { rawBody: true }, async (request, ctx) => {
  const body = await request.text()
  verifyWebhook(body, request.headers, ctx.secrets.PAYMENT_SECRET, { now: ctx.now() })
  const { orderId } = z.object({ orderId: z.string() }).parse(JSON.parse(body))
  await ctx.service.db('shared').transaction(async (tx) => {
    const order = await tx.orders.find(orderId)
    if (order?.status === 'open') tx.orders.update(orderId, { status: 'paid', paidAt: ctx.now().toISOString() })
  })
  return new Response(null, { status: 204 })
})

/** Sends the receipt once an order is paid. The mark on the order commits together with the end of the job. */
export const receipt = onChange(
  'shared.orders',
  { on: ['update'], where: { status: 'paid', receiptAt: null } },
  async ({ after, change }, ctx) => {
    if (!after) return
    await ctx.mail.send({ to: after.email, template: 'receipt', data: after, idempotencyKey: change.id })
    await ctx.service.db('shared').orders.update(after.id, { receiptAt: ctx.now().toISOString() })
  },
)

/** Each night at three: the orders and the revenue of the day before. */
export const report = schedule('0 3 * * *', { tz: 'UTC', missed: 'run-once' }, async (ctx) => {
  const day = new Date(ctx.scheduledAt.getTime() - 86_400_000).toISOString().slice(0, 10)
  const db = ctx.service.db('shared')
  let [orders, revenue] = [0, 0]
  const paid = db.orders.where('status', '==', 'paid').where('paidAt', '>=', `${day}T00:00:00.000Z`)
  for await (const order of paid.where('paidAt', '<=', `${day}T23:59:59.999Z`)) {
    orders += 1
    revenue += order.total
  }
  await db.reports.upsert({ day, orders, revenue }, { on: 'day' })
})
