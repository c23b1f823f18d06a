/** Sending through FCM to users, tokens and topics, and the push log. */
import { afterAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import type { Room, RoomPlayer } from '../../src/config/sections/rooms/room-code.ts'
import type { Client } from '../harness/client.ts'
import { engines } from '../harness/engines.ts'
import { type Fcm, openFcm } from '../harness/push/fcm.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { join, newRoomId } from '../harness/rooms/rooms.ts'
import { describeServer, startServer, type TestServer } from '../harness/server.ts'

const clock = manualClock()
const fcm: Fcm = openFcm(clock)
afterAll(() => fcm.close())

const unlimited = { requests: 1_000_000 }
const config = { push: { fcm: fcm.config }, rateLimits: { push: unlimited } }
const hello = { title: 'Hello', body: 'World' }

let made = 0
const newToken = (): string => `token-${++made}:${crypto.randomUUID()}`
const newUser = (): string => `user-${++made}`

async function register(client: Client, token = newToken(), deviceId = 'phone', platform = 'android'): Promise<string> {
  expect((await client.post('/api/push/register', { deviceId, token, platform })).status).toBe(200)
  return token
}

/** Registers a user with this number of devices. */
async function newOwner(server: TestServer, devices = 1): Promise<{ userId: string; tokens: string[] }> {
  const userId = newUser()
  const tokens: string[] = []
  for (let at = 0; at < devices; at++) tokens.push(await register(server.as(userId), newToken(), `d${at}`))
  return { userId, tokens }
}

const send = (server: TestServer, body: object) => server.service.post('/api/push/send', body)
const messagesTo = (token: string) => fcm.messages.filter((message) => message.token === token)
const logsOf = async (server: TestServer, userId: string) =>
  (await server.service.get(`/api/push/logs?userId=${userId}`)).body.logs

describeServer('sending', { config, clock }, (server) => {
  describe('to a user', () => {
    test('[PUSH-SEND-1] sends to every device, with the fields at the top level or under `payload`', async () => {
      const { userId, tokens } = await newOwner(server, 3)
      for (const body of [
        { userId, ...hello },
        { userId, payload: hello },
      ]) {
        const answer = await send(server, body)
        expect(answer.status).toBe(200)
        expect(answer.body).toEqual({ ok: true, sent: 3, failed: 0 })
      }
      for (const token of tokens)
        expect(messagesTo(token)).toEqual(
          Array.from({ length: 2 }, () => expect.objectContaining({ token, notification: hello })),
        )
    })

    test('[PUSH-SEND-1] returns 404 for a user without devices and for an unknown user', async () => {
      expectRefusal(await send(server, { userId: 'unknown', ...hello }), 404)
    })

    const { userId } = { userId: 'ann' }
    const big = 'x'.repeat(4200)
    test.each<[string, object]>([
      ['no user', hello],
      ['no title', { userId, body: 'b' }],
      ['no body', { userId, title: 't' }],
      ['an empty payload', { userId, payload: {} }],
      ['a payload that is a list', { userId, payload: [hello] }],
      ['a user that is an object', { userId: { $gt: '' }, ...hello }],
      ['a badge below zero', { userId, ...hello, badge: -1 }],
      ['a badge that is text', { userId, ...hello, badge: '1' }],
      ['an image that is not an HTTP URL', { userId, ...hello, image: 'javascript:alert(1)' }],
      ['a line break in the collapse id', { userId, ...hello, collapseId: 'a\r\nX-Injected: 1' }],
      ['a collapse id that is too long', { userId, ...hello, collapseId: 'a'.repeat(65) }],
      ['a time to live below zero', { userId, ...hello, ttl: -1 }],
      ['a time to live beyond four weeks', { userId, ...hello, ttl: 2_419_201 }],
      ['a time to live that is not a number', { userId, ...hello, ttl: '60' }],
      ['data that is a list', { userId, ...hello, data: ['a'] }],
      ['overrides of the token', { userId, ...hello, fcm: { token: 'stolen' } }],
      ['overrides of the topic', { userId, ...hello, fcm: { topic: 'all' } }],
      ['overrides of the condition', { userId, ...hello, fcm: { condition: "'all' in topics" } }],
      ['a NUL', { userId, ...hello, title: 'a\0' }],
      ['more than 4 KB', { userId, ...hello, data: { big } }],
      ['more than 4 KB under payload', { userId, payload: { ...hello, data: { big } } }],
      ['more than 4 KB in overrides', { userId, ...hello, fcm: { data: { big } } }],
    ])('[PUSH-SEND-2] %s is refused, and nothing is sent', async (_, body) => {
      const token = await register(server.as(userId))
      expectRefusal(await send(server, body), 400)
      expect(fcm.attempts(token)).toBe(0)
      expect(await logsOf(server, userId)).toEqual([])
    })

    test('[PUSH-SEND-2] a payload of 4,096 bytes in UTF-8 is accepted, one of 4,097 is refused', async () => {
      const { userId } = await newOwner(server)
      const frame = Buffer.byteLength(JSON.stringify({ title: 't', body: 'ä' }))
      const text = `${'ä'.repeat(2000)}${'x'.repeat(4096 - frame - 3998)}`
      expect(Buffer.byteLength(JSON.stringify({ title: 't', body: text }))).toBe(4096)
      expect((await send(server, { userId, title: 't', body: text })).status).toBe(200)
      expectRefusal(await send(server, { userId, title: 't', body: `${text}x` }), 400)
    })
  })

  describe('to many users', () => {
    test('[PUSH-SEND-3] returns totals, and sends once to a user listed twice', async () => {
      const [one, two, gone] = [await newOwner(server, 2), await newOwner(server), await newOwner(server)]
      fcm.script(gone.tokens[0] as string, { status: 404, errorCode: 'UNREGISTERED' })
      const userIds = [one.userId, two.userId, one.userId, gone.userId, 'unknown']
      const { status, body } = await server.service.post('/api/push/send-many', { userIds, ...hello })
      expect(status).toBe(200)
      expect(body).toEqual({ ok: true, sent: 3, failed: 1 })
      for (const token of [...one.tokens, ...two.tokens]) expect(messagesTo(token)).toHaveLength(1)
      const none = await server.service.post('/api/push/send-many', { userIds: ['unknown'], payload: hello })
      expect(none.body).toEqual({ ok: true, sent: 0, failed: 0 })
    })

    test('[PUSH-SEND-3] 10,000 users are accepted, 10,001 are refused', async () => {
      const { userId, tokens } = await newOwner(server)
      const others = Array.from({ length: 9_999 }, (_, at) => `unknown-${at}`)
      const taken = await server.service.post('/api/push/send-many', { userIds: [...others, userId], ...hello })
      expect(taken.body).toEqual({ ok: true, sent: 1, failed: 0 })
      const userIds = [...others, userId, 'one-more']
      expectRefusal(await server.service.post('/api/push/send-many', { userIds, ...hello }), 400)
      for (const wrong of [{ ...hello }, { userIds: 'ann', ...hello }, { userIds: [1], ...hello }, { userIds: ['a'] }])
        expectRefusal(await server.service.post('/api/push/send-many', wrong), 400)
      expect(fcm.attempts(tokens[0] as string)).toBe(1)
    })

    test('[PUSH-SEND-3] a job sends at most 16 messages at a time and does not delay other requests', async () => {
      const crowd = await Promise.all(Array.from({ length: 10 }, () => newOwner(server, 10)))
      const single = await newOwner(server)
      const response = Promise.withResolvers<Response>()
      const all = crowd.flatMap(({ tokens }) => tokens)
      for (const token of all) fcm.script(token, async () => (await response.promise).clone() as Response)
      const userIds = crowd.map(({ userId }) => userId)
      const job = server.service.post('/api/push/send-many', { userIds, ...hello })
      await fcm.until(() => all.filter((token) => fcm.attempts(token) > 0).length >= 16)
      expect((await send(server, { userId: single.userId, ...hello })).body.sent).toBe(1)
      expect(all.filter((token) => fcm.attempts(token) > 0)).toHaveLength(16)
      response.resolve(Response.json({ name: 'x' }))
      expect((await job).body).toEqual({ ok: true, sent: 100, failed: 0 })
    })
  })

  describe('to a token, a topic and all devices', () => {
    const toToken = '/api/push/send-to-token'
    const toTopic = '/api/push/send-to-topic'
    const toAll = '/api/push/broadcast'

    test('[PUSH-SEND-4] a token need not be registered, and the log contains its owner', async () => {
      const { userId, tokens } = await newOwner(server)
      for (const token of [newToken(), tokens[0]]) {
        const { status, body } = await server.service.post(toToken, { token, payload: hello })
        expect(status).toBe(200)
        expect(body).toMatchObject({ sent: 1, failed: 0 })
        expect(messagesTo(token as string)).toHaveLength(1)
      }
      expect(await logsOf(server, userId)).toMatchObject([{ userId, platform: 'android', status: 'sent' }])
      const [unregistered] = (await server.service.get('/api/push/logs?limit=2')).body.logs.slice(1)
      expect(unregistered).toMatchObject({ userId: '', platform: 'web', status: 'sent' })
      for (const wrong of [
        { payload: hello },
        { token: 't' },
        { token: 't', payload: {} },
        { token: 't', payload: 'x' },
      ])
        expectRefusal(await server.service.post(toToken, wrong), 400)
    })

    test('[PUSH-SEND-5] a topic and a broadcast are one FCM message each', async () => {
      const before = fcm.messages.length
      const topical = await server.service.post(toTopic, { topic: 'news.of~the%day-1', payload: hello })
      const broadcast = await server.service.post(toAll, { payload: hello })
      for (const { status, body } of [topical, broadcast]) expect([status, body]).toEqual([200, { success: true }])
      expect(fcm.messages.slice(before)).toEqual([
        expect.objectContaining({ topic: 'news.of~the%day-1', notification: hello }),
        expect.objectContaining({ topic: 'all', notification: hello }),
      ])
    })

    test.each([
      "a' in topics || 'all",
      'a b',
      'a/b',
      '../x',
      '/topics/a',
      'ä',
      'a\r\nb',
      '',
      'a'.repeat(901),
      { topic: 'a' },
    ])('[PUSH-TOPIC-3] %.40p is not a valid topic', async (topic) => {
      const before = fcm.messages.length
      expectRefusal(await server.service.post(toTopic, { topic, payload: hello }), 400)
      for (const path of ['subscribe', 'unsubscribe'])
        expectRefusal(await server.as('ann').post(`/api/push/topic/${path}`, { topic }), 400)
      expect(fcm.messages).toHaveLength(before)
    })

    test('[PUSH-SEND-5] missing fields and refusals of FCM return 400, an unavailable FCM 503', async () => {
      expectRefusal(await server.service.post(toTopic, { payload: hello }), 400)
      expectRefusal(await server.service.post(toTopic, { topic: 'x' }), 400)
      expectRefusal(await server.service.post(toAll, {}), 400)
      expectRefusal(await server.service.post(toAll, { payload: { title: 'x' } }), 400)
      fcm.script('/topics/x', { status: 400, errorCode: 'INVALID_ARGUMENT' }, { status: 403 })
      expectRefusal(await server.service.post(toTopic, { topic: 'x', payload: hello }), 400)
      expectRefusal(await server.service.post(toTopic, { topic: 'x', payload: hello }), 503)
    })
  })

  describe('logs', () => {
    test('[PUSH-LOG-1] are listed newest first, for one user or all, up to the limit', async () => {
      const { userId, tokens } = await newOwner(server)
      for (let at = 0; at < 3; at++) await send(server, { userId, title: `title ${at}`, body: 'b' })
      fcm.script(tokens[0] as string, { status: 404, errorCode: 'UNREGISTERED' })
      await send(server, { userId, ...hello })
      const logs = await logsOf(server, userId)
      const common = {
        id: expect.any(String),
        userId,
        platform: 'android',
        timestamp: new Date(clock.now()).toISOString(),
      }
      expect(logs).toEqual([
        { ...common, ...hello, status: 'removed', error: 'UNREGISTERED' },
        ...[2, 1, 0].map((at) => ({ ...common, title: `title ${at}`, body: 'b', status: 'sent', error: null })),
      ])
      expect((await server.service.get('/api/push/logs?limit=2')).body.logs).toEqual(logs.slice(0, 2))
      const many = await newOwner(server, 10)
      for (let at = 0; at < 6; at++) await send(server, { userId: many.userId, ...hello })
      expect(await logsOf(server, many.userId)).toHaveLength(50)
      expect((await server.service.get(`/api/push/logs?userId=${many.userId}&limit=5000`)).body.logs).toHaveLength(60)
      for (const limit of ['0', '-1', '1.5', 'x', ''])
        expectRefusal(await server.service.get(`/api/push/logs?limit=${limit}`), 400)
      expectRefusal(await server.service.get('/api/push/logs?userId=%00'), 400)
    })

    test('[PUSH-LOG-1] are listed up to a maximum of 1,000 entries', async () => {
      const owners = await Promise.all(Array.from({ length: 3 }, () => newOwner(server, 10)))
      const userIds = owners.map(({ userId }) => userId)
      for (let at = 0; at < 34; at++)
        expect((await server.service.post('/api/push/send-many', { userIds, ...hello })).body.sent).toBe(30)
      expect((await server.service.get('/api/push/logs?limit=5000')).body.logs).toHaveLength(1000)
    })

    test('[PUSH-LOG-1] require a service key', async () => {
      expectRefusal(await server.anonymous.get('/api/push/logs'), 403)
      expectRefusal(await server.as('ann').get('/api/push/logs?userId=ann'), 403)
    })

    test('[PUSH-LOG-2] are kept for 24 hours', async () => {
      const { userId } = await newOwner(server)
      await send(server, { userId, ...hello })
      await server.elapse(24 * 60 * 60 * 1000 - 1)
      expect(await logsOf(server, userId)).toHaveLength(1)
      await server.elapse(1)
      expect(await logsOf(server, userId)).toEqual([])
      await server.tidy()
      await server.elapse(-1)
      expect(await logsOf(server, userId)).toEqual([])
    })
  })

  test('[PUSH-8] administrative endpoints return 403 without a service key, and 401 with an invalid one', async () => {
    const requests = [
      ['POST', 'send'],
      ['POST', 'send-many'],
      ['POST', 'send-to-token'],
      ['POST', 'send-to-topic'],
      ['POST', 'broadcast'],
      ['PATCH', 'tokens'],
      ['GET', 'tokens?userId=a'],
      ['GET', 'logs'],
    ] as const
    for (const [method, path] of requests) {
      const body = method === 'GET' ? {} : { body: {} }
      expectRefusal(await server.anonymous.request(method, `/api/push/${path}`, body), 403)
      expectRefusal(await server.as({ id: 'a', role: 'admin' }).request(method, `/api/push/${path}`, body), 403)
      expectRefusal(await server.withKey('wrong').request(method, `/api/push/${path}`, body), 401)
    }
  })
})

const rooms = {
  game: {
    access: { join: true },
    actions: {
      nudge: (room: Room, _: RoomPlayer, { userId, message }: { userId: string; message: object }) =>
        room.push.send(userId, { ...message }),
    },
  },
}

describeServer('room.push', { config: { ...config, rooms }, clock }, (server) => {
  test('[PUSH-SEND-7] sends to a user with or without devices, and validates like the API', async () => {
    const { userId, tokens } = await newOwner(server, 2)
    const ann = await join(server, 'ann', { namespace: 'game', id: newRoomId() })
    const nudge = (to: string, message: object) => ann.act('nudge', { userId: to, message })
    expect(await nudge(userId, hello)).toMatchObject({ result: { ok: true, sent: 2, failed: 0 } })
    for (const token of tokens) expect(messagesTo(token)).toMatchObject([{ notification: hello }])
    expect(await nudge('unknown', hello)).toMatchObject({ result: { ok: true, sent: 0, failed: 0 } })
    expect(await nudge(userId, { title: 'a', body: 'b', fcm: { topic: 'all' } })).toMatchObject({
      type: 'action_error',
    })
    for (const token of tokens) expect(fcm.attempts(token)).toBe(1)
    await ann.close()
  })
})

test.each(engines)(
  '[PUSH-9] without credentials, registration works and sends and topic changes return 503, on $name',
  async (engine) => {
    const server = await startServer(
      { config: { push: { fcm: { projectId: 'demo', serviceAccount: undefined } } } },
      engine,
    )
    for (const path of ['subscribe', 'unsubscribe'])
      expectRefusal(await server.as('ann').post(`/api/push/topic/${path}`, { topic: 'x' }), 404)
    await register(server.as('ann'))
    const payload = hello
    const requests: [string, object][] = [
      ['send', { userId: 'ann', ...hello }],
      ['send-many', { userIds: ['ann'], ...hello }],
      ['send-to-token', { token: 't', payload }],
      ['send-to-topic', { topic: 't', payload }],
      ['broadcast', { payload }],
    ]
    for (const [path, body] of requests)
      expect(expectRefusal(await server.service.post(`/api/push/${path}`, body), 503).slug).toBe('push-not-configured')
    for (const path of ['subscribe', 'unsubscribe'])
      expectRefusal(await server.as('ann').post(`/api/push/topic/${path}`, { topic: 'x' }), 503)
    expect((await server.service.get('/api/push/logs')).body).toEqual({ logs: [] })
    // Once credentials are configured, earlier registrations are sent to FCM.
    const [{ token }] = (await server.service.get('/api/push/tokens?userId=ann')).body.tokens
    await server.reload(config)
    await server.tidy()
    expect(fcm.membersOf('all')).toContain(token)
    expect((await server.service.post('/api/push/send', { userId: 'ann', ...hello })).body.sent).toBe(1)
    await server.close()
  },
)
