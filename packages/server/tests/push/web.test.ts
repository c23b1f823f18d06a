/** Web push with VAPID: browser subscriptions, and protection against requests to internal addresses. */
import { afterAll, describe, expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import { manualClock } from '../../src/base/clock.ts'
import { createPublicFetch, fetchAt, mayBePublic, NotPublicError } from '../../src/engines/fetch/public-fetch.ts'
import { openFcm } from '../harness/push/fcm.ts'
import { openPushEndpoint, type SubscribedBrowser } from '../harness/push/push-endpoint.ts'
import { newBrowser, subscriptionOf } from '../harness/push/web-push.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, type TestServer } from '../harness/server.ts'

const clock = manualClock()
const ecdh = createECDH('prime256v1')
const publicKey = ecdh.generateKeys('base64url')
const privateKey = Buffer.from(ecdh.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url')
const fcm = openFcm(clock)
const pushes = openPushEndpoint(publicKey, clock)
/** A server of the internal network, which must receive no requests. */
let internalRequests = 0
const internal = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch() {
    internalRequests += 1
    return new Response('secret')
  },
})
afterAll(async () => {
  await Promise.all([fcm.close(), pushes.close(), internal.stop(true)])
})

const vapid = { subject: 'mailto:ops@example.com', publicKey, privateKey, localServices: [pushes.origin] }
const rateLimits = { push: { requests: 1_000_000 } }
const hello = { title: 'Hello', body: 'World' }
let made = 0
const newUser = (): string => `user-${++made}`

const register = (server: TestServer, userId: string, token: string, deviceId = 'browser') =>
  server.as(userId).post('/api/push/register', { deviceId, token, platform: 'web' })

async function newOwner(server: TestServer): Promise<{ userId: string; browser: SubscribedBrowser }> {
  const owner = { userId: newUser(), browser: pushes.subscribe() }
  expect((await register(server, owner.userId, owner.browser.token)).status).toBe(200)
  return owner
}

const send = (server: TestServer, userId: string, more: object = {}) =>
  server.service.post('/api/push/send', { userId, ...hello, ...more })
const lastLog = async (server: TestServer, userId: string) => {
  const [{ status, error }] = (await server.service.get(`/api/push/logs?userId=${userId}`)).body.logs
  return [status, error]
}

