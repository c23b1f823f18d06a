/** `auth.beforeSignUp`: on every path that creates an account, over HTTP, on every engine. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { open } from '../harness/config.ts'
import { openFunctionProject } from '../harness/functions.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, type TestServer } from '../harness/server.ts'
import { adminUsers, auth, bearer, newEmail, password, signUp } from '../harness/users/accounts.ts'
import { accountOf, openSignUpPaths } from '../harness/users/sign-up-paths.ts'

/** The wish, a record, says what the function does; each call is another record. */
const project = openFunctionProject(`
export const gate = auth.beforeSignUp(async (event, ctx) => {
  const { wish } = await ctx.service.db('shared').wishes.get('now')
  const caller = ctx.auth?.id ?? null
  await ctx.service.db('shared').calls.insert({ event: JSON.stringify({ ...event, caller }) })
  if (wish === 'refuse') throw new HttpError(422, 'not-invited', 'Ask for an invitation', { plan: 'closed' })
  if (wish === 'throw') throw new TypeError('broken')
  if (wish === 'hang') await new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
  if (wish === 'exit') process.exit(1)
  if (wish === 'stream') return (function* () { yield 1 })()
  if (wish.startsWith('return ')) return JSON.parse(wish.slice(7))
})
`)
const signUps = await openSignUpPaths()
afterAll(async () => {
  project.remove()
  await signUps.close()
})

const text = { type: 'string' } as const
const config = {
  ...signUps.config,
  databases: {
    shared: {
      tables: { wishes: { schema: { wish: text }, access: open }, calls: { schema: { event: text }, access: open } },
    },
  },
}
const settings = { ...signUps.settings, projectFolder: project.folder }
const wishes = '/api/db/shared/tables/wishes'
const calls = '/api/db/shared/tables/calls'

const wishFor = (server: TestServer, wish: string) => server.service.post(`${wishes}?upsert=true`, { id: 'now', wish })
const callsOf = async (server: TestServer) =>
  (await server.dump(calls))[calls]?.items.map(({ event }) => JSON.parse(event as string)) ?? []
const usersOf = async (server: TestServer) => (await server.service.get(`${adminUsers}?limit=1000`)).body.users

async function keepOwner({ service }: TestServer): Promise<void> {
  const find = async () => (await service.get(`${adminUsers}?email=owner@example.com`)).body.users[0]
  if (await find()) return
  await service.post(adminUsers, { email: 'owner@example.com', password: 'a long password' })
  const path = `${adminUsers}/${(await find()).id}/dashboard-role`
  expect((await service.request('PUT', path, { body: { role: 'owner' } })).status).toBe(200)
}

