/** Passkeys under attack: forged responses of authenticators and browsers, stolen tokens, and races. */
import { beforeEach, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { countStatuses } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { usersConfig as config } from '../../harness/users/accounts.ts'
import { type Authenticator, createAuthenticator, type Forgery } from '../../harness/users/authenticator.ts'
import { signUp, type TestUser } from '../../harness/users/test-user.ts'

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
const origin = 'http://localhost:5173'
const base = '/api/auth/passkeys'
const concurrentUses = 50

/** Forged values that neither registration nor authentication accepts. */
const forgeries: Readonly<Record<string, Forgery>> = {
  'another origin': { origin: 'https://evil.example' },
  'an origin with an allowed origin as its prefix': { origin: 'http://localhost:5173.evil.example' },
  'another domain': { rpId: 'evil.example' },
  'a challenge that was not issued': { challenge: Buffer.alloc(32, 7).toString('base64url') },
  'an empty challenge': { challenge: '' },
  'an unknown ceremony type': { type: 'webauthn.other' },
  'missing user presence': { isUserPresent: false },
  'missing user verification': { isUserVerified: false },
  'a cross-origin frame': { clientData: { crossOrigin: true } },
  'a cross-origin frame with its top origin': { clientData: { crossOrigin: true, topOrigin: 'https://evil.example' } },
  'another credential’s id': { credentialId: Buffer.alloc(32, 9).toString('base64url') },
}

describeServer('passkeys under attack', { config, clock }, (server) => {
  let person: TestUser
  let key: Authenticator
  beforeEach(async () => {
    person = await signUp(server)
    key = createAuthenticator({ origin })
  })
  const creation = async (by = person) => (await by.client.post(`${base}/register-options`, undefined)).body.options
  const request = async (about: object = {}) =>
    (await server.anonymous.post(`${base}/auth-options`, about)).body.options
  const register = (response: unknown, by = person) => by.client.post(`${base}/register`, { response })
  const authenticate = (response: unknown) => server.anonymous.post(`${base}/authenticate`, { response })
  const listed = async (of = person) => (await of.client.get(base)).body.passkeys
  const sessions = async () => (await person.client.get('/api/auth/sessions')).body.sessions.length

  for (const [what, forgery] of Object.entries(forgeries)) {
    test(`[PASSKEY-3] a registration with ${what} is refused`, async () => {
      const options = await creation()
      expectRefusal(await register(key.register(options, forgery)), 400)
      expect(await listed()).toEqual([])
      expect((await register(key.register(options))).status).toBe(201)
    })

    test(`[PASSKEY-3] an authentication with ${what} is refused`, async () => {
      await register(key.register(await creation()))
      const before = await sessions()
      const options = await request()
      expectRefusal(await authenticate(key.authenticate(options, forgery)), 401, 'Invalid passkey')
      expect(await sessions()).toBe(before)
      expect((await listed())[0].lastUsedAt).toBeNull()
      expect((await authenticate(key.authenticate(options))).status).toBe(200)
    })
  }

  const assertionForgeries: Readonly<Record<string, Forgery>> = {
    'a wrong signature': { hasInvalidSignature: true },
    'the type of a registration': { type: 'webauthn.create' },
    'no user handle': { userHandle: null },
    'the handle of another user': { userHandle: Buffer.from('another user').toString('base64url') },
  }
  for (const [what, forgery] of Object.entries(assertionForgeries))
    test(`[PASSKEY-3] an authentication with ${what} is refused`, async () => {
      await register(key.register(await creation()))
      expectRefusal(await authenticate(key.authenticate(await request(), forgery)), 401, 'Invalid passkey')
      expect((await listed())[0].lastUsedAt).toBeNull()
    })

  test('[PASSKEY-3] a signature by another key and a key with an unsupported algorithm are refused', async () => {
    await register(key.register(await creation()))
    const attacker = createAuthenticator({ origin })
    const forged = attacker.authenticate(await request(), {
      credentialId: key.credentialId,
      userHandle: Buffer.from(person.id).toString('base64url'),
    })
    expectRefusal(await authenticate(forged), 401)
    for (const algorithm of [-35, -65535, 5, 0])
      expectRefusal(await register(createAuthenticator({ origin }).register(await creation(), { algorithm })), 400)
    expect(await listed()).toHaveLength(1)
  })

  test('[PASSKEY-3] a response of another shape is 400, and malformed CBOR, JSON and signatures are refused', async () => {
    const good = key.register(await creation())
    const shapes = [undefined, null, 'x', {}, { ...good, id: 7 }, { ...good, type: 'x' }, { ...good, response: {} }]
    for (const response of shapes) expectRefusal(await register(response), 400)
    for (const response of shapes) expectRefusal(await authenticate(response), 400)

    const cborBombs = [
      Buffer.alloc(30_000, 0x81),
      Buffer.from('9bffffffffffffffff', 'hex'),
      Buffer.from('bb00000000ffffffff0000', 'hex'),
      Buffer.from('5b7fffffffffffffff', 'hex'),
      Buffer.from('a0', 'hex'),
      Buffer.from('f6', 'hex'),
      Buffer.from([0]),
    ]
    for (const bytes of cborBombs) {
      const response = { ...good.response, attestationObject: bytes.toString('base64url') }
      expectRefusal(await register({ ...good, response }), 400)
    }
    for (const text of ['', '{', 'null', '[]', '{"challenge":{}}', '['.repeat(20_000)]) {
      const clientDataJSON = Buffer.from(text).toString('base64url')
      expectRefusal(await register({ ...good, response: { ...good.response, clientDataJSON } }), 400)
    }
    expect(await listed()).toEqual([])
    expect((await register(good)).status).toBe(201)

    const assertion = key.authenticate(await request())
    for (const authenticatorData of [
      'AA',
      Buffer.alloc(37).toString('base64url'),
      Buffer.alloc(30_000, 0xff).toString('base64url'),
    ])
      expectRefusal(await authenticate({ ...assertion, response: { ...assertion.response, authenticatorData } }), 401)
    for (const signature of [
      'AA',
      Buffer.alloc(64).toString('base64url'),
      Buffer.alloc(30_000, 0x30).toString('base64url'),
    ])
      expectRefusal(await authenticate({ ...assertion, response: { ...assertion.response, signature } }), 401)
    expect((await authenticate(assertion)).status).toBe(200)
  })

  test('[PASSKEY-4] a challenge works once, and for five minutes', async () => {
    const options = await creation()
    expect((await register(key.register(options))).status).toBe(201)
    expectRefusal(await register(createAuthenticator({ origin }).register(options)), 400)
    const late = await creation()
    const requested = await request()
    expect((await authenticate(key.authenticate(requested))).status).toBe(200)
    expectRefusal(await authenticate(key.authenticate(requested)), 401)
    const lateRequest = await request()
    await server.elapse(5 * 60_000)
    expectRefusal(await register(createAuthenticator({ origin }).register(late)), 400)
    expectRefusal(await authenticate(key.authenticate(lateRequest)), 401)
    expect(await listed()).toHaveLength(1)
  })

  test('[PASSKEY-4] of fifty concurrent responses to one challenge one succeeds', async () => {
    const options = await creation()
    const keys = Array.from({ length: concurrentUses }, () => createAuthenticator({ origin }))
    const registered = await Promise.all(keys.map((one) => register(one.register(options))))
    expect(countStatuses(registered)).toEqual({ 201: 1, 400: concurrentUses - 1 })
    expect(await listed()).toHaveLength(1)

    const registeredKey = keys.find(({ credentialId }) =>
      registered.some(({ body }) => body.passkey?.id === credentialId),
    )
    const before = await sessions()
    const requested = await request()
    const answers = await Promise.all(
      Array.from({ length: concurrentUses }, () => authenticate(registeredKey?.authenticate(requested))),
    )
    expect(countStatuses(answers)).toEqual({ 200: 1, 401: concurrentUses - 1 })
    expect(await sessions()).toBe(before + 1)
  })

  test('[PASSKEY-4] of fifty concurrent replays of one response one signs in', async () => {
    const notCounting = createAuthenticator({ origin, counts: false })
    await register(notCounting.register(await creation()))
    const before = await sessions()
    const response = notCounting.authenticate(await request())
    const answers = await Promise.all(Array.from({ length: concurrentUses }, () => authenticate(response)))
    expect(countStatuses(answers)).toEqual({ 200: 1, 401: concurrentUses - 1 })
    expect(await sessions()).toBe(before + 1)
  })

  test('[PASSKEY-5] a challenge is valid for one user and one ceremony', async () => {
    const other = await signUp(server)
    expectRefusal(await register(key.register(await creation(other))), 400)
    const options = { ...(await creation()), challenge: (await request()).challenge }
    expectRefusal(await register(key.register(options)), 400)
    expect(await listed()).toEqual([])

    await register(key.register(await creation()))
    const { challenge } = await creation()
    expectRefusal(await authenticate(key.authenticate({ challenge, rpId: 'localhost' })), 401)
    expect((await listed())[0].lastUsedAt).toBeNull()
  })

  test('[PASSKEY-7] a signature counter that does not increase is refused', async () => {
    await register(key.register(await creation(), { counter: 10 }))
    for (const [counter, status] of [
      [10, 401],
      [9, 401],
      [0, 401],
      [12, 200],
      [12, 401],
      [11, 401],
      [0xffff_ffff, 200],
      [0, 401],
    ] as const) {
      const answer = await authenticate(key.authenticate(await request(), { counter }))
      if (status === 200) expect({ counter, status: answer.status }).toEqual({ counter, status })
      else expectRefusal(answer, status)
    }
  })

  test('[PASSKEY-7] of fifty concurrent responses with the same counter one signs in', async () => {
    await register(key.register(await creation(), { counter: 1 }))
    const responses = []
    for (let n = 0; n < concurrentUses; n++) responses.push(key.authenticate(await request(), { counter: 2 }))
    expect(countStatuses(await Promise.all(responses.map(authenticate)))).toEqual({ 200: 1, 401: concurrentUses - 1 })
  })

  test('[PASSKEY-8] of the last two passkeys only one is deleted when both are deleted concurrently', async () => {
    const { body } = await server.service.post('/api/auth/admin/users/import', {
      users: [{ email: `no-password-${person.id}@example.org`, verified: true }],
    })
    const { id } = body.results[0]
    const owner: TestUser = { ...person, id, client: server.as({ id }) }
    const keys = [key, createAuthenticator({ origin })]
    for (const one of keys) expect((await register(one.register(await creation(owner)), owner)).status).toBe(201)
    const answers = await Promise.all(keys.map(({ credentialId }) => owner.client.delete(`${base}/${credentialId}`)))
    expect(countStatuses(answers)).toEqual({ 200: 1, 409: 1 })
    expect(await listed(owner)).toHaveLength(1)
  })

  test('[PASSKEY-11] attestations of any format are accepted, and no URL in them is fetched', async () => {
    let fetched = 0
    const trap = Bun.serve({ port: 0, fetch: () => new Response(String(++fetched)) })
    try {
      const certificate = Buffer.from(`http://127.0.0.1:${trap.port}/list.crl`)
      for (const format of ['packed', 'tpm', 'apple', 'android-key', 'android-safetynet', 'fido-u2f', 'new']) {
        const statement = new Map<string, never>([
          ['alg', -7],
          ['sig', Buffer.alloc(70)],
          ['x5c', [certificate]],
        ] as never)
        const one = createAuthenticator({ origin })
        const response = one.register(await creation(), { attestation: { format, statement } })
        expect((await register(response)).status).toBe(201)
        expect((await authenticate(one.authenticate(await request()))).status).toBe(200)
      }
      expect(fetched).toBe(0)
    } finally {
      await trap.stop(true)
    }
  })

  test('[PASSKEY-1] the backup state follows what the authenticator reports', async () => {
    await register(key.register(await creation(), { isBackedUp: true }))
    expect(await listed()).toMatchObject([{ backedUp: true }])
    await authenticate(key.authenticate(await request(), { isBackedUp: false }))
    expect(await listed()).toMatchObject([{ backedUp: false }])
  })
})
