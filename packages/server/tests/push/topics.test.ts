/** Topics: that FCM ends up knowing what is wanted, whatever happens on the way. */
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
  test('[PUSH-TOPIC-1] every device hears of `all` once it is registered', async () => {
    const token = newToken()
    await register(server, newName(), token)
    await fcm.until(() => fcm.membersOf('all').includes(token))
  })

  test('[PUSH-TOPIC-1] also where FCM was away then', async () => {
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

  test('[PUSH-TOPIC-2] all devices of the user follow, and leave again', async () => {
    const [user, topic] = [newName(), newName()]
    const tokens = [newToken(), newToken()].sort()
    for (const token of tokens) await register(server, user, token, token)
    await register(server, 'somebody-else', newToken())
    await server.tidy()
    const followed = await subscribe(server, user, topic)
    expect([followed.status, followed.body]).toEqual([200, { ok: true, subscribed: 2, failed: 0 }])
    expect(fcm.membersOf(topic)).toEqual(tokens)
    const left = await unsubscribe(server, user, topic)
    expect([left.status, left.body]).toEqual([200, { ok: true, unsubscribed: 2, failed: 0 }])
    expect(fcm.membersOf(topic)).toEqual([])
  })

  test('[PUSH-TOPIC-2] 400 without a topic, 401 without a token, 404 without a device', async () => {
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
    test('[PUSH-TOPIC-4] go over to its new token', async () => {
      const [user, topic, first, second] = [newName(), newName(), newToken(), newToken()]
      await register(server, user, first)
      await subscribe(server, user, topic)
      await register(server, user, second)
      await fcm.until(() => fcm.membersOf(topic).join() === second)
      await fcm.until(() => fcm.membersOf('all').includes(second) && !fcm.membersOf('all').includes(first))
    })

    test('[PUSH-TOPIC-4] are not those of whoever takes its token', async () => {
      const [first, second, topic, token] = [newName(), newName(), newName(), newToken()]
      await register(server, first, token)
      await subscribe(server, first, topic)
      await register(server, second, token)
      await fcm.until(() => fcm.membersOf(topic).length === 0)
      await server.tidy()
      expect(fcm.membersOf('all')).toContain(token)
    })

    test('[PUSH-TOPIC-4] end when it is unregistered, or dead', async () => {
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

  test('[PUSH-TOPIC-5] a device follows 200 topics and `all`, and no more', async () => {
    const [user, token] = [newName(), newToken()]
    await register(server, user, token)
    const answers = []
    for (let at = 0; at < 201; at++) answers.push((await subscribe(server, user, `many-${at}`)).status)
    expect(answers.filter((status) => status === 200)).toHaveLength(199)
    expect(answers.slice(199)).toEqual([400, 400])
    expect(fcm.membersOf('many-200')).toEqual([])
    expect((await subscribe(server, user, 'many-0')).status).toBe(200)
  })

  test('[PUSH-TOPIC-6] a token that FCM does not know counts as failed, and is not tried for ever', async () => {
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

  test('[PUSH-TOPIC-6] where FCM is away it is told later, with what is wanted by then', async () => {
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

  test('[PUSH-TOPIC-6] what it was not told when it went from the configuration is told when it is back', async () => {
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<Response>()]
    const [first, second] = [newToken(), newToken()]
    await server.tidy()
    fcm.scriptTopics(() => {
      asked.resolve()
      return answer.promise
    })
    await register(server, newName(), first)
    await asked.promise
    await register(server, newName(), second)
    const { push: _, ...without } = config
    await server.reload(without)
    answer.resolve(Response.json({}, { status: 500, headers: { 'retry-after': '9999' } }))
    await server.tidy()
    await server.reload(config)
    await server.elapse(60_000)
    await server.tidy()
    expect(fcm.membersOf('all')).toContain(first)
    expect(fcm.membersOf('all')).toContain(second)
  })

  test('[PUSH-TOPIC-7] of 40 changes at once, what is stored last is what FCM knows', async () => {
    const [user, token] = [newName(), newToken()]
    await register(server, user, token)
    const topics = [newName(), newName(), newName(), newName()]
    await Promise.all(
      Array.from({ length: 40 }, (_, at) => {
        const topic = topics[at % 4] as string
        return at % 8 < 4 ? subscribe(server, user, topic) : unsubscribe(server, user, topic)
      }),
    )
    // What each topic stands at is asked for by a broadcast of ours that nobody else makes: the last change wins.
    for (const [at, topic] of topics.entries()) await (at % 2 === 0 ? subscribe : unsubscribe)(server, user, topic)
    await server.elapse(60_000)
    await server.tidy()
    for (const [at, topic] of topics.entries()) expect(fcm.membersOf(topic)).toEqual(at % 2 === 0 ? [token] : [])
  })
})
