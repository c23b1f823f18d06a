/** Anonymous users who sign up, public user records, and signing keys. */
import { describe, expect, test } from 'bun:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { manualClock } from '../../../src/base/clock.ts'
import { parseConfig } from '../../../src/config/validate.ts'
import type { Answer } from '../../harness/client.ts'
import { readToken } from '../../harness/records/forge.ts'
import { watch } from '../../harness/records/live.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'
import {
  adminUsers as admin,
  auth,
  bearer,
  password,
  unlimitedRates as rateLimits,
} from '../../harness/users/accounts.ts'

const publicUsers = '/api/db/shared/tables/_users_public'
const notes = '/api/db/shared/tables/notes'

type Auth = { id: string; isAnonymous: boolean } | null
const own = (caller: Auth) => caller && { ownerId: caller.id }
const tables = {
  notes: { schema: { ownerId: { type: 'string' } }, access: { read: own, insert: own } },
  real: { schema: { n: { type: 'number' } }, access: { read: (caller: Auth) => caller && !caller.isAnonymous } },
} as const

let emailCount = 0
const newEmail = (): string => `kim${++emailCount}@example.com`
const begin = async (server: TestServer) => {
  const { status, body } = await server.anonymous.post(`${auth}/signin/anonymous`, undefined)
  expect(status).toBe(201)
  return body
}
const signUp = (server: TestServer, email: string, token?: string): Promise<Answer> =>
  server.anonymous.post(`${auth}/signup`, { email, password }, token === undefined ? {} : bearer(token))

describeServer('anonymous users', { config: { databases: { shared: { tables } }, rateLimits } }, (server) => {
  test('[USER-9] are users without an email and a name', async () => {
    const { user, accessToken } = await begin(server)
    expect(user).toMatchObject({ email: null, displayName: null, role: 'user', isAnonymous: true })
    expect(readToken(accessToken).claims).toMatchObject({ sub: user.id, email: null, isAnonymous: true })
    expect((await server.anonymous.post(notes, { ownerId: user.id }, bearer(accessToken))).status).toBe(201)
    expectRefusal(await server.anonymous.get('/api/db/shared/tables/real', bearer(accessToken)), 403)
  })

  test('[USER-9] keep their id, data and session when they sign up', async () => {
    const first = await begin(server)
    await server.anonymous.post(notes, { ownerId: first.user.id }, bearer(first.accessToken))
    await server.anonymous.patch(`${auth}/profile`, { displayName: 'Guest' }, bearer(first.accessToken))
    const email = newEmail()
    const { status, body } = await signUp(server, email, first.accessToken)
    expect(status).toBe(201)
    expect(body.user).toMatchObject({ id: first.user.id, email, displayName: 'Guest', isAnonymous: false })
    expect(readToken(body.accessToken).claims).toMatchObject({ sub: first.user.id, email, isAnonymous: false })
    expect((await server.anonymous.get('/api/db/shared/tables/real', bearer(body.accessToken))).status).toBe(200)
    expect((await server.anonymous.get(notes, bearer(body.accessToken))).body.total).toBe(1)
    expect((await server.anonymous.get(notes, bearer(first.accessToken))).body.total).toBe(1)
    const refreshed = await server.anonymous.post(`${auth}/refresh`, { refreshToken: first.refreshToken })
    expect(refreshed.body.user).toEqual(body.user)
    expect(readToken(refreshed.body.accessToken).claims.isAnonymous).toBe(false)
    expect((await server.anonymous.post(`${auth}/signin`, { email, password })).body.user.id).toBe(first.user.id)
  })

  test('[USER-9] are unchanged after a sign-up with a taken address', async () => {
    const email = newEmail()
    await signUp(server, email)
    const { user, accessToken } = await begin(server)
    expectRefusal(await signUp(server, email, accessToken), 409)
    expect((await server.anonymous.get(`${auth}/me`, bearer(accessToken))).body.user).toEqual(user)
  })

  test('[USER-9] of 20 concurrent sign-ups of one anonymous user one succeeds', async () => {
    const { user, accessToken } = await begin(server)
    const emails = times(20, newEmail)
    const answers = await Promise.all(emails.map((email) => signUp(server, email, accessToken)))
    const succeeded = answers.flatMap(({ status, body }) => (status === 201 ? [body.user] : []))
    expect(succeeded).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(19)
    expect(succeeded[0].id).toBe(user.id)
    expect((await server.service.get(`${admin}/${user.id}`)).body.email).toBe(succeeded[0].email)
  })

  test('[USER-9] a sign-up with the token of a permanent user does not change that account', async () => {
    const first = (await signUp(server, newEmail())).body
    const second = (await signUp(server, newEmail(), first.accessToken)).body
    expect(second.user.id).not.toBe(first.user.id)
    expect((await server.anonymous.get(`${auth}/me`, bearer(first.accessToken))).body.user).toEqual(first.user)
  })
})

