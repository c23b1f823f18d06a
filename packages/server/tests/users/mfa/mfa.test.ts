/** Second factors: an authenticator app from enrollment to removal, recovery codes, and tickets. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { createClient } from '../../harness/client.ts'
import { engines } from '../../harness/engines.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { createServer, describeServer } from '../../harness/server.ts'
import { usersConfig as config } from '../../harness/users/accounts.ts'
import { codeOf, signUp, signUpWithApp, type TestUser, type TestUserWithApp } from '../../harness/users/test-user.ts'
import { createUserRows, watchedEngine } from '../../harness/users/user-rows.ts'

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
const step = 30_000
const totp = '/api/auth/mfa/totp'
const wrongCode = '000000'

const enroll = async (person: TestUser) => (await person.client.post(`${totp}/enroll`, undefined)).body
const factorsOf = async (person: TestUser) => (await person.client.get('/api/auth/mfa/factors')).body

describeServer('enrollment of an authenticator app', { config, clock }, (server) => {
  let person: TestUser
  beforeEach(async () => {
    person = await signUp(server)
  })

  test('[MFA-1] enrolling returns a secret, its URI and eight recovery codes', async () => {
    const answer = await person.client.post(`${totp}/enroll`, undefined)
    expect(answer.status).toBe(200)
    expect(Object.keys(answer.body).sort()).toEqual(['factorId', 'qrCodeUri', 'recoveryCodes', 'secret'])
    const { secret, qrCodeUri, recoveryCodes } = answer.body
    expect(secret).toMatch(/^[A-Z2-7]{32}$/)
    expect(new Set(recoveryCodes).size).toBe(8)
    for (const code of recoveryCodes) expect(code).toMatch(/^[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{4}$/)
    const uri = new URL(qrCodeUri)
    expect(uri.protocol + uri.host).toBe('otpauth:totp')
    expect(decodeURIComponent(uri.pathname)).toBe(`/Plinth:${person.email}`)
    expect(Object.fromEntries(uri.searchParams)).toMatchObject({ secret, issuer: 'Plinth', digits: '6', period: '30' })
  })

  test('[MFA-2] a factor is inactive until a code is verified', async () => {
    await enroll(person)
    expect((await person.signIn()).body).toHaveProperty('accessToken')
    expect(await factorsOf(person)).toMatchObject({ factors: [{ verified: false }], recoveryCodesLeft: 8 })
  })

  test('[MFA-2] enrolling again replaces the secret and recovery codes of an inactive factor', async () => {
    const first = await enroll(person)
    const second = await enroll(person)
    expect(second.secret).not.toBe(first.secret)
    expect((await factorsOf(person)).factors).toMatchObject([{ id: second.factorId }])
    const verify = (factorId: string, secret: string) =>
      person.client.post(`${totp}/verify`, { factorId, code: codeOf(secret, clock.now()) })
    expectRefusal(await verify(first.factorId, first.secret), 404)
    expectRefusal(await verify(second.factorId, first.secret), 400, 'code')
    expect((await verify(second.factorId, second.secret)).status).toBe(200)

    const { mfaTicket } = (await person.signIn()).body
    const [recoveryCode] = first.recoveryCodes
    expectRefusal(await server.anonymous.post('/api/auth/mfa/recovery', { mfaTicket, recoveryCode }), 401)
  })

  test('[MFA-2] enrolling and verifying again are refused once a factor is active', async () => {
    const owner = await signUpWithApp(server, clock)
    const before = await factorsOf(owner)
    expectRefusal(await owner.client.post(`${totp}/enroll`, undefined), 409)
    expectRefusal(await owner.client.post(`${totp}/verify`, { factorId: owner.factorId, code: owner.code(1) }), 409)
    expect(await factorsOf(owner)).toEqual(before)
  })

  test('[MFA-2] a wrong code or the factor of another user activates nothing', async () => {
    const { factorId, secret } = await enroll(person)
    const code = codeOf(secret, clock.now())
    const other = await signUp(server)
    expectRefusal(await other.client.post(`${totp}/verify`, { factorId, code }), 404)
    expectRefusal(await person.client.post(`${totp}/verify`, { factorId, code: wrongCode }), 400, 'code')
    expectRefusal(await person.client.post(`${totp}/verify`, { factorId: 'none', code }), 404)
    expectRefusal(await person.client.post(`${totp}/verify`, { factorId }), 400, 'code')
    expect((await factorsOf(person)).factors).toMatchObject([{ verified: false }])
  })

  test('[MFA-10] the list contains only the caller’s factors, without secrets', async () => {
    const { factorId } = await enroll(person)
    expect(await factorsOf(person)).toEqual({
      factors: [{ id: factorId, type: 'totp', verified: false, createdAt: new Date(clock.now()).toISOString() }],
      recoveryCodesLeft: 8,
    })
    expect(await factorsOf(await signUp(server))).toEqual({ factors: [], recoveryCodesLeft: 0 })
  })

  test('[MFA-11] anonymous users and service keys cannot enroll', async () => {
    const { body } = await server.anonymous.post('/api/auth/signin/anonymous', {})
    const anonymousUser = createClient(() => server.url, { authorization: `Bearer ${body.accessToken}` })
    expectRefusal(await anonymousUser.post(`${totp}/enroll`, undefined), 403)
    expect((await anonymousUser.get('/api/auth/mfa/factors')).body.factors).toEqual([])
    expectRefusal(await server.service.post(`${totp}/enroll`, undefined), 403)
    expectRefusal(await server.anonymous.post(`${totp}/enroll`, undefined), 401)
  })
})

describeServer('sign-in with a second factor', { config, clock }, (server) => {
  let owner: TestUserWithApp
  beforeEach(async () => {
    owner = await signUpWithApp(server, clock)
  })
  const verify = (mfaTicket: string, code: string) => server.anonymous.post('/api/auth/mfa/verify', { mfaTicket, code })
  const recover = (mfaTicket: string, recoveryCode: string) =>
    server.anonymous.post('/api/auth/mfa/recovery', { mfaTicket, recoveryCode })

  test('[MFA-3] the password returns a ticket, and the code returns a session', async () => {
    const first = await owner.signIn()
    expect(first.status).toBe(200)
    expect(first.body).toEqual({
      mfaRequired: true,
      mfaTicket: expect.any(String),
      factors: [{ id: owner.factorId, type: 'totp' }],
    })
    const second = await verify(first.body.mfaTicket, owner.code(1))
    expect(second.status).toBe(200)
    expect(Object.keys(second.body).sort()).toEqual(['accessToken', 'deviceToken', 'expiresIn', 'refreshToken', 'user'])
    expect(second.body.user.id).toBe(owner.id)
    const me = await server.anonymous.get('/api/auth/me', { authorization: `Bearer ${second.body.accessToken}` })
    expect(me.body).toMatchObject({ user: { id: owner.id } })
  })

  for (const [steps, status] of [
    [-2, 401],
    [-1, 200],
    [0, 200],
    [1, 200],
    [2, 401],
  ] as const)
    test(`[MFA-4] a code that is ${steps} steps off is ${status}`, async () => {
      await server.elapse(3 * step)
      const answer = await verify(await owner.ticket(), owner.code(steps))
      if (status === 200) expect(answer.status).toBe(200)
      else expectRefusal(answer, status)
    })

  test('[MFA-5] the code that activated the factor does not sign in', async () => {
    expectRefusal(await verify(await owner.ticket(), owner.code()), 401)
  })

  test('[MFA-5] a code works once, and no older code works after it', async () => {
    await server.elapse(3 * step)
    const [older, newer] = [owner.code(), owner.code(1)]
    expect((await verify(await owner.ticket(), newer)).status).toBe(200)
    expectRefusal(await verify(await owner.ticket(), newer), 401)
    expectRefusal(await verify(await owner.ticket(), older), 401)
    expectRefusal(await owner.client.request('DELETE', totp, { body: { code: newer } }), 400, 'code')
    await server.elapse(2 * step)
    expect((await verify(await owner.ticket(), owner.code())).status).toBe(200)
  })

  test('[MFA-6] a recovery code signs in once, in any spelling', async () => {
    const [code = '', other = ''] = owner.recoveryCodes
    const typed = ` ${code.toUpperCase().replaceAll('0', 'O').replaceAll('1', 'l').replace('-', ' ')} `
    expect((await recover(await owner.ticket(), typed)).status).toBe(200)
    expectRefusal(await recover(await owner.ticket(), code), 401)
    expect((await factorsOf(owner)).recoveryCodesLeft).toBe(7)
    expect((await recover(await owner.ticket(), other.replaceAll('-', ''))).status).toBe(200)
    expect((await owner.signIn()).body).toHaveProperty('mfaRequired', true)
  })

  test('[MFA-6] a recovery code of another user is refused', async () => {
    const other = await signUpWithApp(server, clock)
    expectRefusal(await recover(await owner.ticket(), other.recoveryCodes[0] ?? ''), 401)
    expect((await factorsOf(other)).recoveryCodesLeft).toBe(8)
  })

  test('[MFA-7] a ticket signs in once', async () => {
    const ticket = await owner.ticket()
    expect((await verify(ticket, owner.code(1))).status).toBe(200)
    await server.elapse(step)
    expectRefusal(await verify(ticket, owner.code(1)), 401, 'Invalid token')
    expectRefusal(await recover(ticket, owner.recoveryCodes[0] ?? ''), 401, 'Invalid token')
    expect((await factorsOf(owner)).recoveryCodesLeft).toBe(8)
  })

  test('[MFA-7] five wrong codes invalidate a ticket, and a new one works', async () => {
    const ticket = await owner.ticket()
    for (let attempt = 1; attempt <= 5; attempt++) expectRefusal(await verify(ticket, wrongCode), 401, 'Invalid code')
    expectRefusal(await verify(ticket, owner.code(1)), 401, 'Invalid token')
    expect((await verify(await owner.ticket(), owner.code(1))).status).toBe(200)
  })

  test('[MFA-7] a ticket works after two minutes and not after fifteen', async () => {
    const [ticket, late] = [await owner.ticket(), await owner.ticket()]
    await server.elapse(2 * 60_000)
    expect((await verify(ticket, owner.code())).status).toBe(200)
    await server.elapse(13 * 60_000)
    expectRefusal(await verify(late, owner.code()), 401, 'Invalid token')
  })

  test('[MFA-7] an unknown ticket gets the same error as an expired one', async () => {
    const mistakes = ['x', 'a'.repeat(43), owner.id, owner.factorId]
    for (const ticket of mistakes) expectRefusal(await verify(ticket, owner.code(1)), 401, 'Invalid token')
    for (const body of [{}, { mfaTicket: 'x' }, { mfaTicket: 1, code: '1' }, { mfaTicket: 'x', code: 'y'.repeat(129) }])
      expectRefusal(await server.anonymous.post('/api/auth/mfa/verify', body), 400)
  })

  test('[MFA-8] a user can try thirty codes an hour over all tickets', async () => {
    for (let attempt = 0; attempt < 30; attempt += 5) {
      const ticket = await owner.ticket()
      for (let wrong = 0; wrong < 5; wrong++) expectRefusal(await verify(ticket, wrongCode), 401)
    }
    const ticket = await owner.ticket()
    const refused = await verify(ticket, owner.code(1))
    expectRefusal(refused, 429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expectRefusal(await recover(ticket, owner.recoveryCodes[0] ?? ''), 429)
    expectRefusal(await owner.client.request('DELETE', totp, { body: { code: owner.code(1) } }), 429)
    expect(await factorsOf(owner)).toMatchObject({ factors: [{ verified: true }], recoveryCodesLeft: 8 })

    const other = await signUpWithApp(server, clock)
    expect((await verify(await other.ticket(), other.code(1))).status).toBe(200)
    await server.elapse(60 * 60_000)
    expect((await verify(await owner.ticket(), owner.code())).status).toBe(200)
  })

  test('[MFA-11] disabling a user invalidates the tickets of the user', async () => {
    const ticket = await owner.ticket()
    const disable = (disabled: boolean) => server.service.patch(`/api/auth/admin/users/${owner.id}`, { disabled })
    expect((await disable(true)).status).toBe(200)
    expectRefusal(await verify(ticket, owner.code(1)), 401, 'Invalid token')
    expectRefusal(await recover(ticket, owner.recoveryCodes[0] ?? ''), 401, 'Invalid token')
    expect((await disable(false)).status).toBe(200)
    expectRefusal(await verify(ticket, owner.code(1)), 401, 'Invalid token')
    expect((await verify(await owner.ticket(), owner.code(1))).status).toBe(200)
  })
})

describeServer('removal of an authenticator app', { config, clock }, (server) => {
  let owner: TestUserWithApp
  beforeEach(async () => {
    owner = await signUpWithApp(server, clock)
  })
  const remove = (body: object) => owner.client.request('DELETE', totp, { body })

  for (const by of ['code', 'recoveryCode'] as const)
    test(`[MFA-9] removal by ${by} deletes the factor, the recovery codes and the tickets`, async () => {
      const ticket = await owner.ticket()
      const proof = by === 'code' ? { code: owner.code(1) } : { recoveryCode: owner.recoveryCodes[3] }
      expect((await remove(proof)).body).toEqual({ ok: true })
      expect(await factorsOf(owner)).toEqual({ factors: [], recoveryCodesLeft: 0 })
      const body = { mfaTicket: ticket, code: owner.code(1) }
      expectRefusal(await server.anonymous.post('/api/auth/mfa/verify', body), 401, 'Invalid token')
      expect((await owner.signIn()).body).toHaveProperty('accessToken')
      expectRefusal(await remove(proof), 404)
      expect((await owner.client.post(`${totp}/enroll`, undefined)).status).toBe(200)
    })

  test('[MFA-9] removal by password works once', async () => {
    const { password } = owner
    expect((await remove({ password })).body).toEqual({ ok: true })
    expect(await factorsOf(owner)).toMatchObject({ factors: [], recoveryCodesLeft: 0 })
    expect((await owner.signIn()).body).toHaveProperty('accessToken')
    expectRefusal(await remove({ password }), 404)
  })

  test('[MFA-9] removal without exactly one valid proof changes nothing', async () => {
    const code = owner.code(1)
    const [recoveryCode] = owner.recoveryCodes
    const mistakes = [
      {},
      { code, recoveryCode },
      { code: wrongCode },
      { code: owner.code() },
      { recoveryCode: 'aaaa-aaaa-aaaa' },
      { password: 'a wrong password' },
      { password: '' },
      { password: owner.password, code },
      { code: recoveryCode },
      { recoveryCode: code },
    ]
    for (const body of mistakes) expectRefusal(await remove(body), 400)
    expectRefusal(await owner.client.delete(totp), 415)
    expect(await factorsOf(owner)).toMatchObject({ factors: [{ verified: true }], recoveryCodesLeft: 8 })
    expect((await owner.signIn()).body).toHaveProperty('mfaRequired', true)
    expectRefusal(await (await signUp(server)).client.request('DELETE', totp, { body: { code } }), 404)
  })
})

for (const inner of engines)
  describe(`storage of second factors on ${inner.name}`, () => {
    const { engine, storage } = watchedEngine(inner)
    const server = createServer({ config, clock }, engine)
    beforeAll(() => server.open())
    afterAll(() => server.close())

    test('[MFA-1] secrets and recovery codes are not stored in plain text', async () => {
      const owner = await signUpWithApp(server, clock)
      const rows = createUserRows(server.dataFolder, storage)
      expect(await rows.count('_factors', 'id', owner.factorId)).toBe(1)
      expect(await rows.count('_factors', 'secret', owner.secret)).toBe(0)
      expect(await rows.count('_recovery_codes', 'user_id', owner.id)).toBe(8)
      for (const code of owner.recoveryCodes)
        for (const spelling of [code, code.replaceAll('-', '')])
          expect(await rows.count('_recovery_codes', 'hash', spelling)).toBe(0)
    })

    test('[MFA-12] secrets and codes are not logged', async () => {
      const owner = await signUpWithApp(server, clock)
      const ticket = await owner.ticket()
      const [recoveryCode] = owner.recoveryCodes
      await server.anonymous.post('/api/auth/mfa/recovery', { mfaTicket: ticket, recoveryCode })
      const log = server.logged()
      expect(log).toContain('/api/auth/mfa/recovery')
      for (const secret of [owner.secret, ticket, ...owner.recoveryCodes, owner.password])
        expect(log).not.toContain(secret)
    })
  })

describe('a changed server secret', () => {
  for (const engine of engines)
    test(`[MFA-7, ERR-7] invalidates every code until an administrator removes the factor, on ${engine.name}`, async () => {
      const settings = { secret: 'the first secret of the server, 0123456789' }
      const server = createServer({ config, clock, settings }, engine)
      try {
        await server.open()
        const person = await signUpWithApp(server, clock)
        settings.secret = 'another secret of the server, 0123456789ab'
        await server.restart()
        for (const proof of [{ code: person.code(1) }, { recoveryCode: person.recoveryCodes[0] }]) {
          const body = { mfaTicket: await person.ticket(), ...proof }
          expectRefusal(
            await server.anonymous.post(`/api/auth/mfa/${'code' in proof ? 'verify' : 'recovery'}`, body),
            401,
          )
        }
        expect((await server.service.delete(`/api/auth/admin/users/${person.id}/mfa`)).status).toBe(200)
        expect((await person.signIn()).body).toHaveProperty('accessToken')
      } finally {
        await server.close()
      }
    })
})
