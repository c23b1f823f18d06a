/** Sessions: rotation of refresh tokens, sign-out, and revocation across nodes. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import type { Answer } from '../../harness/client.ts'
import { engines, sharedEngine } from '../../harness/engines.ts'
import { openNodes } from '../../harness/nodes.ts'
import { forge, readToken, signingKey } from '../../harness/records/forge.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { createServer, describeServer, type TestServer, tokenSecret } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'
import { adminUsers as admin, auth, bearer, usersConfig as config, password } from '../../harness/users/accounts.ts'
import { createUserRows, watchedEngine } from '../../harness/users/user-rows.ts'

const clock = manualClock()

interface Session {
  readonly user: { readonly id: string; readonly email: string | null }
  readonly accessToken: string
  readonly refreshToken: string
}

let emailCount = 0
/** A session of an anonymous user: such sign-ups are fast because they hash no password. */
async function begin(server: TestServer): Promise<Session> {
  const { status, body } = await server.anonymous.post(`${auth}/signin/anonymous`, undefined)
  expect(status).toBe(201)
  return body
}
const refresh = (server: TestServer, refreshToken: string): Promise<Answer> =>
  server.anonymous.post(`${auth}/refresh`, { refreshToken })
const me = (server: TestServer, { accessToken }: Pick<Session, 'accessToken'>): Promise<Answer> =>
  server.anonymous.get(`${auth}/me`, bearer(accessToken))

/** Asserts that the session has ended: its tokens are refused. */
async function expectEnded(server: TestServer, session: Session): Promise<void> {
  expect(expectRefusal(await me(server, session), 401).message).toBe('Invalid token')
  expect(expectRefusal(await refresh(server, session.refreshToken), 401).message).toBe('Invalid token')
}