describeServer('web push', { config: { push: { vapid }, rateLimits }, clock }, (server) => {
  test('[PUSH-WEB-1] a message to a browser is encrypted, and signed for its push service', async () => {
    const { userId, browser } = await newOwner(server)
    expect((await send(server, userId)).body).toEqual({ ok: true, sent: 1, failed: 0 })
    const { headers, body, json } = browser.taken[0] ?? expect.unreachable()
    expect(json).toEqual(hello)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-encoding': 'aes128gcm',
      'content-type': 'application/octet-stream',
      ttl: '2419200',
      urgency: 'high',
    })
    expect(headers.has('topic')).toBe(false)
    expect(Buffer.from(body).includes('World')).toBe(false)
  })

  test('[PUSH-WEB-1] every field is sent to the service worker or as a header', async () => {
    const { userId, browser } = await newOwner(server)
    const more = { image: 'https://a.example/b.png', badge: 2, data: { deep: { n: 1 } }, silent: true }
    await send(server, userId, { ...more, collapseId: 'match 7', ttl: 60, fcm: { android: { ttl: '1s' } } })
    await send(server, userId, { collapseId: 'match-7' })
    const [first, second] = browser.taken
    expect(first?.json).toEqual({ ...hello, ...more, tag: 'match 7' })
    expect(first?.headers.get('ttl')).toBe('60')
    expect(first?.headers.get('urgency')).toBe('normal')
    expect(first?.headers.get('topic')).toMatch(/^[\w-]{32}$/)
    expect(second?.headers.get('topic')).toBe('match-7')
  })

  test('[PUSH-WEB-1] an FCM token fails when FCM is not configured', async () => {
    const userId = newUser()
    await register(server, userId, 'a-token-of-fcm')
    expect((await send(server, userId)).body).toEqual({ ok: true, sent: 0, failed: 1 })
    expect(await lastLog(server, userId)).toEqual(['failed', 'FCM_NOT_CONFIGURED'])
    expectRefusal(await server.service.post('/api/push/send-to-token', { token: 'x', payload: hello }), 503)
    const { token, taken } = pushes.subscribe()
    const answer = await server.service.post('/api/push/send-to-token', { token, payload: hello })
    expect(answer.body).toMatchObject({ sent: 1, failed: 0 })
    expect(taken.length).toBe(1)
  })

  test('[PUSH-WEB-3] topics and broadcasts are sent to subscribed browsers after the response', async () => {
    const [one, two, three] = [await newOwner(server), await newOwner(server), await newOwner(server)]
    for (const { userId } of [one, two]) {
      const { body } = await server.as(userId).post('/api/push/topic/subscribe', { topic: 'news' })
      expect(body).toEqual({ ok: true, subscribed: 1, failed: 0 })
    }
    const { body } = await server.as(two.userId).post('/api/push/topic/unsubscribe', { topic: 'news' })
    expect(body).toEqual({ ok: true, unsubscribed: 1, failed: 0 })
    const sent = await server.service.post('/api/push/send-to-topic', { topic: 'news', payload: hello })
    expect(sent.status).toBe(200)
    expect(sent.body).toEqual({ success: true })
    await pushes.until(() => one.browser.taken.length === 1)
    await server.service.post('/api/push/broadcast', { payload: { ...hello, title: 'All' } })
    await pushes.until(() => [one, two, three].every(({ browser }) => browser.taken.at(-1)?.json.title === 'All'))
    expect([one, two, three].map(({ browser }) => browser.taken.length)).toEqual([2, 1, 1])
  })

  test('[PUSH-WEB-3] a running broadcast finishes before the server stops', async () => {
    const owners = await Promise.all(Array.from({ length: 30 }, () => newOwner(server)))
    await server.service.post('/api/push/broadcast', { payload: { ...hello, title: 'Last' } })
    await server.restart()
    for (const { browser } of owners) expect(browser.taken.at(-1)?.json.title).toBe('Last')
  })

  test('[PUSH-WEB-4] 404 and 410 remove the browser, 429 and 5xx are retried, other errors fail', async () => {
    for (const status of [404, 410]) {
      const { userId, browser } = await newOwner(server)
      browser.answer(new Response('gone', { status }))
      expect((await send(server, userId)).body).toEqual({ ok: true, sent: 0, failed: 1 })
      expect(await lastLog(server, userId)).toEqual(['removed', `HTTP_${status}`])
      expectRefusal(await send(server, userId), 404)
    }
    const { userId, browser } = await newOwner(server)
    browser.answer(
      new Response(null, { status: 429, headers: { 'retry-after': '3' } }),
      new Response(null, { status: 503 }),
    )
    const sending = send(server, userId)
    expect(await clock.waited()).toBe(3000)
    clock.advance(3000)
    clock.advance(await clock.waited())
    expect((await sending).body.sent).toBe(1)
    for (const status of [400, 403, 413]) {
      browser.answer(new Response(null, { status }))
      expect((await send(server, userId)).body).toEqual({ ok: true, sent: 0, failed: 1 })
      expect(await lastLog(server, userId)).toEqual(['failed', `HTTP_${status}`])
    }
    expect((await send(server, userId)).body.sent).toBe(1)
  })

  test('[PUSH-WEB-1] a message that is too large after encryption fails with MESSAGE_TOO_LARGE', async () => {
    const { userId } = await newOwner(server)
    expect((await send(server, userId, { data: { big: 'x'.repeat(4020) } })).body).toEqual({
      ok: true,
      sent: 0,
      failed: 1,
    })
    expect(await lastLog(server, userId)).toEqual(['failed', 'MESSAGE_TOO_LARGE'])
  })

  describe('endpoints of browsers', () => {
    test.each([
      `http://127.0.0.1:${internal.port}/x`,
      `https://127.0.0.1:${internal.port}/x`,
      'https://127.0.0.1/x',
      'https://localhost/x',
      'https://push.localhost/x',
      'https://router.local/x',
      'https://metadata.google.internal/x',
      'https://intranet/x',
      'https://localhost./x',
      'https://[::1]/x',
      'https://[::ffff:127.0.0.1]/x',
      'https://[fd00::1]/x',
      'https://2130706433/x',
      'https://0x7f.1/x',
      'https://0177.0.0.1/x',
      'https://169.254.169.254/latest/meta-data/',
      'https://10.0.0.1/x',
      'https://push.example.com:8443/x',
      'https://user:secret@push.example.com/x',
      'http://push.example.com/x',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'not a url',
    ])('[PUSH-WEB-5] %s cannot be registered or sent to', async (endpoint) => {
      const [userId, token] = [newUser(), subscriptionOf(endpoint, newBrowser())]
      expectRefusal(await register(server, userId, token), 400)
      const payload = hello
      expectRefusal(await server.service.post('/api/push/send-to-token', { token, payload }), 400)
      expect((await server.service.get(`/api/push/tokens?userId=${userId}`)).body.tokens).toEqual([])
      expect(internalRequests).toBe(0)
    })

    test('[PUSH-WEB-5] an endpoint removed from localServices is no longer sent to', async () => {
      const { userId, browser } = await newOwner(server)
      await server.reload({ push: { vapid: { ...vapid, localServices: [] } }, rateLimits })
      expect((await send(server, userId)).body).toEqual({ ok: true, sent: 0, failed: 1 })
      expect(await lastLog(server, userId)).toEqual(['failed', 'ENDPOINT_NOT_PUBLIC'])
      expect(browser.taken).toHaveLength(0)
      await server.reload({ push: { vapid }, rateLimits })
    })

    test('[PUSH-WEB-5] a redirect is not followed', async () => {
      const { userId, browser } = await newOwner(server)
      browser.answer(new Response(null, { status: 307, headers: { location: `${internal.url.origin}/x` } }))
      expect((await send(server, userId)).body).toEqual({ ok: true, sent: 0, failed: 1 })
      expect(internalRequests).toBe(0)
    })

    const noKeys = (keys: object) => JSON.stringify({ endpoint: `${pushes.origin}/x`, keys })
    const { p256dh, auth } = JSON.parse(subscriptionOf('https://a.example/', newBrowser())).keys
    test.each([
      ['no keys', noKeys({})],
      ['a short secret', noKeys({ p256dh, auth: 'AAAA' })],
      ['a key that is not a point of the curve', noKeys({ p256dh: Buffer.alloc(65, 4).toString('base64url'), auth })],
      ['a compressed key', noKeys({ p256dh: ecdh.getPublicKey('base64url', 'compressed'), auth })],
      ['a key that is a list', noKeys({ p256dh: [p256dh], auth })],
      ['malformed JSON', '{"endpoint":'],
    ])('[PUSH-WEB-1] a subscription with %s is refused', async (_, token) => {
      expectRefusal(await register(server, newUser(), token), 400)
    })
  })

  test('[PUSH-WEB-6] /api/config returns the public key and nothing private', async () => {
    const { body, text } = await server.anonymous.get('/api/config')
    expect(body.push).toEqual({ vapidPublicKey: publicKey })
    expect(text).not.toContain(privateKey)
    expect(server.logged()).not.toContain(privateKey)
  })
})

