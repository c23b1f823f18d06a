/** The first administrator: created through a link that works once. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { type ManualClock, manualClock } from '../../../src/base/clock.ts'
import { engines } from '../../harness/engines.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { startServer, type TestServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'
import { usersConfig as config, password, adminUsers as users } from '../../harness/users/accounts.ts'

for (const engine of engines)
  describe(`set-up on ${engine.name}`, () => {
    let server: TestServer
    let clock: ManualClock
    beforeEach(async () => {
      clock = manualClock()
      server = await startServer({ config, clock }, engine)
    })
    afterEach(() => server.close())

    const issue = async (): Promise<string> => {
      const token = await server.issueSetupToken()
      if (token === null) throw new Error('no token was issued')
      return token
    }
    const setUp = (token: string, fields: object = {}) =>
      server.anonymous.post('/api/auth/setup', { token, email: 'admin@example.com', password, ...fields })
    const allUsers = async (): Promise<{ id: string; email: string; role: string }[]> =>
      (await server.service.get(users)).body.users

    test('[SETUP-1, SETUP-2, SETUP-4] the token creates the first administrator, signed in, once', async () => {
      const token = await issue()
      const { status, body } = await setUp(token, { displayName: 'Root' })
      expect(status).toBe(201)
      expect(body.user).toMatchObject({ email: 'admin@example.com', role: 'admin', displayName: 'Root' })
      const headers = { authorization: `Bearer ${body.accessToken}` }
      expect((await server.anonymous.get('/api/auth/me', headers)).status).toBe(200)
      expect(expectRefusal(await setUp(token, { email: 'second@example.com' }), 401).message).toBe('Invalid token')
      expect(await allUsers()).toMatchObject([{ email: 'admin@example.com', role: 'admin' }])
      expect(await server.issueSetupToken()).toBeNull()
    })

    test('[SETUP-2] of fifty concurrent attempts with one token one succeeds', async () => {
      const token = await issue()
      const answers = await Promise.all(times(50, (n) => setUp(token, { email: `admin${n}@example.com` })))
      expect(answers.map(({ status }) => status).sort()).toEqual([201, ...times(49, () => 401)])
      const created = answers.find(({ status }) => status === 201)
      expect(await allUsers()).toMatchObject([{ id: created?.body.user.id, role: 'admin' }])
    })

    test('[SETUP-2] of fifty concurrent attempts with different tokens one succeeds', async () => {
      const tokens = await Promise.all(times(50, issue))
      const answers = await Promise.all(tokens.map((token, n) => setUp(token, { email: `admin${n}@example.com` })))
      expect(answers.map(({ status }) => status).sort()).toEqual([201, ...times(49, () => 401)])
      expect(await allUsers()).toHaveLength(1)
    })

    test('[SETUP-3] a rejected attempt creates no user and leaves the token valid', async () => {
      const { id } = (await server.service.post(users, { email: 'taken@example.com', password })).body.user
      const before = await allUsers()
      const token = await issue()
      expectRefusal(await setUp(`${token.slice(0, -1)}~`), 401)
      expectRefusal(await setUp(''), 401)
      expectRefusal(await setUp('x'.repeat(65)), 400, 'token')
      expectRefusal(await setUp(token, { password: 'short' }), 400, 'password')
      expectRefusal(await setUp(token, { email: 'malformed' }), 400, 'email')
      expectRefusal(await setUp(token, { role: 'owner' }), 400, 'role')
      expectRefusal(await setUp(token, { email: 'TAKEN@example.com' }), 409, 'email')
      expect(await allUsers()).toEqual(before)
      expect((await server.service.get(`${users}/${id}`)).body.role).toBe('user')
      expect((await setUp(token)).status).toBe(201)
    })

    test('[SETUP-3] a token for another purpose is 401', async () => {
      const { status, body } = await server.anonymous.post('/api/auth/signup', { email: 'eve@example.com', password })
      expect(status).toBe(201)
      for (const token of [body.refreshToken, body.accessToken].map((text) => text.slice(0, 64)))
        expectRefusal(await setUp(token), 401)
      expect(await allUsers()).toMatchObject([{ email: 'eve@example.com', role: 'user' }])
    })

    test('[SETUP-4] the token expires after a day', async () => {
      const late = await issue()
      await server.elapse(24 * 60 * 60 * 1000)
      expectRefusal(await setUp(late), 401)
      const inTime = await issue()
      await server.elapse(24 * 60 * 60 * 1000 - 1)
      expect((await setUp(inTime)).status).toBe(201)
    })

    test('[SETUP-4] no token is issued if there is an administrator', async () => {
      const token = await issue()
      const created = await server.service.post(users, { email: 'boss@example.com', password, role: 'admin' })
      expect(created.status).toBe(201)
      expect(await server.issueSetupToken()).toBeNull()
      expectRefusal(await setUp(token), 401)
      expect(await allUsers()).toHaveLength(1)
    })

    test('[SETUP-1] the link leads to the page of the dashboard', async () => {
      const response = await fetch(`${server.url}/setup`, { redirect: 'manual' })
      expect([response.status, response.headers.get('location')]).toEqual([302, '/dashboard/setup'])
      expect(response.headers.get('referrer-policy')).toBe('no-referrer')
    })

    test('[SETUP-1] without a dashboard the link opens a page with a strict content security policy', async () => {
      await server.reload({ dashboard: false })
      const { status, text, headers } = await server.anonymous.get('/setup')
      await server.reload({})
      expect(status).toBe(200)
      expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(headers.get('content-security-policy')).toContain("default-src 'none'")
      expect(headers.get('content-security-policy')).not.toContain('unsafe')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(text).not.toMatch(/(?:src|href)="(?!data:,")/)
    })
  })
