/** Importing users: the result of each entry, which passwords work, and the effect on other requests. */
import { describe, expect, test } from 'bun:test'
import { pbkdf2Sync, randomBytes } from 'node:crypto'
import type { Clock } from '../../../src/base/clock.ts'
import { passwordCost } from '../../../src/limits/users.ts'
import { codesOf } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'
import { usersConfig as config, password, adminUsers as users } from '../../harness/users/accounts.ts'

const bcryptOf = (text: string): string => Bun.password.hashSync(text, { algorithm: 'bcrypt', cost: 4 })
function pbkdf2Of(text: string, iterations: number, bytes = 32): string {
  const salt = randomBytes(16)
  const hash = pbkdf2Sync(text, salt, iterations, bytes, 'sha256')
  return `pbkdf2:sha256:${iterations}:${salt.toString('base64')}:${hash.toString('base64')}`
}

/** A clock that advances by `stepMs` at each read. */
function createRunawayClock(): Clock & { stepMs: number } {
  let aheadMs = 0
  return {
    stepMs: 0,
    now() {
      aheadMs += this.stepMs
      return Date.now() + aheadMs
    },
  }
}
const clock = createRunawayClock()

describeServer('import', { config, clock }, (server) => {
  const send = (entries: unknown) => server.service.post(`${users}/import`, { users: entries })
  const importAll = async (entries: readonly unknown[]) => {
    const { status, body } = await send(entries)
    expect(status).toBe(200)
    const count = (wanted: string) => body.results.filter((one: { status: string }) => one.status === wanted).length
    const counted = { imported: count('created'), skipped: count('skipped'), errors: count('error') }
    expect(body).toMatchObject(counted)
    expect(body.results).toHaveLength(entries.length)
    return body
  }
  const statuses = (report: { results: { status: string }[] }): string[] => report.results.map(({ status }) => status)
  const total = async (): Promise<number> => (await server.service.get(`${users}?limit=1000`)).body.users.length
  const signIn = (email: string, given = password) =>
    server.anonymous.post('/api/auth/signin', { email, password: given })

  test('[IMPORT-1, IMPORT-7] entries become users with all their fields', async () => {
    const full = {
      id: 'imported-1',
      email: 'Full@Example.com',
      displayName: 'Full',
      avatarUrl: 'https://example.com/full.png',
      role: 'editor',
      verified: true,
      metadata: { a: [1] },
      appMetadata: { b: null },
    }
    const report = await importAll([full, { email: 'plain@example.com', displayName: null, verified: false }])
    expect(report).toEqual({
      imported: 2,
      skipped: 0,
      errors: 0,
      results: [
        { id: 'imported-1', email: 'full@example.com', status: 'created' },
        { id: expect.any(String), email: 'plain@example.com', status: 'created' },
      ],
    })
    const { body } = await server.service.get(`${users}/imported-1`)
    expect(body).toMatchObject({ ...full, email: 'full@example.com', emailVerified: true, disabled: false })
    const plain = (await server.service.get(`${users}/${report.results[1].id}`)).body
    expect(plain).toMatchObject({ role: 'user', verified: false, displayName: null })
    expect(plain.metadata).toEqual({})
  })

  test('[IMPORT-2] passwords in plain text and as hashes sign in; an entry without one has no password', async () => {
    const bcrypt = bcryptOf(password).slice(4)
    await importAll([
      { email: 'text@example.com', password },
      { email: 'b2a@example.com', passwordHash: `$2a$${bcrypt}` },
      { email: 'b2b@example.com', passwordHash: `$2b$${bcrypt}` },
      { email: 'b2y@example.com', passwordHash: `$2y$${bcrypt}` },
      { email: 'pbkdf2@example.com', passwordHash: pbkdf2Of(password, 1000) },
      { email: 'none@example.com' },
    ])
    for (const name of ['text', 'b2a', 'b2b', 'b2y', 'pbkdf2']) {
      expectRefusal(await signIn(`${name}@example.com`, 'another password'), 401)
      // The second sign-in uses the argon2id hash that the first one stored.
      for (const _ of [1, 2]) {
        const { status } = await signIn(`${name}@example.com`)
        expect({ name, status }).toEqual({ name, status: 200 })
      }
    }
    for (const given of [password, 'null', 'undefined']) expectRefusal(await signIn('none@example.com', given), 401)
  })

  test('[IMPORT-3] an existing user is skipped and not changed', async () => {
    await importAll([{ id: 'there', email: 'there@example.com', displayName: 'First', password }])
    const before = (await server.service.get(`${users}/there`)).body
    const report = await importAll([
      { email: ' THERE@example.com', displayName: 'Second', password: 'another password' },
      { id: 'there', email: 'elsewhere@example.com' },
    ])
    expect(report.results).toEqual([
      { id: 'there', email: 'there@example.com', status: 'skipped' },
      { id: 'there', email: 'elsewhere@example.com', status: 'skipped' },
    ])
    expect((await importAll([{ email: 'ｔhere@example.com' }])).results).toEqual([report.results[0]])
    expect((await server.service.get(`${users}/there`)).body).toEqual(before)
    expect((await signIn('there@example.com')).status).toBe(200)
  })

  test('[IMPORT-4] a repeated address, in any spelling, or id in a batch is an error', async () => {
    const before = await total()
    const report = await importAll([
      { id: 'twin', email: 'twin@example.com' },
      { email: 'TWIN@example.com' },
      { email: 'ｔｗｉｎ@example.com' },
      { id: 'twin', email: 'other-twin@example.com' },
      { email: 'later@example.com', role: 'bad role' },
      { email: 'later@example.com' },
      { id: 'twin2', email: 'twin2@example.com' },
    ])
    expect(statuses(report)).toEqual(['created', 'error', 'error', 'error', 'error', 'created', 'created'])
    expect(await total()).toBe(before + 3)
  })

  const bad: readonly (readonly [why: string, entry: unknown, names: string])[] = [
    ['no email', { displayName: 'x' }, 'email'],
    ['a malformed email', { email: 'malformed' }, 'email'],
    ['a number', 1, 'object'],
    ['null', null, 'object'],
    ['an array', [], 'object'],
    ['an unknown member', { email: 'x1@example.com', passwrodHash: 'x' }, 'passwrodHash'],
    ['a short password', { email: 'x2@example.com', password: 'short' }, 'password'],
    ['an empty password', { email: 'x2@example.com', password: '' }, 'password'],
    ['an id with a slash', { id: 'a/b', email: 'x3@example.com' }, 'id'],
    ['an endpoint name as id', { id: 'import', email: 'x3@example.com' }, 'id'],
    ['a role with spaces', { email: 'x4@example.com', role: 'a b' }, 'role'],
    ['a javascript: URL as avatar', { email: 'x5@example.com', avatarUrl: 'javascript:1' }, 'avatarUrl'],
    ['too much metadata', { email: 'x6@example.com', metadata: { a: 'é'.repeat(8192) } }, 'metadata'],
    ['a string as verified', { email: 'x7@example.com', verified: 'yes' }, 'verified'],
  ]
  test('[IMPORT-5] an invalid entry reports why and does not affect others', async () => {
    const before = await total()
    const good = times(bad.length, (n) => ({ email: `beside${n}@example.com` }))
    const report = await importAll(bad.flatMap(([, entry], n) => [entry, good[n]]))
    for (const [n, [why, , names]] of bad.entries()) {
      const { status, error, message } = report.results[2 * n]
      expect({ why, status }).toEqual({ why, status: 'error' })
      expect(error).toContain(names)
      expect(message).toBe(error)
      expect(report.results[2 * n + 1].status).toBe('created')
    }
    expect(await total()).toBe(before + good.length)
  })

  test('[IMPORT-5] an entry with several errors names all of them', async () => {
    const [result] = (await importAll([{ email: 'malformed', role: 'a b', verified: 'yes' }])).results
    expect(result.error).toMatch(/role: .+; .*verified: /)
    expect(Object.keys(result.data).sort()).toEqual(['role', 'verified'])
    const [created] = (await importAll([{ email: 'no-mistake@example.com' }])).results
    expect(Object.keys(created).sort()).toEqual(['email', 'id', 'status'])
  })

  for (const bytes of [16, 20, 32, 33, 64])
    test(`[IMPORT-2] a PBKDF2 hash of ${bytes} bytes signs in, and is replaced by argon2id`, async () => {
      const email = `pbkdf2-${bytes}@example.com`
      const report = await importAll([{ email, passwordHash: pbkdf2Of(password, 1000, bytes) }])
      expect(statuses(report)).toEqual(['created'])
      expectRefusal(await signIn(email, 'another password'), 401)
      for (const _ of [1, 2]) expect((await signIn(email)).status).toBe(200)
    })

  for (const bytes of [15, 65])
    test(`[IMPORT-5] a PBKDF2 hash of ${bytes} bytes is refused`, async () => {
      const [result] = (
        await importAll([{ email: `pbkdf2-${bytes}@example.com`, passwordHash: pbkdf2Of(password, 1000, bytes) }])
      ).results
      expect(result.status).toBe('error')
      expect(result.error).toContain('passwordHash')
    })

  test('[IMPORT-5] an entry with a member named __proto__ is refused, and the others are imported', async () => {
    const headers = { 'content-type': 'application/json' }
    const raw = `{"users":[{"email":"p1@example.com","metadata":{"a":{"__proto__":{"x":1}}}},
      {"email":"p2@example.com","__proto__":{"role":"admin"}},{"email":"p3@example.com"}]}`
    const { body } = await server.service.request('POST', `${users}/import`, { raw, headers })
    expect(statuses(body)).toEqual(['error', 'error', 'created'])
    expect((await server.service.get(`${users}/${body.results[2].id}`)).body.role).toBe('user')
  })

  const hash = bcryptOf(password)
  for (const [why, entry] of [
    ['a password and a hash', { password, passwordHash: hash }],
    ['an empty hash', { passwordHash: '' }],
    ['a wildcard', { passwordHash: '*' }],
    ['a plain password as hash', { passwordHash: password }],
    ['a truncated hash', { passwordHash: hash.slice(0, -1) }],
    ['a hash with a line break after it', { passwordHash: `${hash}\n` }],
    ['bcrypt of cost 31', { passwordHash: hash.replace('$04$', '$31$') }],
    ['bcrypt of cost 15', { passwordHash: hash.replace('$04$', '$15$') }],
    ['an unsupported bcrypt version', { passwordHash: hash.replace('$2b$', '$2x$') }],
    ['argon2', { passwordHash: '$argon2id$v=19$m=4294967295,t=4294967295,p=1$c2FsdA$aGFzaA' }],
    ['PBKDF2 of 5,000,001 iterations', { passwordHash: pbkdf2Of('x', 1).replace(':1:', ':5000001:') }],
    ['PBKDF2 of 1e9 iterations', { passwordHash: pbkdf2Of('x', 1).replace(':1:', ':1e9:') }],
    ['PBKDF2 of zero iterations', { passwordHash: pbkdf2Of('x', 1).replace(':1:', ':0:') }],
    ['PBKDF2 with SHA-1', { passwordHash: pbkdf2Of('x', 1).replace('sha256', 'sha1') }],
    ['PBKDF2 with an empty hash', { passwordHash: 'pbkdf2:sha256:1000:c2FsdHNhbHQ=:' }],
  ] as const)
    test(`[IMPORT-6] an entry with ${why} is an error`, async () => {
      const report = await importAll([{ email: 'hash@example.com', ...entry }])
      expect(report.results).toMatchObject([
        { id: null, email: 'hash@example.com', status: 'error', error: expect.any(String) },
      ])
      expect((await server.service.get(`${users}?email=hash@example.com`)).body.users).toEqual([])
    })

  describe('the request body', () => {
    for (const [why, body, data] of [
      ['without users', {}, { users: 'required' }],
      ['with users that are not an array', { users: {} }, { users: 'type' }],
      ['with more than 1,000 users', { users: times(1001, (n) => ({ email: `m${n}@example.com` })) }, { users: 'max' }],
      ['with an unknown member', { users: [{ email: 'm@example.com' }], dryRun: true }, { dryRun: 'unknown' }],
    ] as const)
      test(`[IMPORT-1] an import ${why} is refused`, async () => {
        const before = await total()
        expect(codesOf(expectRefusal(await server.service.post(`${users}/import`, body), 400).data)).toEqual(data)
        expect(await total()).toBe(before)
      })

    test('[IMPORT-1] an empty batch imports no user', async () => {
      expect(await importAll([])).toEqual({ imported: 0, skipped: 0, errors: 0, results: [] })
    })
  })

  test('[IMPORT-1, IMPORT-3, IMPORT-9] two concurrent imports of a thousand users with maximum metadata create each once', async () => {
    const metadata = { text: 'x'.repeat(16 * 1024 - 11) }
    const entries = times(1000, (n) => ({
      id: `many-${n}`,
      email: `many${n}@example.com`,
      passwordHash: hash,
      metadata,
      appMetadata: metadata,
    }))
    const reports = await Promise.all([importAll(entries), importAll(entries)])
    for (const n of entries.keys())
      expect(reports.map((report) => report.results[n].status).sort()).toEqual(['created', 'skipped'])
    expect(reports.map(({ errors }) => errors)).toEqual([0, 0])
    expect((await importAll(entries)).skipped).toBe(1000)
    expect((await server.service.get(`${users}/many-999`)).body.metadata).toEqual(metadata)
  })

  test('[IMPORT-8] entries after the deadline are errors, and the import can be repeated', async () => {
    const entries = [
      { email: 'hashed@example.com', passwordHash: hash },
      ...times(30, (n) => ({ email: `late${n}@example.com`, password })),
    ]
    clock.stepMs = 5000
    const first = await importAll(entries)
    clock.stepMs = 0
    expect(first.results[0].status).toBe('created')
    expect(first.imported).toBeLessThan(31)
    expect(first.imported + first.errors).toBe(31)
    const again = await importAll(entries)
    expect(again).toMatchObject({ skipped: first.imported, imported: first.errors })
    expect((await signIn('late29@example.com')).status).toBe(200)
  })
})

describeServer('an import at the full cost of hashes', { config, passwordCost }, (server) => {
  test('[IMPORT-8] does not delay other requests', async () => {
    const entries = times(40, (n) => ({ email: `slow${n}@example.com`, password }))
    const importing = server.service.post(`${users}/import`, { users: entries })
    let isOver = false
    const over = importing.then(() => {
      isOver = true
    })
    let served = 0
    while (!isOver) {
      expect((await server.anonymous.get('/api/health')).status).toBe(200)
      served += 1
    }
    await over
    // One hash takes as long as dozens of requests: fewer would have been served if they waited for hashes.
    expect(served).toBeGreaterThan(40)
    expect((await importing).body).toMatchObject({ imported: 40 })
  })
})
