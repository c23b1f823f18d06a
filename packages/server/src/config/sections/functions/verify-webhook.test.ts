import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { verifyWebhook } from './verify-webhook.ts'

const secret = `whsec_${randomBytes(24).toString('base64')}`
const at = new Date('2026-01-31T12:00:00.000Z')
const body = '{"orderId":"o1"}'
const headers = {
  'webhook-id': 'msg_1',
  'webhook-timestamp': String(at.getTime() / 1000),
  'webhook-signature': new Webhook(secret).sign('msg_1', at, body),
}

test('[FN-HOOK-5] a webhook with a signature of the sender is accepted', () => {
  verifyWebhook(body, headers, secret, { now: at })
  verifyWebhook(body, new Headers(headers), `whsec_${randomBytes(24).toString('base64')} ${secret}`, { now: at })
})

test('[FN-HOOK-5] any other is refused with 401', () => {
  const refused = { status: 401, slug: 'invalid-signature' }
  const verify = (text: string, sent: object, now = at) => {
    try {
      verifyWebhook(text, sent as Record<string, string>, secret, { now })
      return null
    } catch (error) {
      return error
    }
  }
  expect(verify('{}', headers)).toMatchObject(refused)
  expect(verify(body, {})).toMatchObject(refused)
  expect(verify(body, headers, new Date(at.getTime() + 301_000))).toMatchObject(refused)
  expect(() => verifyWebhook(body, headers, undefined)).toThrow('needs a secret')
})
