/** Passkeys: registration, sign-in, list and deletion, with an authenticator in software. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { recentSignInMs } from '../../../src/limits/users.ts'
import type { Answer } from '../../harness/client.ts'
import { createClient } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import { unlimitedRates as rateLimits } from '../../harness/users/accounts.ts'
import { type Authenticator, createAuthenticator } from '../../harness/users/authenticator.ts'
import { signUp, signUpWithApp, type TestUser, type TestUserWithApp } from '../../harness/users/test-user.ts'

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
const origin = 'http://localhost:5173'
const base = '/api/auth/passkeys'

const optionsOf = async (response: Promise<Answer>) => (await response).body.options

const register = async (person: TestUser, key: Authenticator, fields: object = {}): Promise<Answer> => {
  const options = await optionsOf(person.client.post(`${base}/register-options`, undefined))
  return person.client.post(`${base}/register`, { response: key.register(options), ...fields })
}
const authenticate = async (server: TestServer, key: Authenticator, about: object = {}): Promise<Answer> => {
  const options = await optionsOf(server.anonymous.post(`${base}/auth-options`, about))
  return server.anonymous.post(`${base}/authenticate`, { response: key.authenticate(options) })
}
const codeOfApp = (owner: TestUser): string => (owner as TestUserWithApp).code(1)
const listOf = async (person: TestUser) => (await person.client.get(base)).body.passkeys

describeServer('passkeys', { config: { rateLimits }, clock }, (server) => {
  let person: TestUser
  let key: Authenticator
  beforeEach(async () => {
    person = await signUp(server)
    key = createAuthenticator({ origin })
  })

  for (const algorithm of ['ES256', 'EdDSA', 'RS256'] as const)
    for (const counts of [true, false])
      test(`[PASSKEY-1] an ${algorithm} key that ${counts ? 'counts' : 'does not count'} registers and signs in`, async () => {
        const one = createAuthenticator({ origin, algorithm, counts })
        const registered = await register(person, one, { name: 'Phone' })
        expect(registered.status).toBe(201)
        const createdAt = new Date(clock.now()).toISOString()
        expect(registered.body.passkey).toEqual({
          id: one.credentialId,
          name: 'Phone',
          createdAt,
          lastUsedAt: null,
          transports: ['internal', 'hybrid'],
          backedUp: false,
        })
        for (let time = 1; time <= 3; time++) {
          const answer = await authenticate(server, one)
          expect(answer.status).toBe(200)
          expect(answer.body.user.id).toBe(person.id)
          const me = await server.anonymous.get('/api/auth/me', { authorization: `Bearer ${answer.body.accessToken}` })
          expect(me.body.user.id).toBe(person.id)
        }
        expect((await listOf(person))[0].lastUsedAt).toBe(new Date(clock.now()).toISOString())
      })

  test('[PASSKEY-1] the options require a discoverable key and user verification', async () => {
    await register(person, key)
    const creation = await optionsOf(person.client.post(`${base}/register-options`, undefined))
    expect(creation).toMatchObject({
      rp: { id: 'localhost' },
      user: { id: Buffer.from(person.id).toString('base64url'), name: person.email },
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      excludeCredentials: [{ id: key.credentialId, type: 'public-key' }],
    })
    expect(creation.pubKeyCredParams.map(({ alg }: { alg: number }) => alg)).toEqual([-8, -7, -257])
    expect(Buffer.from(creation.challenge, 'base64url')).toHaveLength(32)
    const request = await optionsOf(server.anonymous.post(`${base}/auth-options`, {}))
    expect(request).toMatchObject({ rpId: 'localhost', userVerification: 'required', allowCredentials: [] })
    expect(request.challenge).not.toBe(creation.challenge)
  })

  test('[PASSKEY-2] a passkey counts as two factors', async () => {
    const owner = await signUpWithApp(server, clock)
    await register(owner, key)
    expect((await owner.signIn()).body).toHaveProperty('mfaRequired', true)
    expect((await authenticate(server, key)).body).toHaveProperty('accessToken')
  })

  for (const guard of ['an authenticator app', 'a passkey'])
    test(`[PASSKEY-13] an account with ${guard} needs a sign-in in the last ten minutes to add a passkey`, async () => {
      const owner = guard === 'a passkey' ? await signUp(server) : await signUpWithApp(server, clock)
      if (guard === 'a passkey') await register(owner, createAuthenticator({ origin }))
      const before = await listOf(owner)
      await server.elapse(recentSignInMs + 1)
      const refused = expectRefusal(await owner.client.post(`${base}/register-options`, undefined), 403)
      expect(refused.slug).toBe('sign-in-again')
      expect(await listOf(owner)).toEqual(before)
      if (guard === 'a passkey') expectRefusal(await owner.client.post('/api/auth/mfa/totp/enroll', undefined), 403)

      const { body } = await owner.signIn()
      const again = body.mfaRequired
        ? (await server.anonymous.post('/api/auth/mfa/verify', { mfaTicket: body.mfaTicket, code: codeOfApp(owner) }))
            .body
        : body
      const client = createClient(() => server.url, { authorization: `Bearer ${again.accessToken}` })
      expect((await register({ ...owner, client }, key)).status).toBe(201)
    })

  test('[PASSKEY-13, USER-12] changing the password does not count as a sign-in', async () => {
    const owner = await signUpWithApp(server, clock)
    await server.elapse(recentSignInMs + 1)
    const change = { currentPassword: owner.password, newPassword: 'chosen by an attacker' }
    const { status, body } = await owner.client.post('/api/auth/change-password', change)
    expect(status).toBe(200)
    const client = createClient(() => server.url, { authorization: `Bearer ${body.accessToken}` })
    const refused = expectRefusal(await client.post(`${base}/register-options`, undefined), 403)
    expect(refused.slug).toBe('sign-in-again')
    expect(await listOf({ ...owner, client })).toEqual([])
  })

  test('[PASSKEY-13] an old session cannot replace a passkey: it can neither remove nor add one', async () => {
    await register(person, key)
    await server.elapse(recentSignInMs + 1)
    const remove = (client = person.client) => client.delete(`${base}/${key.credentialId}`)
    expect(expectRefusal(await remove(), 403).slug).toBe('sign-in-again')
    expectRefusal(await person.client.post(`${base}/register-options`, undefined), 403)
    expect((await listOf(person)).map(({ id }: { id: string }) => id)).toEqual([key.credentialId])

    const { accessToken } = (await person.signIn()).body
    expect((await remove(createClient(() => server.url, { authorization: `Bearer ${accessToken}` }))).status).toBe(200)
  })

  test('[PASSKEY-13] an old session of an account with only a password adds and removes no sign-in method', async () => {
    await server.elapse(recentSignInMs + 1)
    const requests: readonly (readonly [string, string, object?])[] = [
      ['POST', `${base}/register-options`],
      ['POST', '/api/auth/mfa/totp/enroll'],
      ['DELETE', '/api/auth/identities/none'],
      ['DELETE', `${base}/none`],
    ]
    for (const [method, path, body] of requests) {
      const answer = await person.client.request(method, path, body ? { body } : {})
      expect(expectRefusal(answer, 403).slug).toBe('sign-in-again')
    }
    // A request that includes the password needs no recent sign-in.
    const change = { newEmail: `new-${person.email}`, password: person.password }
    expect((await person.client.post('/api/auth/change-email', change)).status).toBe(200)
    // Ending a session adds no sign-in method, and lets an owner end the session of an attacker.
    expectRefusal(await person.client.delete('/api/auth/sessions/none'), 404)
    const { accessToken } = (await person.signIn()).body
    const client = createClient(() => server.url, { authorization: `Bearer ${accessToken}` })
    expect((await register({ ...person, client }, key)).status).toBe(201)
  })

  test('[PASSKEY-13] a token without a session, signed with the server secret, needs no recent sign-in', async () => {
    await server.elapse(recentSignInMs + 1)
    expect((await server.as(person.id).post('/api/auth/mfa/totp/enroll', undefined)).status).toBe(200)
  })

  test('[PASSKEY-6] options for an email have the same form for every address, and work for that user only', async () => {
    await register(person, key)
    const other = await signUp(server)
    const shape = (options: object) => ({ ...options, challenge: '' })
    const known = await server.anonymous.post(`${base}/auth-options`, { email: person.email })
    const without = await server.anonymous.post(`${base}/auth-options`, { email: other.email })
    const unknown = await server.anonymous.post(`${base}/auth-options`, { email: 'unknown@example.org' })
    for (const { status } of [known, without, unknown]) expect(status).toBe(200)
    expect(shape(without.body.options)).toEqual(shape(known.body.options))
    expect(shape(unknown.body.options)).toEqual(shape(known.body.options))
    expect(known.text).not.toContain(key.credentialId)

    const answer = ({ body }: Answer) =>
      server.anonymous.post(`${base}/authenticate`, { response: key.authenticate(body.options) })
    expectRefusal(await answer(without), 401)
    expectRefusal(await answer(unknown), 401)
    expect((await answer(known)).status).toBe(200)
    expect((await authenticate(server, key, { email: ` ${person.email.toUpperCase()}` })).status).toBe(200)
    expectRefusal(await server.anonymous.post(`${base}/auth-options`, { email: 'no address' }), 400, 'email')
  })

  test('[PASSKEY-8] the list contains the caller’s passkeys without keys', async () => {
    await register(person, key, { name: 'First' })
    clock.advance(1000)
    await register(person, createAuthenticator({ origin }), { name: 'Second' })
    const listed = await listOf(person)
    expect(listed.map(({ name }: { name: string }) => name)).toEqual(['First', 'Second'])
    expect(Object.keys(listed[0]).sort()).toEqual(['backedUp', 'createdAt', 'id', 'lastUsedAt', 'name', 'transports'])
    expect(await listOf(await signUp(server))).toEqual([])
  })

  test('[PASSKEY-8] only its owner can delete a passkey, and a deleted one is refused', async () => {
    await register(person, key)
    const other = await signUp(server)
    expectRefusal(await other.client.delete(`${base}/${key.credentialId}`), 404)
    expectRefusal(await person.client.delete(`${base}/none`), 404)
    expect((await authenticate(server, key)).status).toBe(200)
    expect((await person.client.delete(`${base}/${key.credentialId}`)).body).toEqual({ ok: true })
    expect(await listOf(person)).toEqual([])
    expectRefusal(await authenticate(server, key), 401)
    expectRefusal(await person.client.delete(`${base}/${key.credentialId}`), 404)
  })

  test('[PASSKEY-8] the last sign-in method of an account cannot be removed', async () => {
    const email = `no-password-${person.id}@example.org`
    const imported = await server.service.post('/api/auth/admin/users/import', { users: [{ email }] })
    const { id } = imported.body.results[0]
    const client = server.as({ id, email })
    const owner: TestUser = { ...person, id, email, client }
    const second = createAuthenticator({ origin })
    await register(owner, key)
    await register(owner, second)
    expect((await client.delete(`${base}/${key.credentialId}`)).status).toBe(200)
    expectRefusal(await client.delete(`${base}/${second.credentialId}`), 409)
    expect(await listOf(owner)).toHaveLength(1)
    expect((await authenticate(server, second)).status).toBe(200)
  })

  test('[PASSKEY-9] a name has 1 to 100 characters and defaults to Passkey', async () => {
    const long = '🔑'.repeat(100)
    expect((await register(person, key, { name: ` ${long} ` })).body.passkey.name).toBe(long)
    expect((await register(person, createAuthenticator({ origin }))).body.passkey.name).toBe('Passkey')
    for (const name of ['', '   ', `${long}x`, 'a\0b', 7, null])
      expectRefusal(await register(person, createAuthenticator({ origin }), { name }), 400, 'name')
    expect(await listOf(person)).toHaveLength(2)
  })

  test('[PASSKEY-9] a user has at most 20 passkeys', async () => {
    const keys = Array.from({ length: 22 }, () => createAuthenticator({ origin }))
    const responses = []
    for (const one of keys.slice(0, 21))
      responses.push(one.register(await optionsOf(person.client.post(`${base}/register-options`, undefined))))
    const answers = await Promise.all(responses.map((response) => person.client.post(`${base}/register`, { response })))
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(20).fill(201), 409])
    expect(await listOf(person)).toHaveLength(20)
    expectRefusal(await person.client.post(`${base}/register-options`, undefined), 409)
  })

  test('[PASSKEY-9] a credential belongs to one user', async () => {
    await register(person, key)
    const other = await signUp(server)
    expectRefusal(await register(other, key), 409)
    expect(await listOf(other)).toEqual([])
    expect((await listOf(person)).length).toBe(1)
  })

  test('[PASSKEY-12] anonymous users and service keys cannot register passkeys', async () => {
    const { body } = await server.anonymous.post('/api/auth/signin/anonymous', {})
    const anonymousUser = createClient(() => server.url, { authorization: `Bearer ${body.accessToken}` })
    expectRefusal(await anonymousUser.post(`${base}/register-options`, undefined), 403)
    expectRefusal(await server.service.post(`${base}/register-options`, undefined), 403)
    expectRefusal(await server.anonymous.post(`${base}/register-options`, undefined), 401)
    expectRefusal(await server.anonymous.get(base), 401)
    expectRefusal(await server.service.get(base), 403)
  })

  test('[PASSKEY-12] a passkey of a disabled user is refused', async () => {
    await register(person, key)
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: true })
    const answer = await authenticate(server, key)
    expectRefusal(answer, 403, 'Account is disabled')
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: false })
    expect((await authenticate(server, key)).status).toBe(200)
  })
})

const passkeys = { rpId: 'example.org', rpName: 'Example', origins: ['https://app.example.org', 'https://example.org'] }
const local = createAuthenticator({ origin })

describeServer(
  'configured passkeys',
  { config: { rateLimits, auth: { passkeys } }, mode: 'release', clock },
  (server) => {
    for (const allowed of passkeys.origins)
      test(`[PASSKEY-10] work at ${allowed}`, async () => {
        const person = await signUp(server)
        const key = createAuthenticator({ origin: allowed })
        expect((await register(person, key)).status).toBe(201)
        const answer = await authenticate(server, key)
        expect(answer.status).toBe(200)
        const options = await optionsOf(person.client.post(`${base}/register-options`, undefined))
        expect(options.rp).toEqual({ id: 'example.org', name: 'Example' })
      })

    for (const refused of [
      origin,
      'http://app.example.org',
      'https://app.example.org:8443',
      'https://evil.example.org',
    ])
      test(`[PASSKEY-3] are refused at ${refused}`, async () => {
        const person = await signUp(server)
        expectRefusal(await register(person, createAuthenticator({ origin: refused })), 400)
        expect(await listOf(person)).toEqual([])
      })
  },
)

describeServer(
  'passkeys in release mode without configuration',
  { config: { rateLimits }, mode: 'release' },
  (server) => {
    test('[PASSKEY-10] are 404', async () => {
      const person = await signUp(server)
      expectRefusal(await person.client.post(`${base}/register-options`, undefined), 404)
      expectRefusal(await server.anonymous.post(`${base}/auth-options`, {}), 404)
      const response = local.register({ challenge: 'AA', rp: { id: 'localhost' }, user: { id: 'AA' } })
      expectRefusal(await person.client.post(`${base}/register`, { response }), 404)
      const assertion = local.authenticate({ challenge: 'AA', rpId: 'localhost' })
      expectRefusal(await server.anonymous.post(`${base}/authenticate`, { response: assertion }), 404)
      expect(await listOf(person)).toEqual([])
    })
  },
)

describe('the origins of development mode', () => {
  describeServer('', { config: { rateLimits } }, (server) => {
    for (const allowed of ['http://localhost', 'http://localhost:3000', 'https://localhost:8443'])
      test(`[PASSKEY-10] ${allowed} is allowed`, async () => {
        const key = createAuthenticator({ origin: allowed })
        expect((await register(await signUp(server), key)).status).toBe(201)
        expect((await authenticate(server, key)).status).toBe(200)
      })
    for (const refused of [
      'http://localhost.evil.org',
      'http://evil.org',
      'http://localhost:3000/x',
      'null',
      'ftp://localhost',
    ])
      test(`[PASSKEY-10] ${refused} is refused`, async () => {
        const person = await signUp(server)
        expectRefusal(await register(person, createAuthenticator({ origin: refused })), 400)
      })
  })
})
