/** User administration: listing, reading, creating and changing users with the service key. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { codesOf } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'
import { password, unlimitedRates as rateLimits, adminUsers as users } from '../../harness/users/accounts.ts'

const adminKey = 'a-key-for-users-0123456789'
const otherKey = 'a-key-for-tables-0123456789'
const config = {
  databases: { shared: { tables: {} } },
  rateLimits,
  serviceKeys: [
    { name: 'users', key: adminKey, scopes: ['auth:admin:*:*'] },
    { name: 'tables', key: otherKey, scopes: ['db:*:*:*', 'storage:*:*:*'] },
  ],
}

/** An object whose JSON has exactly this number of bytes in UTF-8, most of them in two-byte letters. */
function objectOfBytes(bytes: number): Record<string, string> {
  const empty = JSON.stringify({ text: '' }).length
  const letters = Math.floor((bytes - empty) / 2)
  return { text: 'é'.repeat(letters) + 'x'.repeat((bytes - empty) % 2) }
}

describeServer('admin users', { config }, (server) => {
  let created = 0
  const create = async (fields: object = {}) => {
    const answer = await server.service.post(users, { email: `user${++created}@example.com`, password, ...fields })
    expect(answer.status).toBe(201)
    return answer.body.user
  }
  const get = async (id: string) => (await server.service.get(`${users}/${id}`)).body

  /** Every endpoint with a user id in its path, with a valid request. */
  const withId: readonly (readonly [method: string, rest: string, body?: object])[] = [
    ['GET', ''],
    ['PATCH', '', { role: 'editor' }],
    ['DELETE', ''],
    ['PUT', '/claims', { plan: 'pro' }],
    ['POST', '/revoke'],
    ['DELETE', '/mfa'],
  ]

  describe('callers', () => {
    const requests = [
      ['GET', users],
      ['POST', users, { email: 'refused@example.org', password }],
      ['POST', `${users}/import`, { users: [{ email: 'refused@example.org' }] }],
      ['GET', '/api/auth/admin/keys'],
      ['POST', '/api/auth/admin/keys/rotate'],
    ] as const
    for (const [method, path, body] of requests)
      test(`[ADMIN-1] ${method} ${path} requires a service key`, async () => {
        const options = body ? { body } : {}
        const before = (await server.service.get(`${users}?limit=1000`)).body
        const keysBefore = (await server.service.get('/api/auth/admin/keys')).body
        expectRefusal(await server.anonymous.request(method, path, options), 401)
        expectRefusal(await server.as({ id: 'eve', role: 'admin' }).request(method, path, options), 403)
        expectRefusal(await server.withKey(otherKey).request(method, path, options), 401)
        expect((await server.service.get(`${users}?limit=1000`)).body).toEqual(before)
        expect((await server.service.get('/api/auth/admin/keys')).body).toEqual(keysBefore)
        expect((await server.withKey(adminKey).request(method, path, options)).status).toBeLessThan(300)
      })

    for (const [method, rest, body] of withId)
      test(`[ADMIN-1] ${method} {id}${rest} requires a service key`, async () => {
        const { id } = await create()
        const options = body ? { body } : {}
        const before = await get(id)
        expectRefusal(await server.anonymous.request(method, `${users}/${id}${rest}`, options), 401)
        expectRefusal(await server.as({ id, role: 'admin' }).request(method, `${users}/${id}${rest}`, options), 403)
        expectRefusal(await server.withKey(otherKey).request(method, `${users}/${id}${rest}`, options), 401)
        expect(await get(id)).toEqual(before)
        expect((await server.withKey(adminKey).request(method, `${users}/${id}${rest}`, options)).status).toBe(200)
      })

    for (const [method, rest, body] of withId)
      test(`[ADMIN-7] ${method} {id}${rest} of an unknown user is 404`, async () => {
        const options = body ? { body } : {}
        for (const id of ['unknown', '%00', 'a%2Fb', '%F0%9F%98%80', 'x'.repeat(300)]) {
          const refused = await server.service.request(method, `${users}/${id}${rest}`, options)
          expect(expectRefusal(refused, 404).message).toBe('User not found')
        }
      })
  })

  describe('list', () => {
    const list = async (params: object) => (await server.service.get(users + query({ ...params }))).body
    const idsOf = (page: { users: { id: string }[] }): string[] => page.users.map(({ id }) => id)

    test('[ADMIN-2] the list is newest first, with the documented fields, 20 per page', async () => {
      const [older, newer] = [await create(), await create({ role: 'editor' })]
      await Promise.all(times(20, () => create()))
      const page = await list({})
      expect(page.users).toHaveLength(20)
      expect(typeof page.cursor).toBe('string')
      const all = (await list({ limit: 1000 })).users
      const at = (id: string) => all.findIndex((user: { id: string }) => user.id === id)
      expect(at(newer.id)).toBeLessThan(at(older.id))
      const { email, role, createdAt } = all[at(newer.id)]
      expect({ email, role, createdAt }).toEqual({ email: newer.email, role: 'editor', createdAt: newer.createdAt })
      expect(JSON.stringify(all)).not.toMatch(/argon|password|metadata/i)
    })

    test('[ADMIN-3] the cursor starts at 0 or absent and ends with null', async () => {
      await create()
      const start = await list({ limit: 3 })
      expect(await list({ limit: 3, cursor: '0' })).toEqual(start)
      const seen: string[] = []
      let cursor: string | null = '0'
      while (cursor !== null) {
        const page: { users: { id: string }[]; cursor: string | null } = await list({ limit: 7, cursor })
        expect(page.users.length).toBeGreaterThan(0)
        seen.push(...idsOf(page))
        ;({ cursor } = page)
      }
      expect(seen).toEqual(idsOf(await list({ limit: 1000 })))
    })

    test('[ADMIN-4] pages skip and repeat no user while users are created and deleted', async () => {
      const entries = times(30, (n) => ({ email: `page${n}-${created}@example.com`, id: `page-${created}-${n}` }))
      expect((await server.service.post(`${users}/import`, { users: entries })).body.imported).toBe(30)
      const expected = idsOf(await list({ limit: 1000 }))
      const seen: string[] = []
      let cursor: string | null = '0'
      while (cursor !== null) {
        const page: { users: { id: string }[]; cursor: string | null } = await list({ limit: 4, cursor })
        seen.push(...idsOf(page))
        ;({ cursor } = page)
        await create()
        // The user at the cursor position is deleted too.
        const last = page.users.at(-1)?.id
        if (last?.startsWith('page-')) await server.service.delete(`${users}/${last}`)
      }
      expect(seen).toEqual(expected)
    })

    test('[ADMIN-5] a user is found by email in any spelling', async () => {
      const { id, email } = await create()
      expect(idsOf(await list({ email: ` ${email.toUpperCase()} ` }))).toEqual([id])
      expect(await list({ email: 'unknown@example.com' })).toEqual({ users: [], cursor: null })
      expectRefusal(await server.service.get(users + query({ email: 'no address' })), 400, 'email')
    })

    test('[ADMIN-2] a limit above the maximum is clamped', async () => {
      expect((await list({ limit: 1_000_000 })).cursor).toBeNull()
    })

    for (const [name, params] of [
      ['ADMIN-2', { limit: 0 }],
      ['ADMIN-2', { limit: -1 }],
      ['ADMIN-2', { limit: '1.5' }],
      ['ADMIN-2', { limit: '' }],
      ['ADMIN-2', { limit: 'ten' }],
      ['ADMIN-3', { cursor: '' }],
      ['ADMIN-3', { cursor: '1' }],
      ['ADMIN-3', { cursor: 'W10' }],
      ['ADMIN-3', { cursor: Buffer.from('[1,"a\\u0000"]').toString('base64url') }],
      ['ADMIN-3', { cursor: Buffer.from('["1","a"]').toString('base64url') }],
      ['ADMIN-3', { cursor: Buffer.from('[1e999,"a"]').toString('base64url') }],
      ['ADMIN-3', { cursor: `${Buffer.from('[1,"a"]').toString('base64url')}!` }],
    ] as const)
      test(`[${name}] ${JSON.stringify(params)} is refused`, async () => {
        expectRefusal(await server.service.get(users + query(params)), 400, Object.keys(params)[0])
      })
  })

  describe('create', () => {
    test('[ADMIN-8, ADMIN-6] creating a user returns it without tokens, and the user can sign in', async () => {
      const email = 'Grace.Hopper@Example.COM'
      const answer = await server.service.post(users, { email, password, displayName: 'Grace' })
      expect(answer.status).toBe(201)
      expect(Object.keys(answer.body)).toEqual(['user'])
      const { user } = answer.body
      expect(user).toMatchObject({ email: 'grace.hopper@example.com', displayName: 'Grace', role: 'user' })
      expect(user.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(answer.text).not.toMatch(/argon|token/i)
      const signedIn = await server.anonymous.post('/api/auth/signin', { email, password })
      expect(signedIn).toMatchObject({ status: 200, body: { user: { id: user.id } } })
      expect(await get(user.id)).toEqual({
        id: user.id,
        email: 'grace.hopper@example.com',
        name: 'Grace',
        displayName: 'Grace',
        avatarUrl: null,
        role: 'user',
        emailVerified: true,
        verified: true,
        emailVisibility: 'private',
        locale: null,
        disabled: false,
        isAnonymous: false,
        metadata: {},
        appMetadata: {},
        customClaims: {},
        createdAt: user.createdAt,
        updatedAt: user.updatedAt,
      })
    })

    test('[ADMIN-9] a taken email in any spelling is 409', async () => {
      const { id, email } = await create()
      const before = await get(id)
      for (const spelling of [email, email.toUpperCase(), ` ${email}`, email.replace('u', 'ｕ')])
        expect(
          codesOf(expectRefusal(await server.service.post(users, { email: spelling, password }), 409).data),
        ).toEqual({
          email: 'unique',
        })
      expect(await get(id)).toEqual(before)
    })

    test('[ADMIN-9] of thirty concurrent requests with one email one creates a user', async () => {
      const answers = await Promise.all(
        times(30, (n) =>
          server.service.post(users, { email: n % 2 ? 'race@example.com' : 'RACE@example.com', password }),
        ),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([201, ...times(29, () => 409)])
      expect((await server.service.get(`${users}?email=race@example.com`)).body.users).toHaveLength(1)
    })

    for (const [what, fields, data] of [
      ['no password', { password: undefined }, { password: 'required' }],
      ['no email', { email: undefined }, { email: 'required' }],
      ['a malformed email', { email: 'malformed' }, { email: 'pattern' }],
      ['a short password', { password: 'short' }, { password: 'min' }],
      ['a long password', { password: 'x'.repeat(257) }, { password: 'max' }],
      ['an unknown member', { passwordHash: 'x' }, { passwordHash: 'unknown' }],
      ['a role with a space', { role: 'super user' }, { role: 'pattern' }],
      ['an empty role', { role: '' }, { role: 'min' }],
      ['a long role', { role: 'x'.repeat(65) }, { role: 'max' }],
      ['a name with a line break', { displayName: 'a\r\nBcc: b' }, { displayName: 'pattern' }],
      ['a name and a role of other types', { displayName: 1, role: [] }, { displayName: 'type', role: 'type' }],
    ] as const)
      test(`[ADMIN-10] a new user with ${what} is refused`, async () => {
        const body = { email: 'refused@example.com', password, ...fields }
        expect(codesOf(expectRefusal(await server.service.post(users, body), 400).data)).toEqual(data)
        expect((await server.service.get(`${users}?email=refused@example.com`)).body.users).toEqual([])
      })
  })

  describe('update', () => {
    let id = ''
    beforeAll(async () => {
      ;({ id } = await create({ displayName: 'Ada' }))
    })
    const update = (body: object) => server.service.patch(`${users}/${id}`, body)

    test('[ADMIN-11] an update replaces the given fields and keeps the others', async () => {
      const before = await get(id)
      const changes = {
        displayName: 'Ada Lovelace',
        avatarUrl: 'https://example.com/ada.png',
        role: 'editor',
        emailVisibility: 'public',
        metadata: { theme: 'dark', nested: { a: [1, null, 'ü'] } },
        appMetadata: { plan: 'pro' },
      }
      const { status, body } = await update(changes)
      expect(status).toBe(200)
      expect(body).toEqual({ ...before, ...changes, name: 'Ada Lovelace', updatedAt: body.updatedAt })
      expect(await get(id)).toEqual(body)
      expect(Date.parse(body.updatedAt)).toBeGreaterThan(Date.parse(before.updatedAt))
      const emptied = await update({ displayName: null, avatarUrl: null })
      expect(emptied.body).toEqual({
        ...body,
        displayName: null,
        name: null,
        avatarUrl: null,
        updatedAt: emptied.body.updatedAt,
      })
    })

    test('[ADMIN-11] an empty update changes nothing', async () => {
      const before = await get(id)
      expect((await update({})).body).toEqual(before)
    })

    test('[ADMIN-12] metadata is replaced, not merged', async () => {
      await update({ metadata: { a: 1 }, appMetadata: { b: 2 } })
      const { body } = await update({ metadata: { c: 3 } })
      expect(body.metadata).toEqual({ c: 3 })
      expect(body.appMetadata).toEqual({ b: 2 })
    })

    for (const field of ['metadata', 'appMetadata'])
      test(`[ADMIN-12] ${field} has at most 16,384 bytes of UTF-8`, async () => {
        const most = objectOfBytes(16 * 1024)
        expect((await update({ [field]: most })).status).toBe(200)
        const refused = expectRefusal(await update({ [field]: objectOfBytes(16 * 1024 + 1) }), 400)
        expect(codesOf(refused.data)).toEqual({ [field]: 'max' })
        expect((await get(id))[field]).toEqual(most)
      })

    test('[ADMIN-12] claims have at most 4,096 bytes of UTF-8', async () => {
      const put = (claims: object) => server.service.request('PUT', `${users}/${id}/claims`, { body: claims })
      const most = objectOfBytes(4096)
      expect((await put(most)).body).toEqual({ ok: true })
      expectRefusal(await put(objectOfBytes(4097)), 400)
      expect((await get(id)).customClaims).toEqual(most)
    })

    for (const name of ['__proto__', 'constructor', 'prototype'])
      test(`[ADMIN-13] a member named ${name} is refused at any depth`, async () => {
        const before = await get(id)
        const headers = { 'content-type': 'application/json' }
        const send = (method: string, path: string, raw: string) =>
          server.service.request(method, path, { raw, headers })
        for (const object of [`{"${name}":{"x":1}}`, `{"a":[{"b":{"${name}":1}}]}`]) {
          expectRefusal(await send('PATCH', `${users}/${id}`, `{"metadata":${object}}`), 400, 'metadata')
          expectRefusal(await send('PATCH', `${users}/${id}`, `{"appMetadata":${object}}`), 400, 'appMetadata')
          expectRefusal(await send('PUT', `${users}/${id}/claims`, object), 400)
        }
        expectRefusal(await send('PATCH', `${users}/${id}`, `{"${name}":{"role":"admin"}}`), 400)
        expect(await get(id)).toEqual(before)
        expect(({} as Record<string, unknown>).x).toBeUndefined()
      })

    for (const [what, body, data] of [
      ['a malformed email', { email: 'malformed' }, { email: 'pattern' }],
      ['a null email', { email: null }, { email: 'type' }],
      ['a short password', { password: 'short' }, { password: 'min' }],
      ['a string as emailVerified', { emailVerified: 'yes' }, { emailVerified: 'type' }],
      ['an id', { id: 'other' }, { id: 'unknown' }],
      ['a hash', { passwordHash: 'x' }, { passwordHash: 'unknown' }],
      ['claims', { customClaims: {} }, { customClaims: 'unknown' }],
      ['an array as metadata', { metadata: [] }, { metadata: 'type' }],
      ['null as metadata', { metadata: null }, { metadata: 'type' }],
      ['a string as disabled', { disabled: 'true' }, { disabled: 'type' }],
      ['an unknown email visibility', { emailVisibility: 'friends' }, { emailVisibility: 'enum' }],
      ['a javascript: URL as avatar', { avatarUrl: 'javascript:alert(1)' }, { avatarUrl: 'pattern' }],
      ['a long avatar URL', { avatarUrl: `https://example.com/${'x'.repeat(2048)}` }, { avatarUrl: 'max' }],
      ['null as role', { role: null }, { role: 'type' }],
      ['a valid and an invalid field', { displayName: 'Good', role: 7 }, { role: 'type' }],
    ] as const)
      test(`[ADMIN-10] an update with ${what} is refused`, async () => {
        const before = await get(id)
        expect(codesOf(expectRefusal(await update(body), 400).data)).toEqual(data)
        expect(await get(id)).toEqual(before)
      })

    test('[ADMIN-10] claims that are not an object are refused', async () => {
      const headers = { 'content-type': 'application/json' }
      for (const raw of ['[]', '1', 'null', ''])
        expectRefusal(await server.service.request('PUT', `${users}/${id}/claims`, { raw, headers }), 400)
    })
  })
})
