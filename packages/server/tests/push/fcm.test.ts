/** Requests to FCM and the handling of its responses: assertions, messages, errors and retries. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ManualClock, manualClock } from '../../src/base/clock.ts'
import { type FcmAnswer, openFcm } from '../harness/push/fcm.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, startServer, type TestServer } from '../harness/server.ts'

const clock: ManualClock = manualClock()
const fcm = openFcm(clock)
afterAll(() => fcm.close())

const config = { push: { fcm: fcm.config }, rateLimits: { push: { requests: 1_000_000 } } }
const hello = { title: 'Hello', body: 'World' }
let made = 0

async function newOwner(server: TestServer): Promise<{ userId: string; token: string }> {
  const [userId, token] = [`user-${++made}`, `token-${made}:${crypto.randomUUID()}`]
  const body = { deviceId: 'phone', token, platform: 'ios' }
  expect((await server.as(userId).post('/api/push/register', body)).status).toBe(200)
  return { userId, token }
}

const send = (server: TestServer, userId: string, more: object = {}) =>
  server.service.post('/api/push/send', { userId, ...hello, ...more })
const devicesOf = async (server: TestServer, userId: string) =>
  (await server.service.get(`/api/push/tokens?userId=${userId}`)).body.tokens
const errorOf = async (server: TestServer, userId: string) => {
  const [{ status, error }] = (await server.service.get(`/api/push/logs?userId=${userId}`)).body.logs
  return [status, error]
}

describeServer('FCM', { config, clock }, (server) => {
  /** Sends the payload and returns the message that FCM receives. */
  async function sentFor(more: object): Promise<Record<string, unknown>> {
    const { userId } = await newOwner(server)
    expect((await send(server, userId, more)).body).toEqual({ ok: true, sent: 1, failed: 0 })
    const { token, ...message } = fcm.messages.at(-1)
    return message
  }

  describe('messages', () => {
    test('[PUSH-FCM-3] a plain message is an alert on every platform', async () => {
      expect(await sentFor({})).toEqual({
        notification: hello,
        android: { priority: 'HIGH' },
        apns: { headers: { 'apns-push-type': 'alert', 'apns-priority': '10' }, payload: { aps: {} } },
        webpush: { headers: { Urgency: 'high' } },
      })
    })

    test('[PUSH-FCM-3] every field is mapped for each platform', async () => {
      const image = 'https://images.example.com/a.png'
      const data = { text: 'as it is', number: 1, list: [1, 'a'], nothing: null }
      const payload = { image, data, sound: 'ping.caf', badge: 0, collapseId: 'match 7', ttl: 3600 }
      expect(await sentFor(payload)).toEqual({
        notification: { ...hello, image },
        data: { text: 'as it is', number: '1', list: '[1,"a"]', nothing: 'null' },
        android: {
          priority: 'HIGH',
          collapse_key: 'match 7',
          ttl: '3600s',
          notification: { sound: 'ping.caf', notification_count: 0, tag: 'match 7' },
        },
        apns: {
          headers: {
            'apns-push-type': 'alert',
            'apns-priority': '10',
            'apns-collapse-id': 'match 7',
            'apns-expiration': String(Math.floor(clock.now() / 1000) + 3600),
          },
          payload: { aps: { sound: 'ping.caf', badge: 0, 'mutable-content': 1 } },
          fcm_options: { image },
        },
        webpush: {
          headers: { Urgency: 'high', TTL: '3600', Topic: expect.stringMatching(/^[\w-]{32}$/) },
          notification: { tag: 'match 7' },
        },
      })
    })

    test('[PUSH-FCM-3] a silent message wakes the app without a notification', async () => {
      expect(await sentFor({ silent: true, data: { kind: 'sync' }, sound: 'ping.caf', ttl: 0 })).toEqual({
        data: { kind: 'sync' },
        android: { priority: 'NORMAL', ttl: '0s' },
        apns: {
          headers: { 'apns-push-type': 'background', 'apns-priority': '5', 'apns-expiration': '0' },
          payload: { aps: { 'content-available': 1 } },
        },
        webpush: { headers: { Urgency: 'normal', TTL: '0' } },
      })
    })

    test('[PUSH-FCM-4] overrides are merged into the message', async () => {
      const android = { ttl: '5s', direct_boot_ok: true, notification: { color: '#ff0000' } }
      const message = await sentFor({ sound: 'a', fcm: { android, fcm_options: { analytics_label: 'x' } } })
      expect(message).toMatchObject({
        notification: hello,
        android: { priority: 'HIGH', ttl: '5s', direct_boot_ok: true, notification: { sound: 'a', color: '#ff0000' } },
        fcm_options: { analytics_label: 'x' },
      })
    })

    test('[PUSH-FCM-4] overrides cannot change the target, or pollute prototypes', async () => {
      const { userId, token } = await newOwner(server)
      const fcmOverrides = JSON.parse('{"__proto__":{"topic":"all"},"android":{"__proto__":{"polluted":1}}}')
      expect((await send(server, userId, { fcm: fcmOverrides })).status).toBe(200)
      expect(fcm.messages.at(-1).token).toBe(token)
      expect(Object.keys(fcm.messages.at(-1))).not.toContain('topic')
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    })
  })

  describe('responses', () => {
    test.each<[string, FcmAnswer]>([
      ['UNREGISTERED', { status: 404, errorCode: 'UNREGISTERED' }],
      ['404', { status: 404 }],
      ['UNREGISTERED with another status', { status: 400, errorCode: 'UNREGISTERED' }],
    ])('[PUSH-FCM-5] %s removes the device and counts as failed', async (_, answer) => {
      const { userId, token } = await newOwner(server)
      fcm.script(token, answer)
      expect((await send(server, userId)).body).toEqual({ ok: true, sent: 0, failed: 1 })
      expect(await errorOf(server, userId)).toEqual(['removed', 'UNREGISTERED'])
      expect(await devicesOf(server, userId)).toEqual([])
      expectRefusal(await send(server, userId), 404)
      expect(fcm.attempts(token)).toBe(1)
    })

    test.each<[string, FcmAnswer]>([
      ['INVALID_ARGUMENT: about INVALID_ARGUMENT', { status: 400, errorCode: 'INVALID_ARGUMENT' }],
      ['SENDER_ID_MISMATCH: about SENDER_ID_MISMATCH', { status: 403, errorCode: 'SENDER_ID_MISMATCH' }],
      ['THIRD_PARTY_AUTH_ERROR: about THIRD_PARTY_AUTH_ERROR', { status: 401, errorCode: 'THIRD_PARTY_AUTH_ERROR' }],
      ['PERMISSION_DENIED: about 403', { status: 403 }],
      ['HTTP_404', () => new Response('<h1>Not here</h1>', { status: 404 })],
      ['HTTP_302', () => new Response(null, { status: 302, headers: { location: 'http://127.0.0.1/' } })],
      ['HTTP_400', () => Response.json(null, { status: 400 })],
    ])('[PUSH-FCM-7] %s fails without a retry, and keeps the device', async (error, answer) => {
      const { userId, token } = await newOwner(server)
      // The second response is for the retry with a new access token.
      fcm.script(token, answer, answer)
      expect((await send(server, userId)).body).toEqual({ ok: true, sent: 0, failed: 1 })
      expect(await errorOf(server, userId)).toEqual(['failed', error])
      expect(await devicesOf(server, userId)).toHaveLength(1)
      expect(fcm.attempts(token)).toBe(error.startsWith('THIRD') ? 2 : 1)
    })

    const transient: [string, FcmAnswer][] = [
      ['QUOTA_EXCEEDED', { status: 429, errorCode: 'QUOTA_EXCEEDED' }],
      ['UNAVAILABLE', { status: 503, errorCode: 'UNAVAILABLE' }],
      ['INTERNAL', { status: 500, errorCode: 'INTERNAL' }],
      ['HTTP_502', () => new Response('bad gateway', { status: 502 })],
    ]
    test.each(transient)('[PUSH-FCM-6] %s is retried with exponential backoff', async (_, answer) => {
      const { userId, token } = await newOwner(server)
      fcm.script(token, answer, answer, answer)
      const sending = send(server, userId)
      for (let round = 0; round < 3; round++) {
        const pauseMs = await clock.waited()
        expect(fcm.attempts(token)).toBe(round + 1)
        expect(pauseMs).toBeGreaterThanOrEqual(1000 * 2 ** round)
        expect(pauseMs).toBeLessThanOrEqual(1250 * 2 ** round)
        clock.advance(pauseMs)
      }
      expect((await sending).body).toEqual({ ok: true, sent: 1, failed: 0 })
      expect(fcm.attempts(token)).toBe(4)
      expect(await errorOf(server, userId)).toEqual(['sent', null])
    })

    test('[PUSH-FCM-6] a message fails after four attempts', async () => {
      const { userId, token } = await newOwner(server)
      const away = { status: 503, errorCode: 'UNAVAILABLE' }
      fcm.script(token, away, away, away, away, away)
      const sending = send(server, userId)
      for (let round = 0; round < 3; round++) clock.advance(await clock.waited())
      expect((await sending).body).toEqual({ ok: true, sent: 0, failed: 1 })
      expect(fcm.attempts(token)).toBe(4)
      expect(await errorOf(server, userId)).toEqual(['failed', 'UNAVAILABLE: about UNAVAILABLE'])
      expect(await devicesOf(server, userId)).toHaveLength(1)
      fcm.script(token)
    })

    test('[PUSH-FCM-6] Retry-After is respected, in seconds or as a date, unless it is too long', async () => {
      const { userId, token } = await newOwner(server)
      const date = new Date(clock.now() + 30_000 + 7_000).toUTCString()
      fcm.script(token, { status: 429, retryAfter: '7' }, { status: 503, retryAfter: date })
      const sending = send(server, userId)
      expect(await clock.waited()).toBe(7000)
      clock.advance(7000)
      const pauseMs = await clock.waited()
      expect(pauseMs).toBeGreaterThan(29_000)
      expect(pauseMs).toBeLessThanOrEqual(30_000)
      clock.advance(pauseMs)
      expect((await sending).body.sent).toBe(1)
      fcm.script(token, { status: 429, errorCode: 'QUOTA_EXCEEDED', retryAfter: '61' })
      expect((await send(server, userId)).body.failed).toBe(1)
      expect(fcm.attempts(token)).toBe(4)
    })
  })

  describe('credentials', () => {
    test('[PUSH-FCM-1] one access token is shared until shortly before it expires', async () => {
      clock.advance(60 * 60 * 1000)
      const owners = await Promise.all(Array.from({ length: 20 }, () => newOwner(server)))
      await server.tidy()
      clock.advance(60 * 60 * 1000)
      const before = fcm.assertions.length
      const answers = await Promise.all(owners.map(({ userId }) => send(server, userId)))
      expect(answers.every(({ body }) => body.sent === 1)).toBe(true)
      expect(fcm.assertions).toHaveLength(before + 1)
      const userId = owners[0]?.userId ?? ''
      clock.advance(59 * 60 * 1000 - 1)
      await send(server, userId)
      expect(fcm.assertions).toHaveLength(before + 1)
      clock.advance(1)
      await send(server, userId)
      expect(fcm.assertions).toHaveLength(before + 2)
    })

    test('[PUSH-FCM-2] a refused access token is renewed once', async () => {
      const { userId, token } = await newOwner(server)
      await server.tidy()
      fcm.expireTokens()
      expect((await send(server, userId)).body.sent).toBe(1)
      expect(fcm.attempts(token)).toBe(2)
      fcm.script(token, { status: 401 }, { status: 401 }, null)
      expect((await send(server, userId)).body).toMatchObject({ sent: 0, failed: 1 })
      expect(fcm.attempts(token)).toBe(4)
      fcm.script(token)
    })

    test('[PUSH-FCM-2] refused credentials fail the messages, with a single token request', async () => {
      const owners = await Promise.all(Array.from({ length: 10 }, () => newOwner(server)))
      await server.tidy()
      fcm.expireTokens()
      const before = fcm.assertions.length
      fcm.scriptOAuth({ status: 400 }, { status: 400 }, { status: 400 })
      const userIds = owners.map(({ userId }) => userId)
      const { body } = await server.service.post('/api/push/send-many', { userIds, ...hello })
      expect(body).toEqual({ ok: true, sent: 0, failed: 10 })
      expect(fcm.assertions).toHaveLength(before + 1)
      expect(await errorOf(server, userIds[0] ?? '')).toEqual(['failed', 'CREDENTIALS_REFUSED: 400'])
      fcm.scriptOAuth()
      clock.advance(5000)
      expect((await send(server, userIds[0] ?? '')).body.sent).toBe(1)
    })

    test('[PUSH-FCM-8] no response or log contains the private key or an access token', async () => {
      const { userId, token } = await newOwner(server)
      fcm.expireTokens()
      fcm.scriptOAuth({ status: 403 })
      await send(server, userId)
      fcm.script(token, () => Promise.reject(new Error(fcm.privateKey)))
      const texts = [
        server.logged(),
        (await server.service.get('/api/push/logs?limit=1000')).text,
        (await server.anonymous.get('/api/config')).text,
        (await server.service.get('/openapi.json')).text,
      ]
      const [, line = ''] = fcm.privateKey.split('\n')
      for (const text of texts) for (const secret of [line, 'access-token-']) expect(text).not.toContain(secret)
      fcm.script(token)
      fcm.scriptOAuth()
      clock.advance(5000)
    })
  })
})