const served = {
  databases: { shared: { tables } },
  auth: { publicUsers: (caller: Auth) => caller !== null },
  rateLimits,
}
describeServer('public users', { config: served }, (server) => {
  const total = async (): Promise<number> => (await server.service.get(`${publicUsers}?limit=1`)).body.total
  const find = (id: string): Promise<Answer> => server.service.get(`${publicUsers}/${id}`)

  test('[USER-17] a user is a record, which has the email if the user made it public', async () => {
    const email = newEmail()
    const { body } = await signUp(server, email)
    const { id } = body.user
    expect((await find(id)).body).toEqual({
      id,
      displayName: null,
      avatarUrl: null,
      role: 'user',
      email: null,
      createdAt: body.user.createdAt,
      updatedAt: body.user.updatedAt,
    })
    const change = (changes: object) => server.anonymous.patch(`${auth}/profile`, changes, bearer(body.accessToken))
    const { user } = (await change({ displayName: 'Kim', emailVisibility: 'public' })).body
    expect((await find(id)).body).toMatchObject({ displayName: 'Kim', email, updatedAt: user.updatedAt })
    const filter = JSON.stringify([['displayName', '==', 'Kim']])
    const listed = await server.as('any-user').get(`${publicUsers}?filter=${encodeURIComponent(filter)}`)
    expect(listed).toMatchObject({ status: 200, body: { total: 1 } })
    await change({ emailVisibility: 'private' })
    expect((await find(id)).body.email).toBeNull()
  })

  test('[USER-17] the rule decides who can read public users', async () => {
    expectRefusal(await server.anonymous.get(publicUsers), 401)
    expect((await server.as('any-user').get(publicUsers)).status).toBe(200)
  })

  test('[USER-18] records and totals follow created, changed and deleted users', async () => {
    const before = await total()
    const users = await Promise.all(times(12, () => begin(server)))
    expect(await total()).toBe(before + 12)
    const [{ user }] = users as [Awaited<ReturnType<typeof begin>>]
    await server.service.patch(`${admin}/${user.id}`, { displayName: 'By the admin', role: 'editor' })
    expect((await find(user.id)).body).toMatchObject({ displayName: 'By the admin', role: 'editor' })
    const editors = `${publicUsers}/count?filter=${encodeURIComponent(JSON.stringify([['role', '==', 'editor']]))}`
    expect((await server.service.get(editors)).body.total).toBe(1)
    await server.service.delete(`${admin}/${user.id}`)
    expectRefusal(await find(user.id), 404)
    expect(await total()).toBe(before + 11)
    expect((await server.service.get(editors)).body.total).toBe(0)
    const refused = await server.service.post(admin, {
      email: (await signUp(server, newEmail())).body.user.email,
      password,
    })
    expectRefusal(refused, 409)
    expect(await total()).toBe(before + 12)
  })

  test('[USER-18] subscribers receive each change of a user', async () => {
    const { user, accessToken } = (await signUp(server, newEmail())).body
    const socket = await watch(server.url, { channel: `dblive:shared:_users_public:${user.id}`, token: accessToken })
    await server.anonymous.patch(`${auth}/profile`, { displayName: 'Kim' }, bearer(accessToken))
    expect(await socket.expect('db_change')).toMatchObject({ changeType: 'modified', data: { displayName: 'Kim' } })
    await socket.close()
  })

  const writes: Readonly<
    Record<string, (server: TestServer, id: string, caller: 'service' | 'user') => Promise<Answer>>
  > = {
    insert: (_, id, as) => clientOf(as).post(publicUsers, { id: `${id}x`, role: 'admin' }),
    upsert: (_, id, as) => clientOf(as).post(`${publicUsers}?upsert=true`, { id, role: 'admin' }),
    update: (_, id, as) => clientOf(as).patch(`${publicUsers}/${id}`, { role: 'admin' }),
    delete: (_, id, as) => clientOf(as).delete(`${publicUsers}/${id}`),
    'batch insert': (_, id, as) =>
      clientOf(as).post(`${publicUsers}/batch`, { inserts: [{ id: `${id}x`, role: 'x' }] }),
    'batch upsert': (_, id, as) =>
      clientOf(as).post(`${publicUsers}/batch?upsert=true`, { inserts: [{ id, role: 'admin' }] }),
    'batch update': (_, id, as) =>
      clientOf(as).post(`${publicUsers}/batch`, { updates: [{ id, data: { role: 'admin' } }] }),
    'batch delete': (_, id, as) => clientOf(as).post(`${publicUsers}/batch`, { deletes: [id] }),
    'update by filter': (_, __, as) =>
      clientOf(as).post(`${publicUsers}/batch-by-filter`, { action: 'update', data: { role: 'admin' } }),
    'delete by filter': (_, __, as) => clientOf(as).post(`${publicUsers}/batch-by-filter`, { action: 'delete' }),
  }
  const clientOf = (as: 'service' | 'user') => (as === 'service' ? server.service : server.as('any-user'))
  for (const [name, write] of Object.entries(writes))
    for (const as of ['service', 'user'] as const)
      test(`[USER-18] ${name} by a ${as} is 403`, async () => {
        const { user } = await begin(server)
        const before = await server.dump(publicUsers)
        expectRefusal(await write(server, user.id, as), 403)
        expect(await server.dump(publicUsers)).toEqual(before)
      })

  test('[USER-17] the table does not exist without the option, and is complete when the option is set again', async () => {
    const before = await total()
    await server.restart({ databases: { shared: { tables } }, rateLimits })
    expectRefusal(await server.service.get(publicUsers), 404)
    const { user } = await begin(server)
    await server.restart(served)
    expect(await total()).toBe(before + 1)
    expect((await find(user.id)).status).toBe(200)
    await server.reload({ ...served, auth: { publicUsers: true } })
    expect((await server.anonymous.get(publicUsers)).body.total).toBe(before + 1)
  })
})

