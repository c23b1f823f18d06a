/** Dashboard sessions: signing in, cookies, ends of sessions, roles. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import {
  cookieOf,
  createAdministrator,
  openAdministrator,
  pageClient,
  pageHeaders,
  setRole,
  signInToDashboard,
} from '../harness/dashboard/administrators.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, startServer } from '../harness/server.ts'
import { codeOf } from '../harness/users/test-user.ts'

const clock = manualClock()
const hour = 60 * 60 * 1000
const unlimited = { requests: 10_000_000 }
const credentialsOf = ({ email, password }: { email: string; password: string }) => ({ email, password })
const config = {
  rateLimits: { auth: unlimited, signin: unlimited },
  dashboard: { roles: { auditor: ['dashboard:audit:*:read', 'auth:admin:*:read'] } },
} as const

describeServer('dashboard sessions', { config, clock }, (server) => {
  const sessionOf = (cookie: string) => pageClient(server, { ...pageHeaders(server), cookie }).get('/api/session')

  test('[DASH-4] the right password opens a session with a cookie that scripts and other sites do not get', async () => {
    const user = await createAdministrator(server, 'owner')
    const answer = await signInToDashboard(server, user)
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({
      user: { id: user.id, email: user.email },
      role: 'owner',
      scopes: ['*'],
      isReadOnly: false,
      mode: 'development',
      expiresAt: new Date(clock.now() + 12 * hour).toISOString(),
    })
    expect(answer.text).not.toContain('oken')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const [cookie, ...others] = answer.headers.getSetCookie()
    expect(others).toEqual([])
    expect(cookie).toMatch(/^plinth-dashboard=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
    expect((await sessionOf(cookieOf(answer))).body.user.email).toBe(user.email)
  })

  test('[DASH-4] over HTTPS the cookie has the prefix __Host-, and beyond the loopback HTTP is refused', async () => {
    const user = await createAdministrator(server, 'owner')
    const secure = await startServer({
      config,
      clock,
      settings: { publicUrl: 'https://admin.example.org' },
    })
    try {
      const one = await createAdministrator(secure, 'owner')
      const answer = await signInToDashboard(secure, one, { origin: 'https://admin.example.org' })
      expect(answer.headers.getSetCookie()[0]).toMatch(/^__Host-plinth-dashboard=[\w-]{43}; Path=\/; .*; Secure$/)
      const cookie = cookieOf(answer)
      const headers = { 'x-plinth-dashboard': '1', cookie, origin: 'https://admin.example.org' }
      expect((await pageClient(secure, headers).get('/api/session')).status).toBe(200)
      expect((await pageClient(secure, headers).delete('/api/session')).status).toBe(200)
    } finally {
      await secure.close()
    }
    const lan = { origin: 'http://192.0.2.7:4100', host: '192.0.2.7:4100' }
    const refused = expectRefusal(await signInToDashboard(server, user, lan), 403)
    expect(refused.message).toContain('HTTPS')
  })

  test('[DASH-5] a wrong password and an unknown address are alike, and a user without a role learns it only after the right password', async () => {
    const user = await createAdministrator(server, null)
    const wrong = expectRefusal(await signInToDashboard(server, { ...user, password: 'wrong password' }), 401)
    const unknown = expectRefusal(
      await signInToDashboard(server, { email: 'unknown@example.org', password: 'wrong password' }),
      401,
    )
    expect(wrong).toEqual(unknown)
    const refused = await signInToDashboard(server, user)
    expect(expectRefusal(refused, 403).slug).toBe('no-dashboard-role')
    expect(refused.headers.getSetCookie()).toEqual([])
    await setRole(server, user.id, 'auditor')
    expect((await signInToDashboard(server, user)).body).toMatchObject({
      role: 'auditor',
      scopes: ['dashboard:audit:*:read', 'auth:admin:*:read'],
    })
  })

  test('[DASH-6] a session ends after twelve hours, and after an hour without a request', async () => {
    const idle = await openAdministrator(server, 'viewer')
    const busy = await openAdministrator(server, 'viewer')
    clock.advance(hour - 1)
    expect((await sessionOf(busy.cookie)).status).toBe(200)
    clock.advance(1)
    expectRefusal(await sessionOf(idle.cookie), 401)
    // The last use is written once a minute.
    for (let hours = 1; hours < 12; hours++) {
      clock.advance(hour - 60_000)
      expect((await sessionOf(busy.cookie)).status).toBe(200)
    }
    clock.advance(hour - 1)
    expectRefusal(await sessionOf(busy.cookie), 401)
    await server.tidy()
  })

  const ends: Readonly<Record<string, (one: { id: string; email: string; password: string }) => Promise<unknown>>> = {
    'the user is disabled': ({ id }) => server.service.patch(`/api/auth/admin/users/${id}`, { disabled: true }),
    'the user is deleted': ({ id }) => server.service.delete(`/api/auth/admin/users/${id}`),
    'an administrator sets the password': ({ id }) =>
      server.service.patch(`/api/auth/admin/users/${id}`, { password: 'another password' }),
    'the user changes the password': async ({ email, password }) => {
      const { body } = await server.anonymous.post('/api/auth/signin', { email, password })
      const change = { currentPassword: password, newPassword: 'another password' }
      const headers = { authorization: `Bearer ${body.accessToken}` }
      expect((await server.anonymous.post('/api/auth/change-password', change, headers)).status).toBe(200)
    },
    'all sessions are revoked': ({ id }) => server.service.post(`/api/auth/admin/users/${id}/revoke`, undefined),
    'the role changes': ({ id }) => setRole(server, id, 'support'),
    'the role is taken': ({ id }) => setRole(server, id, null),
  }
  for (const [title, end] of Object.entries(ends))
    test(`[DASH-7] a session ends at once when ${title}`, async () => {
      const one = await openAdministrator(server, 'editor')
      expect((await sessionOf(one.cookie)).status).toBe(200)
      await end(one)
      expectRefusal(await sessionOf(one.cookie), 401)
    })

  test('[DASH-7] signing out ends the session and removes the cookie; signing in again ends the previous session', async () => {
    const one = await openAdministrator(server, 'viewer')
    const again = cookieOf(await signInToDashboard(server, one, { cookie: one.cookie }))
    expectRefusal(await sessionOf(one.cookie), 401)
    const out = await pageClient(server, { ...pageHeaders(server), cookie: again }).delete('/api/session')
    expect(out.body).toEqual({ ok: true })
    expect(out.headers.getSetCookie()[0]).toStartWith('plinth-dashboard=; Path=/; Max-Age=0')
    expectRefusal(await sessionOf(again), 401)
  })

  test('[DASH-8] a second factor completes a sign-in, once; a ticket of the API does not', async () => {
    const user = await createAdministrator(server, 'owner')
    const { body: signedIn } = await server.anonymous.post('/api/auth/signin', credentialsOf(user))
    const bearer = { authorization: `Bearer ${signedIn.accessToken}` }
    const { body: enrolled } = await server.anonymous.post('/api/auth/mfa/totp/enroll', {}, bearer)
    const { factorId, secret, recoveryCodes } = enrolled
    const code = (steps = 0) => codeOf(secret, clock.now() + steps * 30_000)
    await server.anonymous.post('/api/auth/mfa/totp/verify', { factorId, code: code() }, bearer)
    const page = pageClient(server, pageHeaders(server))
    const ticketOf = async () => {
      const answer = await signInToDashboard(server, user)
      expect(answer.headers.getSetCookie()).toEqual([])
      expect(answer.body).toEqual({
        mfaRequired: true,
        ticket: expect.any(String),
        factors: [{ id: factorId, type: 'totp' }],
        enrollmentRequired: false,
      })
      return answer.body.ticket as string
    }
    const ticket = await ticketOf()
    expectRefusal(await page.post('/api/session/mfa', { ticket, code: '000000' }), 401)
    expectRefusal(await page.post('/api/session/enroll', { ticket }), 401)
    expectRefusal(await page.post('/api/session/mfa', { ticket }), 400)
    clock.advance(30_000)
    const done = await page.post('/api/session/mfa', { ticket, code: code() })
    expect(done.body.role).toBe('owner')
    expect((await sessionOf(cookieOf(done))).status).toBe(200)
    expectRefusal(await page.post('/api/session/mfa', { ticket, code: code(1) }), 401)
    const recovered = await page.post('/api/session/mfa', { ticket: await ticketOf(), recoveryCode: recoveryCodes[0] })
    expect(recovered.status).toBe(200)

    const { body: forApi } = await server.anonymous.post('/api/auth/signin', credentialsOf(user))
    expectRefusal(
      await page.post('/api/session/mfa', { ticket: forApi.mfaTicket, recoveryCode: recoveryCodes[1] }),
      401,
    )
    const forPage = { mfaTicket: await ticketOf(), recoveryCode: recoveryCodes[1] }
    expectRefusal(await server.anonymous.post('/api/auth/mfa/recovery', forPage), 401)
  })

  test('[DASH-9] attempts with a password are limited per address', async () => {
    const strict = await startServer({ config: { rateLimits: { signin: { requests: 3 } } }, clock })
    try {
      const user = await createAdministrator(strict, 'owner')
      for (let attempt = 0; attempt < 3; attempt++)
        expectRefusal(await signInToDashboard(strict, { ...user, password: 'wrong password' }), 401)
      expectRefusal(await signInToDashboard(strict, user), 429)
    } finally {
      await strict.close()
    }
  })

  test('[DASH-10] what is dangerous needs a sign-in of the last ten minutes', async () => {
    const owner = await openAdministrator(server, 'owner')
    const other = await createAdministrator(server, null)
    const promote = () =>
      owner.client.request('PUT', `/api/auth/admin/users/${other.id}/dashboard-role`, { body: { role: 'viewer' } })
    clock.advance(10 * 60 * 1000)
    expect((await promote()).status).toBe(200)
    clock.advance(1)
    expect(expectRefusal(await promote(), 403).slug).toBe('sign-in-again')
    expect(expectRefusal(await owner.client.post('/api/auth/admin/keys/rotate', {}), 403).slug).toBe('sign-in-again')
  })

  test('[DASH-11] only who may change administrators changes the account of one', async () => {
    const owner = await createAdministrator(server, 'owner')
    const support = await openAdministrator(server, 'support')
    const user = await createAdministrator(server, null)
    const path = `/api/auth/admin/users/${owner.id}`
    const before = (await server.service.get(path)).body
    for (const [method, at, body] of [
      ['PATCH', path, { password: 'taken over by support' }],
      ['PATCH', path, { email: 'support@example.org' }],
      ['PATCH', path, { disabled: true }],
      ['DELETE', path, undefined],
      ['PUT', `${path}/claims`, {}],
      ['POST', `${path}/revoke`, undefined],
      ['DELETE', `${path}/mfa`, undefined],
      ['PUT', `${path}/dashboard-role`, { role: 'viewer' }],
    ] as const)
      expectRefusal(await support.client.request(method, at, { body }), 403)
    expect((await server.service.get(path)).body).toEqual(before)
    expect((await signInToDashboard(server, owner)).status).toBe(200)
    expect((await support.client.patch(`/api/auth/admin/users/${user.id}`, { displayName: 'Ann' })).status).toBe(200)
  })

  test('[DASH-12] the last owner stays one, also where two demote each other; unknown roles are refused', async () => {
    const alone = await startServer({ config, clock })
    try {
      const [ann, bob] = [await openAdministrator(alone, 'owner'), await openAdministrator(alone, 'owner')]
      const demote = (by: typeof ann, of: typeof ann) =>
        by.client.request('PUT', `/api/auth/admin/users/${of.id}/dashboard-role`, { body: { role: 'viewer' } })
      const statuses = (await Promise.all([demote(ann, bob), demote(bob, ann)])).map(({ status }) => status)
      expect(statuses).toContain(200)
      const { administrators } = (await alone.service.get('/api/auth/admin/administrators')).body
      expect(administrators.filter((one: { dashboardRole: string }) => one.dashboardRole === 'owner')).toHaveLength(1)
      const [owner] = administrators.filter((one: { dashboardRole: string }) => one.dashboardRole === 'owner')
      const path = `/api/auth/admin/users/${owner.id}/dashboard-role`
      expectRefusal(await alone.service.request('PUT', path, { body: { role: null } }), 409)
      expectRefusal(await alone.service.request('PUT', path, { body: { role: 'admin' } }), 400)
      expectRefusal(
        await alone.service.request('PUT', '/api/auth/admin/users/none/dashboard-role', { body: { role: null } }),
        404,
      )
    } finally {
      await alone.close()
    }
  })
})

test('[DASH-8] where a second factor is required, an administrator without one enrolls it before anything else', async () => {
  const server = await startServer({ config, mode: 'release', clock })
  try {
    const user = await createAdministrator(server, 'owner')
    const page = pageClient(server, pageHeaders(server))
    const first = await signInToDashboard(server, user)
    expect(first.headers.getSetCookie()).toEqual([])
    expect(first.body).toMatchObject({ mfaRequired: true, factors: [], enrollmentRequired: true })
    const { ticket } = first.body
    expectRefusal(await page.post('/api/session/mfa', { ticket, code: '123456' }), 401)
    const { body: enrolled } = await page.post('/api/session/enroll', { ticket })
    expect(enrolled).toEqual({
      secret: expect.any(String),
      qrCodeUri: expect.stringContaining('otpauth://totp/'),
      recoveryCodes: expect.any(Array),
    })
    expectRefusal(await page.post('/api/session/mfa', { ticket, recoveryCode: enrolled.recoveryCodes[0] }), 401)
    const done = await page.post('/api/session/mfa', { ticket, code: codeOf(enrolled.secret, clock.now()) })
    expect(done.body.role).toBe('owner')
    expect((await signInToDashboard(server, user)).body).toMatchObject({ mfaRequired: true, enrollmentRequired: false })
    expect((await server.anonymous.post('/api/auth/signin', credentialsOf(user))).body.mfaRequired).toBe(true)
  } finally {
    await server.close()
  }
})

test('[DASH-13] the first administrator of the set-up link is an owner', async () => {
  const server = await startServer({ config, clock })
  try {
    const token = await server.issueSetupToken()
    const user = { email: 'first@example.org', password: 'password of the first' }
    expect((await server.anonymous.post('/api/auth/setup', { token, ...user })).status).toBe(201)
    expect((await signInToDashboard(server, user)).body.role).toBe('owner')
  } finally {
    await server.close()
  }
})

test('[DASH-14] without the dashboard there is nothing below /dashboard', async () => {
  const server = await startServer({ config, clock })
  try {
    const owner = await openAdministrator(server, 'owner')
    expect((await owner.client.get('/api/session')).status).toBe(200)
    await server.reload({ ...config, dashboard: false })
    for (const path of ['', '/', '/users', '/api/session', '/api/auth/admin/users', '/assets/app.js'])
      expectRefusal(await owner.client.get(path), 404)
    expectRefusal(await owner.client.post('/api/session', owner), 404)
    await server.reload(config)
    expect((await owner.client.get('/api/session')).status).toBe(200)
  } finally {
    await server.close()
  }
})

test('[DASH-3] CORS never permits pages of other origins to read below /dashboard', async () => {
  const origin = 'https://app.example.org'
  const server = await startServer({ config: { ...config, cors: { origins: [origin] } }, mode: 'release', clock })
  try {
    expect((await server.anonymous.get('/api/health', { origin })).headers.get('access-control-allow-origin')).toBe(
      origin,
    )
    const preflight = { origin, 'access-control-request-method': 'GET' }
    for (const path of [
      '/dashboard',
      '/dashboard/api/session',
      '/dashboard/api/auth/admin/users',
      '/dashboard/api/none',
    ])
      for (const answer of [
        await server.anonymous.get(path, { origin }),
        await server.anonymous.request('OPTIONS', path, { headers: preflight }),
      ])
        expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  } finally {
    await server.close()
  }
})
