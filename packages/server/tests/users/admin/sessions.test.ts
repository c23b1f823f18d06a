/** Administration of signed-in users: disabling, revoking, deleting, claims and second factors. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { engines } from '../../harness/engines.ts'
import { openRawRequest } from '../../harness/raw-http.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { createServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'
import { password, unlimitedRates as rateLimits, adminUsers as users } from '../../harness/users/accounts.ts'
import { createUserRows, watchedEngine } from '../../harness/users/user-rows.ts'

type Auth = { id: string; custom: { plan?: string } } | null
const config = {
  databases: {
    shared: {
      tables: {
        pro: {
          schema: { n: { type: 'number' } },
          access: { read: (auth: Auth) => auth?.custom.plan === 'pro', insert: true },
        },
      },
    },
  },
  auth: { publicUsers: true },
  rateLimits,
} as const

for (const { engine, storage } of engines.map(watchedEngine))
  describe(`admin and sessions on ${engine.name}`, () => {
    const server = createServer({ config }, engine)
    const rows = createUserRows(server.dataFolder, storage)
    beforeAll(() => server.open())
    afterAll(() => server.close())

    let created = 0
    const create = async (): Promise<{ id: string; email: string }> => {
      const answer = await server.service.post(users, { email: `person${++created}@example.com`, password })
      expect(answer.status).toBe(201)
      return answer.body.user
    }
    const signIn = (email: string) => server.anonymous.post('/api/auth/signin', { email, password })
    const refresh = (refreshToken: string) => server.anonymous.post('/api/auth/refresh', { refreshToken })
    const bearer = (accessToken: string) => ({ authorization: `Bearer ${accessToken}` })
    const me = (accessToken: string) => server.anonymous.get('/api/auth/me', bearer(accessToken))
    const signedIn = async () => {
      const user = await create()
      const { status, body } = await signIn(user.email)
      expect(status).toBe(200)
      expect((await me(body.accessToken)).status).toBe(200)
      return { ...user, accessToken: body.accessToken as string, refreshToken: body.refreshToken as string }
    }
    type SignedInUser = Awaited<ReturnType<typeof signedIn>>
    const expectSignedOut = async ({ id, accessToken, refreshToken }: SignedInUser): Promise<void> => {
      expectRefusal(await me(accessToken), 401)
      expectRefusal(await refresh(refreshToken), 401)
      expect(await rows.count('_sessions', 'user_id', id)).toBe(0)
    }

    const disable = (id: string) => server.service.patch(`${users}/${id}`, { disabled: true })
    const revoke = (id: string) => server.service.request('POST', `${users}/${id}/revoke`)
    const remove = (id: string) => server.service.delete(`${users}/${id}`)

    test('[ADMIN-15, ADMIN-16] disabling a user ends every session and refuses sign-ins until the user is enabled', async () => {
      const person = await signedIn()
      const other = await signIn(person.email)
      const { status, body } = await disable(person.id)
      expect(status).toBe(200)
      expect(body.disabled).toBe(true)
      await expectSignedOut(person)
      expectRefusal(await me(other.body.accessToken), 401)
      expect(expectRefusal(await signIn(person.email), 403).message).toBe('Account is disabled')
      const wrong = await server.anonymous.post('/api/auth/signin', { email: person.email, password: 'wrong password' })
      const unknown = await server.anonymous.post('/api/auth/signin', {
        email: 'no@example.com',
        password: 'wrong one',
      })
      expect(expectRefusal(wrong, 401)).toEqual(expectRefusal(unknown, 401))
      expect(await rows.count('_sessions', 'user_id', person.id)).toBe(0)
      // Repeating the request changes nothing.
      expect((await disable(person.id)).body.disabled).toBe(true)

      const enabled = await server.service.patch(`${users}/${person.id}`, { disabled: false })
      expect(enabled.body.disabled).toBe(false)
      await expectSignedOut(person)
      expect((await signIn(person.email)).status).toBe(200)
    })

    for (const [what, rule, end] of [
      ['disabled', 'ADMIN-15', disable],
      ['revoked', 'ADMIN-18', revoke],
    ] as const)
      test(`[${rule}] a request whose body arrives after its user was ${what} has no effect`, async () => {
        const person = await signedIn()
        const body = JSON.stringify({ displayName: 'Too late' })
        const head = [
          'PATCH /api/auth/profile HTTP/1.1',
          'Host: localhost',
          'Connection: close',
          `Authorization: Bearer ${person.accessToken}`,
          'Content-Type: application/json',
          `Content-Length: ${body.length}`,
        ]
        const request = openRawRequest(server.url, `${head.join('\r\n')}\r\n\r\n${body.slice(0, 5)}`)
        // Two requests are in flight: the one for the metrics and this one.
        while (!/http_requests_in_flight 2$/m.test((await server.service.get('/metrics')).text));
        expect((await end(person.id)).status).toBe(200)
        expect((await request.finish(body.slice(5))).status).toBe(401)
        expect((await server.service.get(`${users}/${person.id}`)).body.displayName).toBeNull()
      })

    test('[ADMIN-18] revoking a user ends every session and allows signing in again', async () => {
      const person = await signedIn()
      const other = await signedIn()
      expect((await revoke(person.id)).body).toEqual({ ok: true })
      await expectSignedOut(person)
      expect((await me(other.accessToken)).status).toBe(200)
      const again = await signIn(person.email)
      expect((await me(again.body.accessToken)).status).toBe(200)
    })

    test('[ADMIN-17] claims are replaced, and in the next access token', async () => {
      const person = await signedIn()
      const put = (claims: object) => server.service.request('PUT', `${users}/${person.id}/claims`, { body: claims })
      const read = (accessToken: string) => server.anonymous.get('/api/db/shared/tables/pro', bearer(accessToken))
      expect((await put({ team: 'a', sub: 'admin', role: 'admin' })).body).toEqual({ ok: true })
      expect((await put({ plan: 'pro', role: 'admin', exp: 1 })).body).toEqual({ ok: true })
      expectRefusal(await read(person.accessToken), 403)
      const { body } = await refresh(person.refreshToken)
      expect((await read(body.accessToken)).status).toBe(200)
      const claims = JSON.parse(Buffer.from(body.accessToken.split('.')[1], 'base64url').toString())
      expect(claims.custom).toEqual({ plan: 'pro', role: 'admin', exp: 1 })
      expect(claims).toMatchObject({ role: 'user', sub: person.id })
    })

    test('[ADMIN-12, ADMIN-17] the largest and deepest allowed claims fit in a token', async () => {
      const email = `${'ü'.repeat(60)}@${'a'.repeat(60)}.${'b'.repeat(60)}.example.com`
      const displayName = '🧭'.repeat(200)
      const { body } = await server.service.post(users, { email, password, displayName, role: 'r'.repeat(64) })
      const path = `${users}/${body.user.id}`
      // 63 nested objects; the body is the 64th.
      const deepest = JSON.parse(`${'{"a":'.repeat(63)}1${'}'.repeat(63)}`)
      const emptyLength = JSON.stringify({ deepest, text: '' }).length
      const claims = { deepest, text: 'x'.repeat(4096 - emptyLength) }
      expect((await server.service.request('PUT', `${path}/claims`, { body: claims })).status).toBe(200)
      const { status, body: signedInBody } = await signIn(email)
      expect(status).toBe(200)
      expect((await me(signedInBody.accessToken)).status).toBe(200)
    })

    test('[ADMIN-14] appMetadata is not returned to the user', async () => {
      const person = await signedIn()
      const changes = { metadata: { open: 'public' }, appMetadata: { secret: 'unseen' } }
      await server.service.patch(`${users}/${person.id}`, changes)
      const { text, body } = await me(person.accessToken)
      expect(body.metadata ?? body.user?.metadata).toEqual({ open: 'public' })
      expect(text).not.toMatch(/unseen|appMetadata/)
      expect((await signIn(person.email)).text).not.toMatch(/unseen|appMetadata/)
    })

    test('[ADMIN-19] deleting a user removes all rows of the user and makes the email available', async () => {
      const person = await signedIn()
      const other = await signedIn()
      for (const { id } of [person, other]) await insertOwnedRows(id)
      const publicRecord = `/api/db/shared/tables/_users_public/${person.id}`
      expect((await server.service.get(publicRecord)).status).toBe(200)

      expect((await remove(person.id)).body).toEqual({ ok: true })
      await expectSignedOut(person)
      expect(await countOwnedRows(person.id)).toEqual(ownedTables.map(() => 0))
      expect(await countOwnedRows(other.id)).toEqual(ownedTables.map(() => 1))
      expectRefusal(await server.service.get(publicRecord), 404)
      expectRefusal(await server.service.get(`${users}/${person.id}`), 404)
      expectRefusal(await signIn(person.email), 401)
      expectRefusal(await remove(person.id), 404)
      expect((await me(other.accessToken)).status).toBe(200)

      const successor = await server.service.post(users, { email: person.email, password })
      expect(successor.status).toBe(201)
      expect(successor.body.user.id).not.toBe(person.id)
      await expectSignedOut(person)
    })

    test('[ADMIN-21] removing factors deletes factors and recovery codes, and keeps passkeys and sessions', async () => {
      const person = await signedIn()
      await insertOwnedRows(person.id)
      const withFactor = await signIn(person.email)
      expect(withFactor).toMatchObject({ status: 200, body: { mfaRequired: true } })
      const removed = await server.service.delete(`${users}/${person.id}/mfa`)
      expect(removed).toMatchObject({ status: 200, body: { ok: true } })
      const left = await countOwnedRows(person.id)
      expect(Object.fromEntries(ownedTables.map(([table], at) => [table, left[at]]))).toEqual({
        _users: 1,
        _sessions: 1,
        _identities: 1,
        _one_time_tokens: 1,
        _factors: 0,
        _recovery_codes: 0,
        _passkeys: 1,
      })
      expect((await me(person.accessToken)).status).toBe(200)
      expect((await signIn(person.email)).body.accessToken).toBeString()
      // Repeating the request is not an error.
      expect((await server.service.delete(`${users}/${person.id}/mfa`)).status).toBe(200)
    })

    for (const [what, end, mayReturn] of [
      ['deleted', remove, false],
      ['disabled', disable, false],
      ['revoked', revoke, true],
    ] as const)
      test(`[ADMIN-20] a user who is ${what} during refreshes and sign-ins has no valid token from before`, async () => {
        const person = await signedIn()
        const signIns = await Promise.all(times(10, () => signIn(person.email)))
        const before = [person, ...signIns.map(({ body }) => body as SignedInUser)]
        const signingIn = times(10, () => signIn(person.email))
        const refreshing = before.map(({ refreshToken }) => refresh(refreshToken))
        const ended = end(person.id)
        const given = async (racing: typeof refreshing): Promise<SignedInUser[]> => {
          const answers = await Promise.all(racing)
          for (const { status } of answers) expect([200, 401, 403]).toContain(status)
          return answers.filter(({ status }) => status === 200).map(({ body }) => body)
        }
        const [newcomers, renewed] = [await given(signingIn), await given(refreshing)]
        expect((await ended).status).toBe(200)
        // A sign-in after a revocation is valid; no session from before it is, refreshed or not.
        for (const { accessToken, refreshToken } of [...before, ...renewed, ...(mayReturn ? [] : newcomers)]) {
          expectRefusal(await me(accessToken), 401)
          expectRefusal(await refresh(refreshToken), 401)
        }
        if (mayReturn) return
        expect(await rows.count('_sessions', 'user_id', person.id)).toBe(0)
      })

    for (const [what, end] of [
      ['disabled', disable],
      ['revoked', revoke],
    ] as const)
      test(`[ADMIN-20, USER-9] an anonymous user who is ${what} during a sign-up has no valid token`, async () => {
        const anonymous = (await server.anonymous.request('POST', '/api/auth/signin/anonymous')).body
        const { id } = anonymous.user
        const email = `anonymous-${id}@example.com`
        const signingUp = server.anonymous.post('/api/auth/signup', { email, password }, bearer(anonymous.accessToken))
        // Hashing the password takes a while: whichever finishes first, the session has ended.
        expect((await end(id)).status).toBe(200)
        const { status, body } = await signingUp
        expect([201, 401]).toContain(status)
        await server.service.patch(`${users}/${id}`, { disabled: false })
        await expectSignedOut({ ...anonymous, id })
        if (status === 201) await expectSignedOut({ ...body, id })
        expect((await server.service.get(`${users}/${id}`)).body.isAnonymous).toBe(status === 401)
      })

    for (const [what, end] of [
      ['disabled', disable],
      ['revoked', revoke],
    ] as const)
      test(`[ADMIN-20, USER-12] a user who is ${what} during a change of password has no valid token`, async () => {
        const person = await signedIn()
        const change = { currentPassword: password, newPassword: 'a better password' }
        const changing = server.anonymous.post('/api/auth/change-password', change, bearer(person.accessToken))
        // Hashing both passwords takes a while: whichever finishes first, the session has ended.
        expect((await end(person.id)).status).toBe(200)
        const { status, body } = await changing
        expect([200, 401]).toContain(status)
        await server.service.patch(`${users}/${person.id}`, { disabled: false })
        await expectSignedOut(person)
        if (status === 200) await expectSignedOut({ ...person, ...body, id: person.id })
        expect((await signIn(person.email)).status).toBe(status === 401 ? 200 : 401)
      })

    const ownedTables = [
      ['_users', 'id'],
      ['_sessions', 'user_id'],
      ['_identities', 'user_id'],
      ['_one_time_tokens', 'user_id'],
      ['_factors', 'user_id'],
      ['_recovery_codes', 'user_id'],
      ['_passkeys', 'user_id'],
    ] as const
    const countOwnedRows = (id: string): Promise<number[]> =>
      Promise.all(ownedTables.map(([table, column]) => rows.count(table, column, id)))

    /** One row in each table with rows of users. */
    async function insertOwnedRows(id: string): Promise<void> {
      const at = Date.now()
      const hash = `hash-${id}`
      await rows.insert('_identities', { id: `i-${id}`, user_id: id, provider: 'x', subject: id, created_at: at })
      await rows.insert('_one_time_tokens', {
        hash,
        purpose: 'password-reset',
        user_id: id,
        data: '{}',
        attempts: 0,
        created_at: at,
        expires_at: at + 60_000,
      })
      await rows.insert('_factors', { id: `f-${id}`, user_id: id, secret: 'sealed', confirmed_at: at, created_at: at })
      await rows.insert('_recovery_codes', { user_id: id, hash })
      await rows.insert('_passkeys', {
        id: `p-${id}`,
        user_id: id,
        name: 'key',
        public_key: 'x',
        counter: 0,
        transports: '[]',
        backed_up: 0,
        created_at: at,
      })
    }
  })