describeServer('sign-ups', { config, settings }, (server) => {
  beforeEach(async () => {
    await wishFor(server, 'accept')
    await server.service.post(`${calls}/batch-by-filter`, { action: 'delete', filter: [['id', '!=', '']] })
    // The path of the set-up needs a server without an administrator, who can be deleted if there is another owner.
    await keepOwner(server)
    for (const { id, role } of await usersOf(server))
      if (role === 'admin') expect((await server.service.delete(`${adminUsers}/${id}`)).status).toBe(200)
  })

  for (const [name, path] of Object.entries(signUps.paths)) {
    test(`[FN-AUTH-1, FN-AUTH-2] ${name}: a refusal reaches the caller and stores nothing; later it succeeds`, async () => {
      const attempt = await path.prepare(server)
      const before = await usersOf(server)
      await wishFor(server, 'refuse')
      const called = (await callsOf(server)).length
      const refused = await attempt.run()
      expect(refused).toMatchObject({ isDone: false, message: 'Ask for an invitation', accessToken: null })
      if (path.hasSlug) expect(refused.slug).toBe('not-invited')
      if (refused.status !== null) expect(refused.status).toBe(422)
      expect(await usersOf(server)).toEqual(before)
      const [event, ...more] = (await callsOf(server)).slice(called)
      expect(more).toEqual([])
      expect(event).toMatchObject({ email: attempt.email, provider: path.provider })
      await wishFor(server, 'accept')
      expect((await accountOf(server, attempt, await attempt.run())).email).toBe(attempt.email)
    })

    test(`[FN-AUTH-3] ${name}: what the function returns is stored`, async () => {
      const attempt = await path.prepare(server)
      const data = { displayName: 'By hook', locale: 'de', metadata: { plan: 'free' }, appMetadata: { score: 1 } }
      await wishFor(server, `return ${JSON.stringify(data)}`)
      const user = await accountOf(server, attempt, await attempt.run())
      expect(user).toMatchObject({ ...data, isAnonymous: attempt.email === null })
    })

    test(`[FN-AUTH-4] ${name}: a function that fails refuses, without details`, async () => {
      const attempt = await path.prepare(server)
      const before = await usersOf(server)
      await wishFor(server, 'throw')
      const failed = await attempt.run()
      expect(failed).toMatchObject({ isDone: false, message: 'A hook of the application failed', accessToken: null })
      if (path.hasSlug) expect(failed.slug).toBe('hook-failed')
      if (failed.status !== null) expect(failed.status).toBe(500)
      expect(await usersOf(server)).toEqual(before)
      expect(server.logged()).toContain('TypeError: broken')
    })
  }

  test('[FN-AUTH-1] the event has the address, the provider and the data as they would be stored, and the caller', async () => {
    const { body } = await server.anonymous.post(`${auth}/signin/anonymous`, {})
    const email = newEmail()
    const data = { displayName: ' Ann ', avatarUrl: 'https://ann.example/a.png' }
    const input = { email: email.toUpperCase(), password, data, locale: 'en' }
    expect((await server.anonymous.post(`${auth}/signup`, input, bearer(body.accessToken))).status).toBe(201)
    const empty = { metadata: {}, appMetadata: {}, role: 'user' }
    const events = await callsOf(server)
    expect(events).toHaveLength(2)
    expect(events).toContainEqual({
      email: null,
      provider: 'anonymous',
      data: { displayName: null, avatarUrl: null, locale: null, ...empty },
      caller: null,
    })
    expect(events).toContainEqual({
      email,
      provider: 'password',
      data: { ...data, displayName: 'Ann', locale: 'en', ...empty },
      caller: body.user.id,
    })
  })

  test('[FN-AUTH-2] the refusal is the response, with its data', async () => {
    await wishFor(server, 'refuse')
    const { status, body } = await signUp(server)
    expect([status, body]).toEqual([
      422,
      { code: 422, slug: 'not-invited', message: 'Ask for an invitation', data: { plan: 'closed' } },
    ])
  })

  test('[FN-AUTH-5] a refused sign-up is the same for an address with an account and without one', async () => {
    const taken = newEmail()
    expect((await signUp(server, taken)).status).toBe(201)
    for (const wish of ['refuse', 'throw']) {
      await wishFor(server, wish)
      const [one, other] = [await signUp(server, taken), await signUp(server, newEmail())]
      expect([one.status, one.body]).toEqual([other.status, other.body])
    }
    await wishFor(server, 'accept')
    expectRefusal(await signUp(server, taken), 409)
  })

  test('[FN-AUTH-5] a request for a link or a code runs no function and answers alike', async () => {
    const taken = newEmail()
    await signUp(server, taken)
    const before = await callsOf(server)
    await wishFor(server, 'refuse')
    for (const path of ['magic-link', 'email-otp'])
      for (const email of [taken, newEmail()])
        expect((await server.anonymous.post(`${auth}/signin/${path}`, { email })).body).toEqual({ ok: true })
    expect(await callsOf(server)).toEqual(before)
  })

  test('[FN-AUTH-1] a sign-in to an existing account is no sign-up', async () => {
    const email = newEmail()
    await signUp(server, email)
    await wishFor(server, 'refuse')
    const { body } = await server.anonymous.post(`${auth}/signin`, { email, password })
    expect(body.user.email).toBe(email)
    expect((await server.anonymous.post(`${auth}/refresh`, { refreshToken: body.refreshToken })).status).toBe(200)
    expect(await callsOf(server)).toHaveLength(1)
  })

  test('[FN-AUTH-3] the function gives a role; fields that it does not return stay', async () => {
    await wishFor(server, 'return {"role":"member"}')
    const { body } = await signUp(server, newEmail(), { data: { displayName: 'Ann' } })
    expect(body.user).toMatchObject({ role: 'member', displayName: 'Ann' })
    const [, payload = ''] = body.accessToken.split('.')
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toMatchObject({ role: 'member' })
  })

  test('[FN-AUTH-3] the administrator of the set-up keeps the role, or nothing happens', async () => {
    const attempt = await signUps.paths['set-up']?.prepare(server)
    await wishFor(server, 'return {"role":"member"}')
    const before = await usersOf(server)
    expect(await attempt?.run()).toMatchObject({ isDone: false, status: 409 })
    expect(await usersOf(server)).toEqual(before)
    await wishFor(server, 'return {"displayName":"Root"}')
    expect((await attempt?.run())?.isDone).toBe(true)
  })

  for (const returned of [
    '{"id":"x"}',
    '{"email":"other@example.org"}',
    '{"role":""}',
    '{"role":null}',
    '{"displayName":"two\\nlines"}',
    '{"avatarUrl":"javascript:alert(1)"}',
    '{"metadata":[1]}',
    '{"metadata":{"__proto__":{"admin":true}}}',
    `{"metadata":${JSON.stringify({ text: 'x'.repeat(16 * 1024) })}}`,
    `{"metadata":{"deep":${'['.repeat(200)}${']'.repeat(200)}}}`,
    `{"metadata":{"text":"${'x'.repeat(200_000)}"}}`,
    '[]',
    '"text"',
    '1',
    'false',
  ])
    test(`[FN-AUTH-3] a sign-up fails where the function returns ${returned.slice(0, 60)}`, async () => {
      const before = await usersOf(server)
      await wishFor(server, `return ${returned}`)
      const refused = await signUp(server)
      expect(expectRefusal(refused, 500).slug).toBe('hook-failed')
      expect(await usersOf(server)).toEqual(before)
    })

  test('[FN-AUTH-6] of concurrent sign-ups of one address one succeeds, and of one link', async () => {
    const email = newEmail()
    const answers = await Promise.all(Array.from({ length: 4 }, () => signUp(server, email)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(3).fill(409)])
    const link = await signUps.paths.link?.prepare(server)
    const outcomes = await Promise.all(Array.from({ length: 4 }, () => link?.run()))
    expect(outcomes.filter((one) => one?.isDone)).toHaveLength(1)
    const users = await usersOf(server)
    for (const address of [email, link?.email])
      expect(users.filter((user: { email: string }) => user.email === address)).toHaveLength(1)
  })

  test('[FN-AUTH-1] an import runs it for each entry, and refuses each alone', async () => {
    const [first, second] = [newEmail(), newEmail()]
    await signUp(server, first)
    await wishFor(server, 'refuse')
    const { body } = await server.service.post(`${adminUsers}/import`, { users: [{ email: first }, { email: second }] })
    expect(body).toMatchObject({ imported: 0, skipped: 1, errors: 1 })
    expect(body.results[1]).toMatchObject({ email: second, status: 'error', error: 'Ask for an invitation' })
  })

  test('[FN-13] the list of functions has it', async () => {
    const { body } = await server.service.get('/api/functions')
    expect(body.items).toMatchObject([{ name: 'gate', kind: 'beforeSignUp', trigger: 'before a user signs up' }])
  })

  for (const [wish, status] of [
    ['hang', 500],
    ['stream', 500],
    ['exit', 503],
  ] as const)
    test(`[FN-AUTH-4] a sign-up is refused with ${status} where the function does "${wish}"`, async () => {
      const before = await usersOf(server)
      await wishFor(server, wish)
      const refused = await signUp(server)
      expectRefusal(refused, status)
      if (status === 503) expect(refused.headers.get('retry-after')).toBe('1')
      expect(await usersOf(server)).toEqual(before)
      await wishFor(server, 'accept')
      for (let status = 0; status !== 201; ) status = (await signUp(server)).status
    })
})
