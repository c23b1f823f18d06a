/** Sign-up, sign-in by password, and the profile. */
import { expect, test } from 'bun:test'
import { readToken } from '../../harness/records/forge.ts'
import { codesOf } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'
import {
  adminUsers as admin,
  auth,
  bearer,
  usersConfig as config,
  countUsers,
  newEmail,
  password,
  signIn,
  signUp,
} from '../../harness/users/accounts.ts'

describeServer('sign-up', { config }, (server) => {
  test('[USER-1] a sign-up creates a user and a session', async () => {
    const email = newEmail()
    const data = { displayName: ' Ann Ähm ', avatarUrl: 'https://example.com/a.png' }
    const { status, body } = await signUp(server, email, { data, locale: 'de-AT' })
    expect(status).toBe(201)
    expect(Object.keys(body).sort()).toEqual(['accessToken', 'deviceToken', 'expiresIn', 'refreshToken', 'user'])
    const { iat, exp } = readToken(body.accessToken).claims
    expect(Number(exp) - Number(iat)).toBe(body.expiresIn)
    const { id, createdAt, updatedAt, ...user } = body.user
    expect(user).toEqual({
      email,
      displayName: 'Ann Ähm',
      avatarUrl: 'https://example.com/a.png',
      role: 'user',
      emailVerified: false,
      isAnonymous: false,
      emailVisibility: 'private',
      locale: 'de-AT',
      metadata: {},
    })
    expect(createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(updatedAt).toBe(createdAt)
    const { claims } = readToken(body.accessToken)
    expect(claims).toMatchObject({
      sub: id,
      email,
      displayName: 'Ann Ähm',
      role: 'user',
      isAnonymous: false,
      custom: {},
    })
    expect((await server.anonymous.get(`${auth}/me`, bearer(body.accessToken))).body).toEqual({ user: body.user })
  })

  const spellings: readonly [spelling: string, address: string][] = [
    ['Case.Twin@Example.COM', 'case.twin@example.com'],
    ['  spaced@example.com\t', 'spaced@example.com'],
    ['ｆｕｌｌｗｉｄｔｈ@example.com', 'fullwidth@example.com'],
    ['\u212Aelvin@example.com', 'kelvin@example.com'],
    ['ﬁne@example.com', 'fine@example.com'],
    ['idn@bücher.example', 'idn@xn--bcher-kva.example'],
    ['dot@example。com', 'dot@example.com'],
  ]
  for (const [spelling, address] of spellings)
    test(`[USER-2] ${JSON.stringify(spelling)} is the address ${address}`, async () => {
      const first = await signUp(server, spelling)
      expect(first).toMatchObject({ status: 201, body: { user: { email: address } } })
      const before = await countUsers(server)
      const second = await signUp(server, address)
      expect(codesOf(expectRefusal(second, 409).data)).toEqual({ email: 'unique' })
      expect(await countUsers(server)).toBe(before)
      for (const one of [spelling, address, address.toUpperCase()])
        expect((await signIn(server, one)).body.user.id).toBe(first.body.user.id)
    })

  test('[USER-2] addresses with similar-looking letters are different', async () => {
    expect((await signUp(server, 'paypal@example.com')).status).toBe(201)
    expect((await signUp(server, 'pаypal@example.com')).status).toBe(201)
    expect((await signUp(server, 'I@dot.example')).status).toBe(201)
    expect((await signUp(server, 'ı@dot.example')).status).toBe(201)
  })

  const malformedEmails: readonly string[] = [
    'ann',
    '@example.com',
    'ann@',
    'ann@example',
    'ann@@example.com',
    'a b@example.com',
    'ann@exa mple.com',
    'ann\r\nBcc: eve@example.com@example.com',
    'ann\0@example.com',
    'ann\u200B@example.com',
    '.ann@example.com',
    'a..n@example.com',
    'ann@example.com.',
    'ann@-example.com',
    'ann@127.0.0.1',
    'ann@[127.0.0.1]',
    '"ann"@example.com',
    'Ann <ann@example.com>',
    `${'a'.repeat(65)}@example.com`,
    `ann@${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(63)}.com`,
    'x'.repeat(2000),
  ]
  for (const email of malformedEmails)
    test(`[USER-3] ${JSON.stringify(email.slice(0, 60))} is a malformed address`, async () => {
      const before = await countUsers(server)
      expect(Object.keys(expectRefusal(await signUp(server, email), 400).data)).toEqual(['email'])
      expect(await countUsers(server)).toBe(before)
    })

  const passwords: readonly [value: string, code: string | null][] = [
    ['1234567', 'min'],
    ['12345678', null],
    ['😀'.repeat(7), 'min'],
    ['😀'.repeat(8), null],
    ['x'.repeat(256), null],
    ['x'.repeat(257), 'max'],
    ['with\0nul in it', 'type'],
    ['with \ud800 a lone surrogate', 'type'],
  ]
  for (const [value, code] of passwords)
    test(`[USER-3] a password of ${[...value].length} characters, ${JSON.stringify(value.slice(0, 9))}…, is ${code === null ? 'accepted' : 'refused'}`, async () => {
      const email = newEmail()
      const answer = await signUp(server, email, { password: value })
      if (code === null) {
        expect(answer.status).toBe(201)
        expect((await signIn(server, email, value)).status).toBe(200)
      } else {
        expect(codesOf(expectRefusal(answer, 400).data)).toEqual({ password: code })
        expectRefusal(await signIn(server, email, value), 401)
      }
    })

  const notSettable = {
    id: 'chosen',
    role: 'admin',
    disabled: false,
    appMetadata: { plan: 'pro' },
    customClaims: { admin: true },
    emailVerified: true,
    verified: true,
    isAnonymous: true,
    passwordHash: 'x',
    createdAt: '2020-01-01T00:00:00.000Z',
  }
  for (const [name, value] of Object.entries(notSettable)) {
    test(`[USER-4] ${name} cannot be set with a sign-up`, async () => {
      const before = await countUsers(server)
      expect(codesOf(expectRefusal(await signUp(server, newEmail(), { [name]: value }), 400).data)).toEqual({
        [name]: 'unknown',
      })
      const inside = await signUp(server, newEmail(), { data: { [name]: value } })
      expect(codesOf(expectRefusal(inside, 400).data)).toEqual({ [`data.${name}`]: 'unknown' })
      expect(await countUsers(server)).toBe(before)
    })
    test(`[USER-4] ${name} cannot be set with the profile`, async () => {
      const { body } = await signUp(server)
      const before = (await server.service.get(`${admin}/${body.user.id}`)).body
      const answer = await server.anonymous.patch(`${auth}/profile`, { [name]: value }, bearer(body.accessToken))
      expect(codesOf(expectRefusal(answer, 400).data)).toEqual({ [name]: 'unknown' })
      expect((await server.service.get(`${admin}/${body.user.id}`)).body).toEqual(before)
    })
  }

  test('[USER-2] of 30 concurrent sign-ups with one address one creates an account', async () => {
    const email = newEmail()
    const answers = await Promise.all(times(30, () => signUp(server, email)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...times(29, () => 409)])
    const { users } = (await server.service.get(`${admin}?limit=1000`)).body
    expect(users.filter((user: { email: string }) => user.email === email)).toHaveLength(1)
  })
})

describeServer('sign-in', { config }, (server) => {
  test('[USER-5] a sign-in returns new tokens', async () => {
    const email = newEmail()
    const { body: first } = await signUp(server, email)
    const { status, body } = await signIn(server, email)
    expect(status).toBe(200)
    expect(body.user).toEqual(first.user)
    expect(body.refreshToken).not.toBe(first.refreshToken)
    expect((await server.anonymous.get(`${auth}/me`, bearer(body.accessToken))).status).toBe(200)
  })

  test('[USER-5] an unknown address, a wrong password and an account without a password get the same 401', async () => {
    const email = newEmail()
    await signUp(server, email)
    const without = newEmail()
    await server.service.post(`${admin}/import`, { users: [{ email: without }] })
    const answers = [
      await signIn(server, email, 'another password'),
      await signIn(server, newEmail()),
      await signIn(server, without),
      await signIn(server, email, `${password} `),
      await signIn(server, email, 'x'.repeat(100_000)),
      await signIn(server, email, `${password}\0`),
    ]
    for (const answer of answers)
      expect(expectRefusal(answer, 401)).toEqual({
        code: 401,
        message: 'Invalid email or password',
        slug: 'invalid-credentials',
      })
  })

  test('[USER-7] a sign-in to a disabled account is 403 only with the right password', async () => {
    const email = newEmail()
    const { id } = (await signUp(server, email)).body.user
    await server.service.patch(`${admin}/${id}`, { disabled: true })
    expect(expectRefusal(await signIn(server, email), 403).message).toBe('Account is disabled')
    expect(expectRefusal(await signIn(server, email, 'another password'), 401).message).toBe(
      'Invalid email or password',
    )
    await server.service.patch(`${admin}/${id}`, { disabled: false })
    expect((await signIn(server, email)).status).toBe(200)
  })

  test('[USER-13] passwords and tokens are not logged', async () => {
    const email = newEmail()
    const secret = 'never to be seen in a log'
    const { body } = await signUp(server, email, { password: secret })
    await signIn(server, email, secret)
    await signIn(server, email, `${secret} but wrong`)
    await server.anonymous.post(`${auth}/refresh`, { refreshToken: body.refreshToken })
    await server.anonymous.get(`${auth}/me`, bearer(body.accessToken))
    const logged = server.logged()
    expect(logged).toContain('users.signIn')
    for (const text of [secret, body.refreshToken, body.accessToken, body.accessToken.split('.')[2]])
      expect(logged).not.toContain(text)
  })

  test('[USER-16] the next token has the custom claims under custom', async () => {
    const email = newEmail()
    const { id } = (await signUp(server, email)).body.user
    const custom = { role: 'admin', sub: 'eve', plan: 'pro', teams: ['a'] }
    await server.service.request('PUT', `${admin}/${id}/claims`, { body: custom })
    const { claims } = readToken((await signIn(server, email)).body.accessToken)
    expect(claims).toMatchObject({ sub: id, role: 'user', custom })
  })
})

describeServer('the profile', { config }, (server) => {
  test('[USER-10] the profile omits appMetadata, claims and hashes', async () => {
    const { body } = await signUp(server)
    await server.service.patch(`${admin}/${body.user.id}`, { appMetadata: { secret: 'hush' }, metadata: { a: 1 } })
    await server.service.request('PUT', `${admin}/${body.user.id}/claims`, { body: { secret: 'hush' } })
    const me = await server.anonymous.get(`${auth}/me`, bearer(body.accessToken))
    expect(me.body.user).toMatchObject({ id: body.user.id, metadata: { a: 1 } })
    expect(me.text).not.toMatch(/hush|argon|hash/i)
  })

  test('[USER-10] the profile is 404 for an unknown user, 403 for a service key and 401 without credentials', async () => {
    expectRefusal(await server.as('unknown-user').get(`${auth}/me`), 404)
    expectRefusal(await server.service.get(`${auth}/me`), 403)
    expectRefusal(await server.anonymous.get(`${auth}/me`), 401)
  })

  test('[USER-11] a change of the profile replaces the given fields and keeps the others', async () => {
    const { body } = await signUp(server, newEmail(), { data: { displayName: 'Ann' }, locale: 'en' })
    const change = (changes: object) => server.anonymous.patch(`${auth}/profile`, changes, bearer(body.accessToken))
    const metadata = { theme: 'dark', nested: { list: [1, null, 'ü'] } }
    const changed = await change({ emailVisibility: 'public', metadata })
    expect(changed.status).toBe(200)
    expect(changed.body.user).toMatchObject({ displayName: 'Ann', locale: 'en', emailVisibility: 'public', metadata })
    expect(Date.parse(changed.body.user.updatedAt)).toBeGreaterThan(Date.parse(body.user.updatedAt))
    const emptied = await change({ displayName: null, locale: null })
    expect(emptied.body.user).toMatchObject({ displayName: null, locale: null, metadata })
    const { claims } = readToken(
      (await server.anonymous.post(`${auth}/refresh`, { refreshToken: body.refreshToken })).body.accessToken,
    )
    expect(claims.displayName).toBeNull()
  })

  const kib16 = 'x'.repeat(16 * 1024 - '{"a":""}'.length)
  test('[USER-11] metadata of 16 KB is accepted, one byte more is refused', async () => {
    const { body } = await signUp(server)
    const change = (a: string) =>
      server.anonymous.patch(`${auth}/profile`, { metadata: { a } }, bearer(body.accessToken))
    expect((await change(kib16)).status).toBe(200)
    expect(codesOf(expectRefusal(await change(`${kib16}x`), 400).data)).toEqual({ metadata: 'max' })
    expect((await server.anonymous.get(`${auth}/me`, bearer(body.accessToken))).body.user.metadata).toEqual({
      a: kib16,
    })
  })

  for (const name of ['__proto__', 'constructor', 'prototype'])
    test(`[USER-11] metadata with a member named ${name} at any depth is refused`, async () => {
      const { body } = await signUp(server)
      const headers = { ...bearer(body.accessToken), 'content-type': 'application/json' }
      for (const object of [`{"${name}":{"x":1}}`, `{"a":[{"b":{"${name}":1}}]}`]) {
        const raw = `{"displayName":"Ann","metadata":${object}}`
        const refused = await server.anonymous.request('PATCH', `${auth}/profile`, { raw, headers })
        expect(codesOf(expectRefusal(refused, 400).data)).toEqual({ metadata: 'pattern' })
      }
      const { user } = (await server.anonymous.get(`${auth}/me`, bearer(body.accessToken))).body
      expect(user).toMatchObject({ displayName: null, metadata: {} })
    })

  const refused: Readonly<Record<string, unknown>> = {
    'an empty name': { displayName: ' ' },
    'a name of 201 characters': { displayName: 'x'.repeat(201) },
    'a name of two lines': { displayName: 'Ann\r\nBcc: eve@example.com' },
    'a name that is an object': { displayName: {} },
    'a javascript: URL as avatar': { avatarUrl: 'javascript:alert(1)' },
    'an avatar URL with credentials': { avatarUrl: 'https://a:b@example.com/x.png' },
    'a malformed locale': { locale: '../../etc' },
    'an unknown email visibility': { emailVisibility: 'friends' },
    'metadata that is an array': { metadata: [] },
    'metadata with NUL': { metadata: { a: '\0' } },
  }
  for (const [name, changes] of Object.entries(refused))
    test(`[USER-11] a profile with ${name} is 400`, async () => {
      const { body } = await signUp(server)
      const answer = await server.anonymous.patch(`${auth}/profile`, changes, bearer(body.accessToken))
      expect(Object.keys(expectRefusal(answer, 400).data)).toEqual(Object.keys(changes as object))
      expect((await server.anonymous.get(`${auth}/me`, bearer(body.accessToken))).body.user).toEqual(body.user)
    })
})
