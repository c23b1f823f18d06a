/** Devices: registration, ownership and removal. */
import { afterAll, describe, expect, test } from 'bun:test'
import type { Client } from '../harness/client.ts'
import { openFcm } from '../harness/push/fcm.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, type TestServer } from '../harness/server.ts'
import { signUp } from '../harness/users/test-user.ts'

const fcm = openFcm()
afterAll(() => fcm.close())

let made = 0
const newToken = (): string => `token-${++made}:${crypto.randomUUID()}`

const unlimited = { requests: 1_000_000 }
const config = {
  push: { fcm: fcm.config },
  rateLimits: { push: unlimited, auth: unlimited, signup: unlimited, signin: unlimited },
}

interface ShownDevice {
  readonly id: string
  readonly token: string
  readonly userId: string
}

async function devicesOf(server: TestServer, userId: string): Promise<readonly ShownDevice[]> {
  const { status, body } = await server.service.get(`/api/push/tokens?userId=${encodeURIComponent(userId)}`)
  expect(status).toBe(200)
  return body.tokens
}

const tokensOf = async (server: TestServer, userId: string): Promise<string[]> =>
  (await devicesOf(server, userId)).map(({ token }) => token)

const register = (client: Client, deviceId: string, token: string, platform = 'android') =>
  client.post('/api/push/register', { deviceId, token, platform })

