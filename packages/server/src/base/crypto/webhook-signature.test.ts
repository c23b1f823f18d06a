import { describe, expect, test } from 'bun:test'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { findWebhookFault, parseWebhookKeys, signWebhook, webhookToleranceSeconds } from './webhook-signature.ts'

const secretOf = (bytes: Uint8Array): string => `whsec_${Buffer.from(bytes).toString('base64')}`
const secrets = fc.uint8Array({ minLength: 24, maxLength: 64 }).map(secretOf)
const bodies = fc.string({ unit: 'grapheme', maxLength: 300 })
const nowSeconds = (): number => Math.floor(Date.now() / 1000)

/** What a receiver reads of the headers. */
const received = (headers: Readonly<Record<string, string>>, body: string) => ({
  id: headers['webhook-id'] ?? '',
  timestamp: headers['webhook-timestamp'] ?? '',
  signature: headers['webhook-signature'] ?? '',
  body,
})

describe('signatures with HMAC-SHA256', () => {
  test('[OUT-3] verify with the reference library', () => {
    fc.assert(
      fc.property(secrets, bodies, (secret, text) => {
        const body = JSON.stringify({ text })
        const headers = signWebhook({ id: 'msg_1', timestamp: nowSeconds(), body }, parseWebhookKeys(secret))
        expect(new Webhook(secret).verify(body, headers)).toEqual({ text })
      }),
    )
  })

  test('of the reference library are accepted', () => {
    fc.assert(
      fc.property(secrets, bodies, (secret, body) => {
        const at = new Date()
        const signature = new Webhook(secret).sign('msg_1', at, body)
        const timestamp = String(Math.floor(at.getTime() / 1000))
        const message = { id: 'msg_1', timestamp, signature, body }
        expect(findWebhookFault(message, parseWebhookKeys(secret), at.getTime())).toBeNull()
      }),
    )
  })

  test('[OUT-3] carry one signature per secret while a secret is rotated', () => {
    const [old, next, other] = [randomBytes(32), randomBytes(32), randomBytes(32)].map(secretOf) as [
      string,
      string,
      string,
    ]
    const body = '{"a":1}'
    const headers = signWebhook({ id: 'msg_2', timestamp: nowSeconds(), body }, parseWebhookKeys(`${next} ${old}`))
    for (const secret of [old, next]) {
      expect(new Webhook(secret).verify(body, headers)).toEqual({ a: 1 })
      expect(findWebhookFault(received(headers, body), parseWebhookKeys(secret), Date.now())).toBeNull()
    }
    expect(findWebhookFault(received(headers, body), parseWebhookKeys(other), Date.now())).toContain('does not match')
    expect(findWebhookFault(received(headers, body), parseWebhookKeys(`${other} ${old}`), Date.now())).toBeNull()
  })

  test('do not fit another body, id or timestamp', () => {
    const keys = parseWebhookKeys(secretOf(randomBytes(32)))
    const timestamp = nowSeconds()
    const message = received(signWebhook({ id: 'msg_3', timestamp, body: 'body' }, keys), 'body')
    for (const change of [{ body: 'Body' }, { id: 'msg_4' }, { timestamp: String(timestamp + 1) }])
      expect(findWebhookFault({ ...message, ...change }, keys, Date.now())).toContain('does not match')
  })

  test('[OUT-3] are refused outside of the tolerance of five minutes, and without headers', () => {
    const keys = parseWebhookKeys(secretOf(randomBytes(32)))
    const timestamp = nowSeconds()
    const message = received(signWebhook({ id: 'msg_5', timestamp, body: '' }, keys), '')
    const at = (seconds: number) => findWebhookFault(message, keys, (timestamp + seconds) * 1000)
    expect([at(-webhookToleranceSeconds), at(webhookToleranceSeconds)]).toEqual([null, null])
    for (const seconds of [-webhookToleranceSeconds - 1, webhookToleranceSeconds + 1])
      expect(at(seconds)).toContain('too old or new')
    for (const change of [{ id: '' }, { timestamp: '' }, { timestamp: 'now' }, { signature: '' }])
      expect(findWebhookFault({ ...message, ...change }, keys, Date.now())).toContain('missing')
  })
})

describe('signatures with Ed25519', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const rawOf = (der: Buffer): string => der.subarray(-32).toString('base64')
  const secret = `whsk_${rawOf(privateKey.export({ format: 'der', type: 'pkcs8' }))}`
  const published = `whpk_${rawOf(publicKey.export({ format: 'der', type: 'spki' }))}`

  test('verify with the public key', () => {
    const headers = signWebhook({ id: 'msg_6', timestamp: nowSeconds(), body: 'x' }, parseWebhookKeys(secret))
    expect(headers['webhook-signature']).toMatch(/^v1a,/)
    for (const key of [published, secret])
      expect(findWebhookFault(received(headers, 'x'), parseWebhookKeys(key), Date.now())).toBeNull()
    expect(findWebhookFault(received(headers, 'y'), parseWebhookKeys(published), Date.now())).toContain(
      'does not match',
    )
  })

  test('cannot be made with a public key', () => {
    const message = { id: 'msg_7', timestamp: nowSeconds(), body: '' }
    expect(() => signWebhook(message, parseWebhookKeys(published))).toThrow('cannot sign')
  })
})

test('[OUT-3] a secret of another form is refused without being quoted', () => {
  const wrong = ['', 'abc', 'whsec_', 'whsec_***', secretOf(randomBytes(23)), secretOf(randomBytes(65)), 'whsk_AAAA']
  for (const text of wrong) {
    const error = ((): Error | null => {
      try {
        parseWebhookKeys(text)
        return null
      } catch (thrown) {
        return thrown as Error
      }
    })()
    expect(error).toBeInstanceOf(Error)
    if (text.length > 8) expect(error?.message).not.toContain(text.slice(6))
  }
})