describeServer('FCM and web push', { config: { push: { vapid, fcm: fcm.config }, rateLimits }, clock }, (server) => {
  test('[PUSH-WEB-1] each device is reached through its service, and a broadcast through both', async () => {
    const { userId, browser } = await newOwner(server)
    const token = `token-${crypto.randomUUID()}`
    await register(server, userId, token, 'other')
    expect((await send(server, userId)).body).toEqual({ ok: true, sent: 2, failed: 0 })
    expect(fcm.attempts(token)).toBe(1)
    expect(browser.taken.length).toBe(1)
    const before = fcm.messages.length
    await server.service.post('/api/push/broadcast', { payload: hello })
    await pushes.until(() => browser.taken.length === 2)
    expect(fcm.messages.slice(before)).toMatchObject([{ topic: 'all' }])
  })
})

describe('requests to the public internet', () => {
  const bounds = { timeoutMs: 5000, bytesMax: 1000 }

  test('[PUSH-WEB-5] a host is resolved once, and all its addresses must be public', async () => {
    const lookups: string[] = []
    const request = (addresses: readonly string[]) =>
      createPublicFetch({
        ...bounds,
        trusted: () => false,
        async lookup(host) {
          lookups.push(host)
          return addresses
        },
      })('https://rebinding.example/x')
    for (const addresses of [['127.0.0.1'], ['8.8.8.8', '10.0.0.1'], ['::1'], ['2606:4700::1111', 'fd00::1'], []])
      await expect(request(addresses)).rejects.toBeInstanceOf(NotPublicError)
    expect(lookups).toHaveLength(5)
    expect(internalRequests).toBe(0)
  })

  test('[PUSH-WEB-5] a resolver that does not respond times out', async () => {
    const lookup = () => new Promise<never>(() => {})
    const request = createPublicFetch({ timeoutMs: 50, bytesMax: 1000, trusted: () => false, lookup })
    await expect(request('https://push.example.com/x')).rejects.toMatchObject({ name: 'TimeoutError' })
  })

  test('[PUSH-WEB-5] the connection uses the checked address and the original host name', async () => {
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: ({ headers, url }) => new Response(`${headers.get('host')} ${new URL(url).pathname}`),
    })
    const url = new URL(`http://no-such-name.example:${server.port}/a`)
    const answer = await fetchAt('127.0.0.1', url, bounds)
    expect(await answer.text()).toBe(`${url.host} /a`)
    await server.stop(true)
  })

  test('[PUSH-WEB-5] public URLs are accepted', () => {
    for (const url of ['https://fcm.googleapis.com/wp/x', 'https://1.1.1.1/x', 'https://[2606:4700::1111]/x'])
      expect(mayBePublic(new URL(url))).toBe(true)
  })
})