describeServer('devices', { config }, (server) => {
  test('[PUSH-1] registering returns the device, and the service key can list it', async () => {
    const token = newToken()
    const { status, body } = await register(server.as('ada'), 'phone', token)
    expect(status).toBe(200)
    expect(body).toEqual({
      id: 'phone',
      token,
      platform: 'android',
      userId: 'ada',
      createdAt: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
    })
    expect(await devicesOf(server, 'ada')).toEqual([{ ...body, metadata: {} }])
    expect(await devicesOf(server, 'unknown')).toEqual([])
  })

  test.each([
    [{}],
    [{ token: 't', platform: 'web' }],
    [{ deviceId: 'a', platform: 'web' }],
    [{ deviceId: 'a', token: 't' }],
    [{ deviceId: '', token: 't', platform: 'web' }],
    [{ deviceId: 'a', token: '', platform: 'web' }],
    [{ deviceId: 'a', token: 't', platform: 'windows' }],
    [{ deviceId: 'a'.repeat(129), token: 't', platform: 'ios' }],
    [{ deviceId: 'a', token: 't'.repeat(4097), platform: 'ios' }],
    [{ deviceId: 'a\0', token: 't', platform: 'ios' }],
    [{ deviceId: 'a', token: 't\r\nX-Injected: 1', platform: 'ios' }],
    [{ deviceId: 'a', token: 't t', platform: 'android' }],
    [{ deviceId: { $gt: '' }, token: 't', platform: 'ios' }],
    [{ deviceId: 'a', token: ['t'], platform: 'ios' }],
    [{ deviceId: 'a', token: '{}', platform: 'web' }],
    [{ deviceId: 'a', token: '{"endpoint":"https://push.example.com/x"}', platform: 'web' }],
  ])('[PUSH-1] %.80j is refused, and nothing is registered', async (body) => {
    expectRefusal(await server.as('eve').post('/api/push/register', body), 400)
    expect(await devicesOf(server, 'eve')).toEqual([])
  })

  test('[PUSH-1] only users can register devices', async () => {
    const body = { deviceId: 'a', token: newToken(), platform: 'ios' }
    for (const path of ['register', 'unregister', 'topic/subscribe', 'topic/unsubscribe']) {
      expectRefusal(await server.anonymous.post(`/api/push/${path}`, { ...body, topic: 'x' }), 401)
      expectRefusal(await server.service.post(`/api/push/${path}`, { ...body, topic: 'x' }), 403)
    }
    expectRefusal(await server.withKey('wrong').post('/api/push/register', body), 401)
  })

  test('[PUSH-2] registering a device again updates it and keeps its date and metadata', async () => {
    const [first, second] = [newToken(), newToken()]
    const before = (await register(server.as('bob'), 'phone', first)).body
    await server.service.patch('/api/push/tokens', { userId: 'bob', deviceId: 'phone', metadata: { a: 1 } })
    const after = (await register(server.as('bob'), 'phone', second, 'ios')).body
    expect(after).toEqual({ ...before, token: second, platform: 'ios' })
    expect(await devicesOf(server, 'bob')).toEqual([{ ...after, metadata: { a: 1 } }])
    await fcm.until(() => fcm.membersOf('all').includes(second) && !fcm.membersOf('all').includes(first))
  })

  test('[PUSH-3] a token moves to the user who registers it last, and device ids are scoped to users', async () => {
    const [token, own] = [newToken(), newToken()]
    await register(server.as('carl'), 'phone', token)
    await register(server.as('cora'), 'phone', own)
    expect(await tokensOf(server, 'carl')).toEqual([token])
    expect(await tokensOf(server, 'cora')).toEqual([own])
    expect((await register(server.as('cora'), 'tablet', token)).status).toBe(200)
    expect(await tokensOf(server, 'carl')).toEqual([])
    expect(await tokensOf(server, 'cora')).toEqual([own, token])
  })

  test('[PUSH-3] one of 40 users who register a token concurrently owns it', async () => {
    const token = newToken()
    const users = Array.from({ length: 40 }, (_, at) => `racer-${at}`)
    const answers = await Promise.all(users.map((user) => register(server.as(user), 'phone', token)))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    const found = await Promise.all(users.map((user) => tokensOf(server, user)))
    expect(found.flat()).toEqual([token])
  })

  test('[PUSH-4] the eleventh device replaces the least recently registered one', async () => {
    const tokens = Array.from({ length: 11 }, newToken)
    for (const [at, token] of tokens.slice(0, 10).entries()) await register(server.as('dan'), `d${at}`, token)
    // The first device registers again.
    await register(server.as('dan'), 'd0', tokens[0] as string)
    await register(server.as('dan'), 'd10', tokens[10] as string)
    expect((await devicesOf(server, 'dan')).map(({ id }) => id)).toEqual([
      'd2',
      'd3',
      'd4',
      'd5',
      'd6',
      'd7',
      'd8',
      'd9',
      'd0',
      'd10',
    ])
    await fcm.until(() => !fcm.membersOf('all').includes(tokens[1] as string))
  })

  test('[PUSH-4] ten of 50 devices registered concurrently remain', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, at) => register(server.as('emma'), `d${at}`, newToken())),
    )
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(await devicesOf(server, 'emma')).toHaveLength(10)
  })

  test('[PUSH-5] unregistering removes a token of the caller, and responds equally for any other token', async () => {
    const [token, foreign] = [newToken(), newToken()]
    await register(server.as('finn'), 'phone', token)
    await register(server.as('fred'), 'phone', foreign)
    await fcm.until(() => [token, foreign].every((one) => fcm.membersOf('all').includes(one)))
    for (const other of [foreign, newToken()]) {
      const { status, body } = await server.as('finn').post('/api/push/unregister', { token: other })
      expect(status).toBe(200)
      expect(body).toEqual({ ok: true })
    }
    expect(await tokensOf(server, 'fred')).toEqual([foreign])
    expect((await server.as('finn').post('/api/push/unregister', { token })).body).toEqual({ ok: true })
    expect(await tokensOf(server, 'finn')).toEqual([])
    expectRefusal(await server.as('finn').post('/api/push/unregister', {}), 400)
    await fcm.until(() => !fcm.membersOf('all').includes(token))
    expect(fcm.membersOf('all')).toContain(foreign)
  })

  test('[PUSH-5] unregistering by device id removes only that device of the caller', async () => {
    const [phone, tablet, foreign] = [newToken(), newToken(), newToken()]
    await register(server.as('greta'), 'phone', phone)
    await register(server.as('greta'), 'tablet', tablet)
    await register(server.as('gus2'), 'phone', foreign)
    const unregister = (body: object) => server.as('greta').post('/api/push/unregister', body)
    for (const deviceId of ['nowhere', 'Phone']) expect((await unregister({ deviceId })).body).toEqual({ ok: true })
    expect(await tokensOf(server, 'greta')).toHaveLength(2)
    expect((await unregister({ deviceId: 'phone' })).body).toEqual({ ok: true })
    expect(await tokensOf(server, 'greta')).toEqual([tablet])
    expect(await tokensOf(server, 'gus2')).toEqual([foreign])
    for (const body of [{}, { deviceId: '' }, { deviceId: 7 }, { deviceId: 'a\0' }])
      expectRefusal(await unregister(body), 400)
    expect(await tokensOf(server, 'greta')).toEqual([tablet])
    await fcm.until(() => !fcm.membersOf('all').includes(phone))
  })

  describe('devices end with their session', () => {
    const endings: readonly [string, (id: string, person: Awaited<ReturnType<typeof signUp>>) => Promise<unknown>][] = [
      ['disabled', (id) => server.service.patch(`/api/auth/admin/users/${id}`, { disabled: true })],
      ['deleted', (id) => server.service.delete(`/api/auth/admin/users/${id}`)],
      ['revoked', (id) => server.service.post(`/api/auth/admin/users/${id}/revoke`, undefined)],
      [
        'signed out',
        async (_, { client }) => {
          const { body } = await client.get('/api/auth/sessions')
          for (const { id } of body.sessions) await client.delete(`/api/auth/sessions/${id}`)
        },
      ],
    ]
    for (const [name, end] of endings)
      test(`[PUSH-6] when the user is ${name}`, async () => {
        const person = await signUp(server)
        const token = newToken()
        expect((await register(person.client, 'phone', token)).status).toBe(200)
        await fcm.until(() => fcm.membersOf('all').includes(token))
        await end(person.id, person)
        expect(await tokensOf(server, person.id)).toEqual([])
        expectRefusal(await server.service.post('/api/push/send', { userId: person.id, title: 'a', body: 'b' }), 404)
        expectRefusal(await register(person.client, 'phone', token), 401)
        expect(await tokensOf(server, person.id)).toEqual([])
        await fcm.until(() => !fcm.membersOf('all').includes(token))
        expect(fcm.attempts(token)).toBe(0)
      })

    test('[PUSH-6] ending a session keeps the devices of other sessions', async () => {
      const person = await signUp(server)
      const [first, second] = [newToken(), newToken()]
      await register(person.client, 'phone', first)
      const { body } = await person.signIn()
      const later = await fetch(`${server.url}/api/push/register`, {
        method: 'POST',
        headers: { authorization: `Bearer ${body.accessToken}`, 'content-type': 'application/json' },
        body: JSON.stringify({ deviceId: 'tablet', token: second, platform: 'ios' }),
      })
      expect(later.status).toBe(200)
      await server.anonymous.post('/api/auth/signout', { refreshToken: body.refreshToken })
      expect(await tokensOf(server, person.id)).toEqual([first])
    })

    test('[PUSH-6] registrations concurrent with the deletion of the user leave no device', async () => {
      for (let round = 0; round < 5; round++) {
        const person = await signUp(server)
        const racing = Array.from({ length: 8 }, (_, at) => register(person.client, `d${at}`, newToken()))
        const [removed, ...answers] = await Promise.all([
          server.service.delete(`/api/auth/admin/users/${person.id}`),
          ...racing,
        ])
        expect(removed.status).toBe(200)
        expect(answers.every(({ status }) => status === 200 || status === 401)).toBe(true)
        expect(await tokensOf(server, person.id)).toEqual([])
      }
    })
  })

  test('[PUSH-7] only the service key can write and read metadata', async () => {
    const token = newToken()
    const device = (await register(server.as('gina'), 'phone', token)).body
    const path = '/api/push/tokens'
    const ofPhone = { userId: 'gina', deviceId: 'phone' }
    expect((await server.service.patch(path, { ...ofPhone, metadata: { model: 'X' } })).body).toEqual({ ok: true })
    expect(await devicesOf(server, 'gina')).toEqual([{ ...device, metadata: { model: 'X' } }])
    for (const wrong of [{}, ofPhone, { ...ofPhone, metadata: [] }, { ...ofPhone, metadata: { a: 'x'.repeat(4096) } }])
      expectRefusal(await server.service.patch(path, wrong), 400)
    for (const other of [
      { userId: 'gina', deviceId: 'tablet' },
      { userId: 'gus', deviceId: 'phone' },
    ])
      expectRefusal(await server.service.patch(path, { ...other, metadata: {} }), 404)
    expectRefusal(await server.service.get(path), 400)
    expect(await devicesOf(server, 'gina')).toEqual([{ ...device, metadata: { model: 'X' } }])
    expect((await register(server.as('gina'), 'phone', token)).body).toEqual(device)
  })
})