test('[PUSH-SEND-6] a shutdown ends backoff: waiting messages are tried once more, and requests are answered', async () => {
  const server = await startServer({ config, clock })
  const { userId, token } = await newOwner(server)
  fcm.script(token, { status: 503, retryAfter: '50' })
  const sending = send(server, userId)
  expect(await clock.waited()).toBe(50_000)
  await server.close()
  expect((await sending).body).toEqual({ ok: true, sent: 1, failed: 0 })
  expect(fcm.attempts(token)).toBe(2)
})

test('[PUSH-FCM-6] an unreachable FCM is retried', async () => {
  const gone = openFcm(clock)
  await gone.close()
  const own = manualClock()
  const server = await startServer({ config: { ...config, push: { fcm: gone.config } }, clock: own })
  const sending = server.service.post('/api/push/send-to-token', { token: 't', payload: hello })
  for (let round = 0; round < 3; round++) own.advance(await own.waited())
  expect((await sending).body).toMatchObject({ sent: 0, failed: 1 })
  expect((await server.service.get('/api/push/logs')).body.logs[0].error).toStartWith('UNREACHABLE')
  await server.close()
})

test('[PUSH-FCM-9] the service account may be a file, and endpoints may be complete URLs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-push-'))
  const path = join(folder, 'account.json')
  writeFileSync(path, fcm.config.serviceAccount)
  const { origin } = new URL(fcm.config.endpoints.send)
  const endpoints = {
    token: `${origin}/token`,
    send: `${origin}/v1/projects/demo-project/messages:send`,
    topics: origin,
  }
  const server = await startServer({ config: { ...config, push: { fcm: { serviceAccount: path, endpoints } } }, clock })
  const { userId, token } = await newOwner(server)
  expect((await send(server, userId)).body.sent).toBe(1)
  await fcm.until(() => fcm.membersOf('all').includes(token))
  await server.close()
  rmSync(folder, { recursive: true })
})
