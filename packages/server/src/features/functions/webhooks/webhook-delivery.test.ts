import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { parseWebhookKeys } from '../../../base/crypto/webhook-signature.ts'
import { parseCidr } from '../../../base/network/address.ts'
import { createPublicFetch } from '../../../engines/fetch/public-fetch.ts'
import { webhookBodyBytesMax, webhookPausesMs, webhookRetryAfterMaxMs } from '../../../limits/function-deliveries.ts'
import { deliverWebhook, type WebhookChange, type WebhookTarget, webhookPauseMs } from './webhook-delivery.ts'

const secret = `whsec_${randomBytes(32).toString('base64')}`
let received: { body: string; headers: Record<string, string> }[] = []
const hanging = Promise.withResolvers<Response>()

/** A receiver that misbehaves, by path. */
const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  routes: {
    '/ok': async (request: Request) => {
      received.push({ body: await request.text(), headers: Object.fromEntries(request.headers) })
      return new Response('thanks', { status: 202 })
    },
    '/gone': () => new Response(null, { status: 410 }),
    '/broken': () => new Response('a secret of the receiver', { status: 500 }),
    '/busy': () => new Response(null, { status: 429, headers: { 'Retry-After': '120' } }),
    '/later': () => new Response(null, { status: 503, headers: { 'Retry-After': 'Fri, 31 Dec 9999 23:59:59 GMT' } }),
    '/redirect': () => new Response(null, { status: 307, headers: { Location: '/ok' } }),
    '/hanging': () => hanging.promise,
    '/endless': () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024)),
        }),
      ),
  },
})
afterAll(async () => {
  hanging.resolve(new Response())
  await receiver.stop(true)
})
beforeEach(() => {
  received = []
})

const policy = () => ({ allow: [parseCidr('127.0.0.0/8')], anyPort: true })
const fetch = createPublicFetch({ timeoutMs: 1000, bytesMax: 0, policy })
const target = (path: string, options: Partial<WebhookTarget> = {}): WebhookTarget => ({
  table: 'shared.orders',
  url: `http://127.0.0.1:${receiver.port}${path}`,
  keys: parseWebhookKeys(secret),
  fields: null,
  hidden: new Set(['margin']),
  ...options,
})
const order = { id: 'o1', total: 5, margin: 2 }
const change = (options: Partial<WebhookChange> = {}): WebhookChange => ({
  operation: 'insert',
  after: order,
  previous: null,
  change: { id: 'change-1', at: '2026-01-31T12:00:00.000Z' },
  ...options,
})
const deliver = (to: WebhookTarget, of = change()) => deliverWebhook(to, of, { fetch, nowMs: Date.now() })

describe('a webhook', () => {
  test('[FN-HOOK-1] is signed so that the reference library accepts it, and carries the id of the change', async () => {
    expect(await deliver(target('/ok'))).toEqual({ kind: 'delivered', status: 202 })
    const [{ body, headers } = { body: '', headers: {} }] = received
    expect(headers).toMatchObject({ 'webhook-id': 'change-1', 'content-type': 'application/json' })
    expect(new Webhook(secret).verify(body, headers)).toEqual({
      type: 'shared.orders.insert',
      timestamp: '2026-01-31T12:00:00.000Z',
      data: { id: 'o1', total: 5 },
      previous: null,
    })
  })

  test('[FN-HOOK-2] has the fields that are listed, else all but the hidden ones', async () => {
    const update = change({ operation: 'update', previous: { ...order, total: 4 } })
    await deliver(target('/ok'), update)
    await deliver(target('/ok', { fields: ['id', 'margin'] }), update)
    await deliver(target('/ok'), change({ operation: 'delete', after: null, previous: order }))
    expect(received.map(({ body }) => JSON.parse(body))).toMatchObject([
      { type: 'shared.orders.update', data: { id: 'o1', total: 5 }, previous: { id: 'o1', total: 4 } },
      { data: { id: 'o1', margin: 2 }, previous: { id: 'o1', margin: 2 } },
      { type: 'shared.orders.delete', data: { id: 'o1', total: 5 }, previous: null },
    ])
    expect(JSON.parse(received[0]?.body ?? '').data).not.toHaveProperty('margin')
  })

  test('[FN-HOOK-3] that the receiver does not accept is attempted again, and 410 ends it', async () => {
    expect(await deliver(target('/gone'))).toMatchObject({ kind: 'gone' })
    expect(await deliver(target('/busy'))).toMatchObject({ kind: 'failed', retryAfterMs: 120_000 })
    expect(await deliver(target('/later'))).toMatchObject({ kind: 'failed', retryAfterMs: webhookRetryAfterMaxMs })
    const broken = await deliver(target('/broken'))
    expect(broken).toEqual({ kind: 'failed', error: 'The receiver answered 500', retryAfterMs: 0 })
  })

  test('[FN-HOOK-4] follows no redirect, reads no body, and ends at its deadline', async () => {
    expect(await deliver(target('/redirect'))).toMatchObject({ kind: 'failed', error: 'The receiver answered 307' })
    expect(received).toEqual([])
    expect(await deliver(target('/endless'))).toEqual({ kind: 'delivered', status: 200 })
    const brief = createPublicFetch({ timeoutMs: 50, bytesMax: 0, policy })
    const late = await deliverWebhook(target('/hanging'), change(), { fetch: brief, nowMs: Date.now() })
    expect(late).toMatchObject({ kind: 'failed', error: 'The receiver did not answer in time' })
  })

  test('[FN-HOOK-4] is sent to no private address', async () => {
    for (const url of ['http://10.0.0.1/', 'https://169.254.169.254/', 'http://[::1]:9/']) {
      const delivery = await deliver(target('/ok', { url }))
      expect(delivery).toMatchObject({ kind: 'failed', error: expect.stringContaining('not public') })
    }
  })

  test('[FN-HOOK-4] is refused where it is too large', async () => {
    const large = { ...order, text: 'x'.repeat(webhookBodyBytesMax) }
    expect(await deliver(target('/ok'), change({ after: large }))).toMatchObject({ kind: 'refused' })
    expect(received).toEqual([])
  })
})

test('[FN-HOOK-3] the pauses are those of Standard Webhooks, at least what the receiver asks for, then end', () => {
  const pauses = Array.from({ length: 10 }, (_, at) => webhookPauseMs(at + 1, 0, () => 0))
  expect(pauses).toEqual([...webhookPausesMs, null])
  expect(webhookPauseMs(1, 60_000, () => 0)).toBe(60_000)
  expect(webhookPauseMs(2, 0, () => 0.5)).toBe((webhookPausesMs[1] as number) * 1.05)
})
