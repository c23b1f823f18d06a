/** Topics: the subscriptions at FCM converge to the stored ones, across failures and restarts. */
import { afterAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { openFcm } from '../harness/push/fcm.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, type TestServer } from '../harness/server.ts'

const clock = manualClock()
const fcm = openFcm(clock)
afterAll(() => fcm.close())

const config = { push: { fcm: fcm.config }, rateLimits: { push: { requests: 1_000_000 } } }
let made = 0
const newToken = (): string => `token-${++made}:${crypto.randomUUID()}`
const newName = (): string => `name-${++made}`

const register = (server: TestServer, user: string, token: string, deviceId = 'phone') =>
  server.as(user).post('/api/push/register', { deviceId, token, platform: 'android' })
const subscribe = (server: TestServer, user: string, topic: string) =>
  server.as(user).post('/api/push/topic/subscribe', { topic })
const unsubscribe = (server: TestServer, user: string, topic: string) =>
  server.as(user).post('/api/push/topic/unsubscribe', { topic })

describeServer('topics', { config, clock }, (server) => {
  test('[PUSH-TOPIC-1] a registered device is subscribed to `all`', async () => {
    const token = newToken()
    await register(server, newName(), token)
    await fcm.until(() => fcm.membersOf('all').includes(token))
  })

  test('[PUSH-TOPIC-1] a registered device is subscribed to `all` after an outage of FCM', async () => {
    const token = newToken()
    const away = { status: 503, retryAfter: '9999' }
    await server.tidy()
    const calls = fcm.topicCalls
    fcm.scriptTopics(away)
    expect((await register(server, newName(), token)).status).toBe(200)
    await fcm.until(() => fcm.topicCalls > calls)
    await server.tidy()
    expect(fcm.membersOf('all')).not.toContain(token)
    await server.elapse(60_000)
    await server.tidy()
    expect(fcm.membersOf('all')).toContain(token)
  })

  test('[PUSH-TOPIC-2] all devices of the user are subscribed and unsubscribed', async () => {
    const [user, topic] = [newName(), newName()]
    const tokens = [newToken(), newToken()].sort()
    for (const token of tokens) await register(server, user, token, token)
    await register(server, 'another-user', newToken())
    await server.tidy()
    const followed = await subscribe(server, user, topic)
    expect(followed.status).toBe(200)
    expect(followed.body).toEqual({ ok: true, subscribed: 2, failed: 0 })
    expect(fcm.membersOf(topic)).toEqual(tokens)
    const left = await unsubscribe(server, user, topic)
    expect(left.status).toBe(200)
    expect(left.body).toEqual({ ok: true, unsubscribed: 2, failed: 0 })
    expect(fcm.membersOf(topic)).toEqual([])
  })

  test('[PUSH-TOPIC-2] a change returns 400 without a topic, 401 without a token and 404 without a device', async () => {
    const user = newName()
    expectRefusal(await subscribe(server, user, 'x'), 404)
    expectRefusal(await unsubscribe(server, user, 'x'), 404)
    await register(server, user, newToken())
    for (const path of ['subscribe', 'unsubscribe']) {
      expectRefusal(await server.as(user).post(`/api/push/topic/${path}`, {}), 400)
      expectRefusal(await server.anonymous.post(`/api/push/topic/${path}`, { topic: 'x' }), 401)
    }
  })

  describe('[PUSH-TOPIC-4] a device’s topics', () => {
    test('[PUSH-TOPIC-4] move to its new token', async () => {
      const [user, topic, first, second] = [newName(), newName(), newToken(), newToken()]
      await register(server, user, first)
      await subscribe(server, user, topic)
      await register(server, user, second)
      await fcm.until(() => fcm.membersOf(topic).join() === second)
      await fcm.until(() => fcm.membersOf('all').includes(second) && !fcm.membersOf('all').includes(first))
    })

    test('[PUSH-TOPIC-4] are not inherited by another user of its token', async () => {
      const [first, second, topic, token] = [newName(), newName(), newName(), newToken()]
      await register(server, first, token)
      await subscribe(server, first, topic)
      await register(server, second, token)
      await fcm.until(() => fcm.membersOf(topic).length === 0)
      await server.tidy()
      expect(fcm.membersOf('all')).toContain(token)
    })

    test('[PUSH-TOPIC-4] are removed when it is unregistered or no longer exists', async () => {
      const [user, topic, token, dead] = [newName(), newName(), newToken(), newToken()]
      await register(server, user, token)
      await register(server, user, dead, 'tablet')
      await subscribe(server, user, topic)
      await server.as(user).post('/api/push/unregister', { token })
      await fcm.until(() => fcm.membersOf(topic).join() === dead)
      fcm.script(dead, { status: 404, errorCode: 'UNREGISTERED' })
      await server.service.post('/api/push/send', { userId: user, title: 'a', body: 'b' })
      await fcm.until(() => fcm.membersOf(topic).length === 0)
    })
  })

  test('[PUSH-TOPIC-5] a device can subscribe to 200 topics including `all`', async () => {
    const [user, token] = [newName(), newToken()]
    await register(server, user, token)
    const answers = []
    for (let at = 0; at < 201; at++) answers.push((await subscribe(server, user, `many-${at}`)).status)
    expect(answers.filter((status) => status === 200)).toHaveLength(199)
    expect(answers.slice(199)).toEqual([400, 400])
    expect(fcm.membersOf('many-200')).toEqual([])
    expect((await subscribe(server, user, 'many-0')).status).toBe(200)
  })

  test('[PUSH-TOPIC-6] a token unknown to FCM counts as failed and is not retried', async () => {
    const [user, topic, good, bad] = [newName(), newName(), newToken(), newToken()]
    fcm.unknown.add(bad)
    await register(server, user, good)
    await register(server, user, bad, 'tablet')
    expect((await subscribe(server, user, topic)).body).toEqual({ ok: true, subscribed: 1, failed: 1 })
    fcm.unknown.delete(bad)
    await server.elapse(120_000)
    await server.tidy()
    expect(fcm.membersOf(topic)).toEqual([good])
  })

  test('[PUSH-TOPIC-6] changes during an outage of FCM are sent later, with the latest state', async () => {
    const [user, other, topic, token, second] = [newName(), newName(), newName(), newToken(), newToken()]
    await register(server, user, token)
    await register(server, other, second)
    await server.tidy()
    const away = { status: 500, retryAfter: '9999' }
    fcm.scriptTopics(away, away)
    expect((await subscribe(server, user, topic)).body).toEqual({ ok: true, subscribed: 0, failed: 1 })
    expect((await subscribe(server, other, topic)).body).toEqual({ ok: true, subscribed: 0, failed: 1 })
    expect((await unsubscribe(server, other, topic)).status).toBe(200)
    await server.elapse(60_000)
    await server.tidy()
    expect(fcm.membersOf(topic)).toEqual([token])
  })

  test('[PUSH-TOPIC-6] changes pending when FCM is removed from the configuration are sent when it is restored', async () => {
    const [requested, response] = [Promise.withResolvers<void>(), Promise.withResolvers<Response>()]
    const [first, second] = [newToken(), newToken()]
    await server.tidy()
    fcm.scriptTopics(() => {
      requested.resolve()
      return response.promise
    })
    await register(server, newName(), first)
    await requested.promise
    await register(server, newName(), second)
    const { push: _, ...without } = config
    await server.reload(without)
    response.resolve(Response.json({}, { status: 500, headers: { 'retry-after': '9999' } }))
    await server.tidy()
    await server.reload(config)
    await server.elapse(60_000)
    await server.tidy()
    expect(fcm.membersOf('all')).toContain(first)
    expect(fcm.membersOf('all')).toContain(second)
  })

  test('[PUSH-TOPIC-7] after 40 concurrent changes, FCM has the last stored state', async () => {
    const [user, token] = [newName(), newToken()]
    await register(server, user, token)
    const topics = [newName(), newName(), newName(), newName()]
    await Promise.all(
      Array.from({ length: 40 }, (_, at) => {
        const topic = topics[at % 4] as string
        return at % 8 < 4 ? subscribe(server, user, topic) : unsubscribe(server, user, topic)
      }),
    )
    // The outcome of the concurrent changes is unknown; these last changes determine the expected state.
    for (const [at, topic] of topics.entries()) await (at % 2 === 0 ? subscribe : unsubscribe)(server, user, topic)
    await server.elapse(60_000)
    await server.tidy()
    for (const [at, topic] of topics.entries()) expect(fcm.membersOf(topic)).toEqual(at % 2 === 0 ? [token] : [])
  })
})