describeServer('refresh', { config, clock }, (server) => {
  test('[SESS-1] a refresh returns new tokens and the current user', async () => {
    const first = await begin(server)
    await server.service.patch(`${admin}/${first.user.id}`, { displayName: 'Renamed', role: 'editor' })
    const { status, body } = await refresh(server, first.refreshToken)
    expect(status).toBe(200)
    expect(body.user).toMatchObject({ id: first.user.id, displayName: 'Renamed', role: 'editor' })
    expect(body.refreshToken).not.toBe(first.refreshToken)
    expect(body.expiresIn).toBe(900)
    expect(readToken(body.accessToken).claims).toMatchObject({ displayName: 'Renamed', role: 'editor' })
    expect(readToken(body.accessToken).claims.sid).toBe(readToken(first.accessToken).claims.sid)
    for (const session of [first, body]) expect((await me(server, session)).status).toBe(200)
  })

  test('[SESS-2] 50 concurrent refreshes return the same new refresh token', async () => {
    const { refreshToken } = await begin(server)
    const answers = await Promise.all(times(50, () => refresh(server, refreshToken)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const tokens = new Set(answers.map(({ body }) => body.refreshToken))
    expect(tokens.size).toBe(1)
    const [next] = tokens
    expect(next).not.toBe(refreshToken)
    expect((await refresh(server, next)).status).toBe(200)
  })

  test('[SESS-2, SESS-3] the previous refresh token works for exactly 30 seconds', async () => {
    const first = await begin(server)
    const { body: second } = await refresh(server, first.refreshToken)
    clock.advance(30_000)
    const again = await refresh(server, first.refreshToken)
    expect(again).toMatchObject({ status: 200, body: { refreshToken: second.refreshToken } })
    clock.advance(1)
    expectRefusal(await refresh(server, first.refreshToken), 401)
    for (const session of [first, second, again.body]) await expectEnded(server, session)
  })

  test('[SESS-3] a token older than the previous one ends the session, even within 30 seconds', async () => {
    const first = await begin(server)
    const other = await begin(server)
    const { body: second } = await refresh(server, first.refreshToken)
    const { body: third } = await refresh(server, second.refreshToken)
    expect((await me(server, third)).status).toBe(200)
    expectRefusal(await refresh(server, first.refreshToken), 401)
    for (const session of [first, second, third]) await expectEnded(server, session)
    expect((await refresh(server, other.refreshToken)).status).toBe(200)
  })

  test('[SESS-3] 50 concurrent reuses of an expired refresh token all fail and end the session', async () => {
    const first = await begin(server)
    const { body: second } = await refresh(server, first.refreshToken)
    clock.advance(30_001)
    const answers = await Promise.all(times(50, () => refresh(server, first.refreshToken)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]))
    await expectEnded(server, second)
  })

  test('[SESS-4] a session expires 28 days after its last refresh', async () => {
    const days28 = 28 * 24 * 60 * 60 * 1000
    const first = await begin(server)
    clock.advance(days28 - 1000)
    const { status, body: second } = await refresh(server, first.refreshToken)
    expect(status).toBe(200)
    clock.advance(days28)
    expect(expectRefusal(await refresh(server, second.refreshToken), 401).message).toBe('Token expired')
  })

  test('[SESS-3] a disabled or deleted user cannot refresh', async () => {
    const disabled = await begin(server)
    await server.service.patch(`${admin}/${disabled.user.id}`, { disabled: true })
    await expectEnded(server, disabled)
    await server.service.patch(`${admin}/${disabled.user.id}`, { disabled: false })
    await expectEnded(server, disabled)
    const deleted = await begin(server)
    await server.service.delete(`${admin}/${deleted.user.id}`)
    await expectEnded(server, deleted)
  })

  test('[SESS-3] a concurrent refresh does not restore a deleted user', async () => {
    for (const _ of times(10, () => 0)) {
      const { user, refreshToken } = await begin(server)
      const [, ...answers] = await Promise.all([
        server.service.delete(`${admin}/${user.id}`),
        ...times(5, () => refresh(server, refreshToken)),
      ])
      for (const { status, body } of answers) if (status === 200) await expectEnded(server, body)
      expectRefusal(await server.service.get(`${admin}/${user.id}`), 404)
    }
  })
})

describeServer('invalid tokens', { config, clock }, (server) => {
  const key = signingKey(tokenSecret)

  test('[SESS-8, TOKEN-8] an access token cannot replace a refresh token, nor the reverse', async () => {
    const { accessToken, refreshToken } = await begin(server)
    expectRefusal(await me(server, { accessToken: refreshToken }), 401)
    expectRefusal(await refresh(server, accessToken), 401)
    expectRefusal(await server.anonymous.post(`${auth}/signout`, { refreshToken: accessToken }), 401)
    expect((await refresh(server, refreshToken)).status).toBe(200)
  })

  test('[SESS-8] a forged refresh token is refused, even with a valid signature', async () => {
    const { refreshToken, user } = await begin(server)
    const { header, claims } = readToken(refreshToken)
    const other = await begin(server)
    const sid = readToken(other.refreshToken).claims.sid
    const forgeries: Readonly<Record<string, () => string>> = {
      'signed with another secret': () => forge(header, claims, signingKey('another-secret-0123456789-0123456789')),
      'with alg none': () => forge({ ...header, alg: 'none' }, claims, key),
      'of another issuer': () => forge(header, { ...claims, iss: 'evil' }, key),
      'without a session': () => forge(header, { ...claims, sid: undefined }, key),
      'of an unknown session': () => forge(header, { ...claims, sid: 'unknown' }, key),
      'of another user’s session': () => forge(header, { ...claims, sid }, key),
      'that is not JSON': () => 'x.y.z',
    }
    for (const make of Object.values(forgeries)) expectRefusal(await refresh(server, make()), 401)
    expect((await refresh(server, refreshToken)).body.user.id).toBe(user.id)
    expect((await refresh(server, other.refreshToken)).body.user.id).toBe(other.user.id)
  })

  test('[SESS-10] a token without a session is valid unless its user is disabled', async () => {
    const { user } = await begin(server)
    expect((await server.as('not-an-account').get('/api/config')).status).toBe(200)
    expect((await server.as(user.id).get(`${auth}/me`)).status).toBe(200)
    const token = await server.token(user.id)
    expect((await me(server, { accessToken: token })).status).toBe(200)
    await server.service.patch(`${admin}/${user.id}`, { disabled: true })
    expectRefusal(await me(server, { accessToken: token }), 401)
    expectRefusal(await server.as(user.id).get(`${auth}/me`), 401)
  })
})

describeServer('ending sessions', { config, clock }, (server) => {
  test('[SESS-5] a sign-out ends the session immediately and can be repeated', async () => {
    const session = await begin(server)
    expect((await me(server, session)).status).toBe(200)
    const signOut = () => server.anonymous.post(`${auth}/signout`, { refreshToken: session.refreshToken })
    for (const { status, body } of [await signOut(), await signOut()]) {
      expect(status).toBe(200)
      expect(body).toEqual({ ok: true })
    }
    await expectEnded(server, session)
    expectRefusal(await server.anonymous.post(`${auth}/signout`, { refreshToken: 'nonsense' }), 401)
  })

  test('[SESS-6] a user lists and ends own sessions, and no others', async () => {
    const email = `lena${++emailCount}@example.com`
    const browser = { 'user-agent': 'Browser of Lena' }
    const { body: first } = await server.anonymous.post(`${auth}/signup`, { email, password }, browser)
    const { body: second } = await server.anonymous.post(`${auth}/signin`, { email, password })
    const other = await begin(server)
    const list = async (token: string) => (await server.anonymous.get(`${auth}/sessions`, bearer(token))).body.sessions
    const ids = [second, first].map(({ accessToken }) => readToken(accessToken).claims.sid as string)
    const sessions = await list(first.accessToken)
    expect(sessions.map(({ id, isCurrent }: { id: string; isCurrent: boolean }) => [id, isCurrent])).toEqual([
      [ids[0], false],
      [ids[1], true],
    ])
    expect(sessions[1]).toMatchObject({ userAgent: 'Browser of Lena', address: '127.0.0.1' })
    expect(Object.keys(sessions[1]).sort()).toEqual([
      'address',
      'createdAt',
      'expiresAt',
      'id',
      'isCurrent',
      'lastUsedAt',
      'userAgent',
    ])
    const end = (id: string, token: string) => server.anonymous.delete(`${auth}/sessions/${id}`, bearer(token))
    for (const id of [...ids, 'unknown', '..%2F..']) expectRefusal(await end(id, other.accessToken), 404)
    expect((await end(ids[0] as string, first.accessToken)).body).toEqual({ ok: true })
    await expectEnded(server, second)
    expect(await list(first.accessToken)).toHaveLength(1)
    expect((await end(ids[1] as string, first.accessToken)).status).toBe(200)
    await expectEnded(server, first)
  })
})

for (const { engine, storage } of engines.map(watchedEngine))
  describe(`stored sessions on ${engine.name}`, () => {
    const server = createServer({ config, clock }, engine)
    const rows = createUserRows(server.dataFolder, storage)
    beforeAll(() => server.open())
    afterAll(() => server.close())

    test('[SESS-7] the 101st session of a user ends the least recently used one', async () => {
      const email = 'many@example.com'
      const { body: first } = await server.anonymous.post(`${auth}/signup`, { email, password })
      clock.advance(1000)
      const { body: second } = await server.anonymous.post(`${auth}/signin`, { email, password })
      clock.advance(1000)
      expect((await refresh(server, first.refreshToken)).status).toBe(200)
      clock.advance(1000)
      for (const n of times(98, (i) => i)) {
        const id = `session-${n}`
        const at = clock.now()
        const row = { id, user_id: first.user.id, generation: 0, refresh_hash: id, previous_hash: null, key_id: '0' }
        const timesOf = { rotated_at: at, created_at: at, used_at: at, expires_at: at + 1e9 }
        await rows.insert('_sessions', { ...row, ...timesOf, user_agent: null, address: null })
      }
      expect((await me(server, second)).status).toBe(200)
      expect((await server.anonymous.post(`${auth}/signin`, { email, password })).status).toBe(200)
      expect(await rows.count('_sessions', 'user_id', first.user.id)).toBe(100)
      await expectEnded(server, second)
      expect((await me(server, first)).status).toBe(200)
    })

    test('[SESS-4, MAIL-22] housekeeping deletes more than a thousand expired sessions and tokens', async () => {
      const challenge = () => server.anonymous.post(`${auth}/passkeys/auth-options`, {})
      for (let made = 0; made <= 1000; made += 91) {
        await Promise.all(times(91, () => begin(server)))
        await Promise.all(times(91, challenge))
      }
      const countAll = () =>
        Promise.all([
          rows.count('_sessions', 'key_id', '0'),
          rows.count('_one_time_tokens', 'purpose', 'passkey-challenge'),
        ])
      for (const count of await countAll()) expect(count).toBeGreaterThan(1000)
      clock.advance(28 * 24 * 60 * 60 * 1000)
      await server.tidy()
      for (const count of await countAll()) expect(count).toBe(0)
    })

    test('[USER-13, SESS-2] only hashes of tokens and passwords are stored', async () => {
      const email = 'hashed@example.com'
      const { body } = await server.anonymous.post(`${auth}/signup`, { email, password })
      const { body: next } = await refresh(server, body.refreshToken)
      for (const token of [body.refreshToken, next.refreshToken])
        for (const column of ['refresh_hash', 'previous_hash'])
          expect(await rows.count('_sessions', column, token)).toBe(0)
      const digest = new Bun.CryptoHasher('sha256').update(next.refreshToken).digest('hex')
      expect(await rows.count('_sessions', 'refresh_hash', digest)).toBe(1)
      expect(await rows.count('_users', 'password_hash', password)).toBe(0)
    })
  })

if (sharedEngine)
  describe('two nodes', () => {
    let nodes: readonly TestServer[] = []
    let close: () => Promise<void>
    beforeAll(async () => {
      ;({ nodes, close } = await openNodes(sharedEngine, 2, { config }))
    })
    afterAll(() => close())

    /** Repeats a request until the node refuses it: messages between nodes take a moment, cached sessions seconds. */
    async function untilRefused(node: TestServer, session: Session): Promise<void> {
      while ((await me(node, session)).status === 200);
    }

    test('[SESS-9] a session that ends on one node ends on the other, and each node refreshes tokens of the other', async () => {
      const [one, other] = nodes as [TestServer, TestServer]
      const session = await begin(one)
      const { body: next } = await refresh(other, session.refreshToken)
      for (const node of nodes) expect((await me(node, next)).status).toBe(200)
      expect((await one.anonymous.post(`${auth}/signout`, { refreshToken: next.refreshToken })).status).toBe(200)
      await expectEnded(one, next)
      await untilRefused(other, next)
      await expectEnded(other, next)
    })

    test('[SESS-2] 50 concurrent refreshes on two nodes return the same refresh token', async () => {
      const { refreshToken } = await begin(nodes[0] as TestServer)
      const answers = await Promise.all(times(50, (n) => refresh(nodes[n % 2] as TestServer, refreshToken)))
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
      expect(new Set(answers.map(({ body }) => body.refreshToken)).size).toBe(1)
    })

    test('[TOKEN-14] a signing key created on one node is valid on the other immediately', async () => {
      const [one, other] = nodes as [TestServer, TestServer]
      const before = await begin(other)
      expect((await one.service.post(`${auth}/admin/keys/rotate`, {})).status).toBeLessThan(300)
      const after = await begin(one)
      expect(readToken(after.accessToken).header.kid).not.toBe(readToken(before.accessToken).header.kid)
      for (const node of nodes)
        for (const session of [before, after]) expect((await me(node, session)).status).toBe(200)
      const { body } = await refresh(other, before.refreshToken)
      expect(readToken(body.refreshToken).header.kid).toBe(readToken(after.accessToken).header.kid)
    })
  })

if (sharedEngine)
  describe('two nodes that cannot reach each other', () => {
    let nodes: readonly TestServer[] = []
    let close: () => Promise<void>
    beforeAll(async () => {
      ;({ nodes, close } = await openNodes(sharedEngine, 2, { config, clock }, { redisUrl: null }))
    })
    afterAll(() => close())

    test('[SESS-9] refuse within three seconds a session that ended on the other', async () => {
      const [one, other] = nodes as [TestServer, TestServer]
      const session = await begin(one)
      expect((await me(other, session)).status).toBe(200)
      await one.anonymous.post(`${auth}/signout`, { refreshToken: session.refreshToken })
      expectRefusal(await me(one, session), 401)
      clock.advance(3000)
      await expectEnded(other, session)
    })
  })

const few = { ...config, auth: { maxActiveSessions: 2 } }
describeServer('maxActiveSessions', { config: few, clock }, (server) => {
  test('[SESS-11] a sign-in beyond `maxActiveSessions` ends the least recently used session', async () => {
    const email = 'few@example.com'
    const { body: first } = await server.anonymous.post(`${auth}/signup`, { email, password })
    const opened = [first]
    for (let n = 0; n < 3; n++) {
      clock.advance(1000)
      opened.push((await server.anonymous.post(`${auth}/signin`, { email, password })).body)
      const statuses = []
      for (const session of opened) statuses.push((await me(server, session)).status)
      expect(statuses).toEqual(opened.map((_, at) => (at < opened.length - 2 ? 401 : 200)))
    }
    const { sessions } = (await server.anonymous.get(`${auth}/sessions`, bearer(opened.at(-1).accessToken))).body
    expect(sessions).toHaveLength(2)
  })

  test('[SESS-11] ten concurrent sign-ins leave `maxActiveSessions` sessions', async () => {
    const email = 'atonce@example.com'
    await server.anonymous.post(`${auth}/signup`, { email, password })
    const answers = await Promise.all(times(10, () => server.anonymous.post(`${auth}/signin`, { email, password })))
    const statuses = await Promise.all(answers.map(async ({ body }) => (await me(server, body)).status))
    expect(statuses.filter((status) => status === 200)).toHaveLength(2)
  })
})
