/** Passkeys under attack: forged responses of authenticators and browsers, stolen tokens, and races. */
import { beforeEach, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import type { Answer } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { usersConfig as config } from '../../harness/users/accounts.ts'
import { type Authenticator, createAuthenticator, type Lies } from '../../harness/users/authenticator.ts'
import { type Person, signUp } from '../../harness/users/person.ts'

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
const origin = 'http://localhost:5173'
const base = '/api/auth/passkeys'
const racers = 50

/** What no ceremony forgives. */
const lies: Readonly<Record<string, Lies>> = {
  'another origin': { origin: 'https://evil.example' },
  'an origin that begins alike': { origin: 'http://localhost:5173.evil.example' },
  'another domain': { rpId: 'evil.example' },
  'a challenge of its own': { challenge: Buffer.alloc(32, 7).toString('base64url') },
  'no challenge': { challenge: '' },
  'the other ceremony': { type: 'webauthn.other' },
  'a user who is not there': { isUserPresent: false },
  'a user who was not verified': { isUserVerified: false },
  'a page inside another': { clientData: { crossOrigin: true } },
  'a page inside another, named': { clientData: { crossOrigin: true, topOrigin: 'https://evil.example' } },
  'another credential’s id': { credentialId: Buffer.alloc(32, 9).toString('base64url') },
}

describeServer('passkeys under attack', { config, clock }, (server) => {
  let person: Person
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

  for (const [what, lie] of Object.entries(lies)) {
    test(`[PASSKEY-3] ${what} registers nothing`, async () => {
      const options = await creation()
      expectRefusal(await register(key.register(options, lie)), 400)
      expect(await listed()).toEqual([])
      expect((await register(key.register(options))).status).toBe(201)
    })

    test(`[PASSKEY-3] ${what} signs nobody in`, async () => {
      await register(key.register(await creation()))
      const before = await sessions()
      const options = await request()
      expectRefusal(await authenticate(key.authenticate(options, lie)), 401, 'Invalid passkey')
      expect(await sessions()).toBe(before)
      expect((await listed())[0].lastUsedAt).toBeNull()
      expect((await authenticate(key.authenticate(options))).status).toBe(200)
    })
  }

  const assertionLies: Readonly<Record<string, Lies>> = {
    'a wrong signature': { hasSpoiltSignature: true },
    'a registration’s type': { type: 'webauthn.create' },
    'no user handle': { userHandle: null },
    'the handle of another': { userHandle: Buffer.from('somebody').toString('base64url') },
  }
  for (const [what, lie] of Object.entries(assertionLies))
    test(`[PASSKEY-3] ${what} signs nobody in`, async () => {
      await register(key.register(await creation()))
      expectRefusal(await authenticate(key.authenticate(await request(), lie)), 401, 'Invalid passkey')
      expect((await listed())[0].lastUsedAt).toBeNull()
    })

  test('[PASSKEY-3] another key signs nobody in, nor one of an algorithm that was not asked for', async () => {
    await register(key.register(await creation()))
    const thief = createAuthenticator({ origin })
    const forged = thief.authenticate(await request(), {
      credentialId: key.credentialId,
      userHandle: Buffer.from(person.id).toString('base64url'),
    })
    expectRefusal(await authenticate(forged), 401)
    for (const algorithm of [-35, -65535, 5, 0])
      expectRefusal(await register(createAuthenticator({ origin }).register(await creation(), { algorithm })), 400)
    expect(await listed()).toHaveLength(1)
  })

  test('[PASSKEY-3] what is no answer is 400, and what cannot be read is refused', async () => {
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

  test('[PASSKEY-4] a challenge is answered once, and for five minutes', async () => {
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

  test('[PASSKEY-4] one challenge answered many times at once is answered once', async () => {
    const options = await creation()
    const keys = Array.from({ length: racers }, () => createAuthenticator({ origin }))
    const registered = await Promise.all(keys.map((one) => register(one.register(options))))
    expect(tally(registered)).toEqual({ 201: 1, 400: racers - 1 })
    expect(await listed()).toHaveLength(1)

    const winner = keys.find(({ credentialId }) => registered.some(({ body }) => body.passkey?.id === credentialId))
    const before = await sessions()
    const requested = await request()
    const answers = await Promise.all(
      Array.from({ length: racers }, () => authenticate(winner?.authenticate(requested))),
    )
    expect(tally(answers)).toEqual({ 200: 1, 401: racers - 1 })
    expect(await sessions()).toBe(before + 1)
  })

  test('[PASSKEY-4] one answer replayed many times at once signs in once', async () => {
    const still = createAuthenticator({ origin, counts: false })
    await register(still.register(await creation()))
    const before = await sessions()
    const response = still.authenticate(await request())
    const answers = await Promise.all(Array.from({ length: racers }, () => authenticate(response)))
    expect(tally(answers)).toEqual({ 200: 1, 401: racers - 1 })
    expect(await sessions()).toBe(before + 1)
  })

  test('[PASSKEY-5] a challenge is for one user and one ceremony', async () => {
    const stranger = await signUp(server)
    expectRefusal(await register(key.register(await creation(stranger))), 400)
    const options = { ...(await creation()), challenge: (await request()).challenge }
    expectRefusal(await register(key.register(options)), 400)
    expect(await listed()).toEqual([])

    await register(key.register(await creation()))
    const { challenge } = await creation()
    expectRefusal(await authenticate(key.authenticate({ challenge, rpId: 'localhost' })), 401)
    expect((await listed())[0].lastUsedAt).toBeNull()
  })

  test('[PASSKEY-7] a counter that does not go on is refused', async () => {
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
      if (status === 200) expect([counter, answer.status]).toEqual([counter, 200])
      else expectRefusal(answer, status)
    }
  })

  test('[PASSKEY-7] of two copies with the same count one signs in', async () => {
    await register(key.register(await creation(), { counter: 1 }))
    const responses = []
    for (let n = 0; n < racers; n++) responses.push(key.authenticate(await request(), { counter: 2 }))
    expect(tally(await Promise.all(responses.map(authenticate)))).toEqual({ 200: 1, 401: racers - 1 })
  })

  test('[PASSKEY-8] of the last two ways in, taken away at once, one stays', async () => {
    const { body } = await server.service.post('/api/auth/admin/users/import', {
      users: [{ email: `no-password-${person.id}@example.org`, verified: true }],
    })
    const { id } = body.results[0]
    const owner: Person = { ...person, id, client: server.as({ id }) }
    const keys = [key, createAuthenticator({ origin })]
    for (const one of keys) expect((await register(one.register(await creation(owner)), owner)).status).toBe(201)
    const answers = await Promise.all(keys.map(({ credentialId }) => owner.client.delete(`${base}/${credentialId}`)))
    expect(tally(answers)).toEqual({ 200: 1, 409: 1 })
    expect(await listed(owner)).toHaveLength(1)
  })

  test('[PASSKEY-11] attestations of any format register, and nothing that they name is fetched', async () => {
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

  test('[PASSKEY-1] what the authenticator says of backups is kept up', async () => {
    await register(key.register(await creation(), { isBackedUp: true }))
    expect(await listed()).toMatchObject([{ backedUp: true }])
    await authenticate(key.authenticate(await request(), { isBackedUp: false }))
    expect(await listed()).toMatchObject([{ backedUp: false }])
  })
})

function tally(answers: readonly Answer[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