describe('the namespace of users', () => {
  test('[USER-17] cannot have instances', () => {
    const written = { databases: { shared: { instance: true, tables: {} } } }
    expect(() => parseConfig(written, { mode: 'release', rootKey: '' })).toThrow('databases.shared.instance')
  })
})

const clock = manualClock()
describeServer('signing keys', { config: { rateLimits }, clock }, (server) => {
  const rotate = async (): Promise<string> => {
    const { status, body } = await server.service.post(`${auth}/admin/keys/rotate`, {})
    expect(status).toBe(200)
    return body.key.kid
  }
  const published = async () => (await server.anonymous.get(`${auth}/jwks.json`)).body
  const kids = async (): Promise<string[]> => (await published()).keys.map(({ kid }: { kid: string }) => kid)
  const me = (accessToken: string) => server.anonymous.get(`${auth}/me`, bearer(accessToken))

  test('[TOKEN-14] a new key signs new tokens, and tokens of the old key stay valid', async () => {
    const before = await begin(server)
    const fromSecret = await server.token(before.user.id)
    const [first] = await kids()
    const kid = await rotate()
    expect(await kids()).toEqual([kid, first as string])
    const after = await begin(server)
    expect(readToken(after.accessToken).header.kid).toBe(kid)
    for (const token of [before.accessToken, fromSecret, after.accessToken]) {
      expect((await me(token)).status).toBe(200)
      const { payload } = await jwtVerify(token, createLocalJWKSet(await published()), {
        currentDate: new Date(clock.now()),
      })
      expect(payload.iss).toBe('plinth')
    }
    const { body } = await server.anonymous.post(`${auth}/refresh`, { refreshToken: before.refreshToken })
    expect(readToken(body.refreshToken).header.kid).toBe(kid)
  })

  test('[TOKEN-14, SESS-2] a repeated refresh returns the same token after a rotation', async () => {
    const { refreshToken } = await begin(server)
    const refresh = () => server.anonymous.post(`${auth}/refresh`, { refreshToken })
    const { body } = await refresh()
    await rotate()
    expect((await refresh()).body.refreshToken).toBe(body.refreshToken)
  })

  test('[TOKEN-14, TOKEN-13] keys survive a restart and are removed once all their tokens have expired', async () => {
    const all = await kids()
    const { accessToken } = await begin(server)
    await server.restart()
    expect(await kids()).toEqual(all)
    expect((await me(accessToken)).status).toBe(200)
    clock.advance(28 * 24 * 60 * 60 * 1000)
    await server.restart()
    expect(await kids()).toEqual(all.slice(0, 1))
  })

  test('[TOKEN-14] at most 50 keys are kept; one more rotation is 409', async () => {
    for (let n = (await kids()).length; n < 50; n++) await rotate()
    expectRefusal(await server.service.post(`${auth}/admin/keys/rotate`, {}), 409)
    expect(await kids()).toHaveLength(50)
  })
})
