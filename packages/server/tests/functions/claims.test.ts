/** `auth.claims`: in every token, over HTTP, on every engine. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { customClaimsBytesMax, refreshGraceMs } from '../../src/limits/users.ts'
import { open } from '../harness/config.ts'
import { openFunctionProject } from '../harness/functions.ts'
import { changesIn, watch } from '../harness/records/live.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, type TestServer } from '../harness/server.ts'
import { adminUsers, auth, bearer, newEmail, password, signIn, signUp } from '../harness/users/accounts.ts'
import { createAuthenticator } from '../harness/users/authenticator.ts'
import { openSignUpPaths } from '../harness/users/sign-up-paths.ts'
import { signUpWithApp } from '../harness/users/test-user.ts'

/** The wish, a record, says what the function does. */
const code = `
export const claims = auth.claims(async (user, ctx) => {
  const { wish } = await ctx.service.db('shared').wishes.get('now')
  if (wish === 'refuse') throw new HttpError(403, 'plan-expired', 'Renew the plan')
  if (wish === 'throw') throw new TypeError('broken')
  if (wish === 'hang') await new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
  if (wish === 'nothing') return
  if (wish === 'user') return { user, caller: ctx.auth, hasDb: 'db' in ctx }
  return JSON.parse(wish)
})
`
const project = openFunctionProject(code)
const signUps = await openSignUpPaths()
afterAll(async () => {
  project.remove()
  await signUps.close()
})

const text = { type: 'string' } as const
type Auth = { custom: { team?: string } } | null
const config = {
  ...signUps.config,
  databases: {
    shared: {
      tables: {
        wishes: { schema: { wish: text }, access: open },
        teams: {
          schema: { team: text },
          access: {
            insert: true,
            read: (caller: Auth) => caller?.custom.team !== undefined && { team: caller.custom.team },
          },
        },
      },
    },
  },
  storage: {
    buckets: { notes: { access: { write: true, read: (caller: Auth) => caller?.custom.team === 'red' } } },
  },
}
const clock = manualClock(Date.now())
const settings = { ...signUps.settings, projectFolder: project.folder }
const wishes = '/api/db/shared/tables/wishes'
const teams = '/api/db/shared/tables/teams'

const wishFor = (server: TestServer, wish: string | object) =>
  server.service.post(`${wishes}?upsert=true`, {
    id: 'now',
    wish: typeof wish === 'string' ? wish : JSON.stringify(wish),
  })
const refresh = (server: TestServer, refreshToken: string) => server.anonymous.post(`${auth}/refresh`, { refreshToken })
const setClaims = (server: TestServer, id: string, custom: object) =>
  server.service.request('PUT', `${adminUsers}/${id}/claims`, { body: custom })
const usersOf = async (server: TestServer) => (await server.service.get(`${adminUsers}?limit=1000`)).body.users

const payloadOf = (accessToken: string | null) =>
  JSON.parse(Buffer.from(accessToken?.split('.')[1] ?? '', 'base64url').toString())
const customOf = (accessToken: string | null) => payloadOf(accessToken).custom

describeServer('claims', { config, settings, clock }, (server) => {
  beforeEach(async () => {
    await wishFor(server, { team: 'red' })
    for (const { id, role } of await usersOf(server))
      if (role === 'admin') await server.service.delete(`${adminUsers}/${id}`)
  })

  for (const [name, path] of Object.entries(signUps.paths))
    if (path.signsIn)
      test(`[FN-AUTH-7, FN-AUTH-9] ${name}: the first token has the claims; without them nothing happens`, async () => {
        const attempt = await path.prepare(server)
        const before = await usersOf(server)
        await wishFor(server, 'throw')
        expect(await attempt.run()).toMatchObject({ isDone: false, message: 'A hook of the application failed' })
        expect(await usersOf(server)).toEqual(before)
        await wishFor(server, { team: 'red' })
        expect(customOf((await attempt.run()).accessToken)).toEqual({ team: 'red' })
      })

  test('[FN-AUTH-7] every sign-in and refresh computes them again', async () => {
    const person = await signUpWithApp(server, clock)
    const signedUp = await signUp(server)
    const { email } = signedUp.body.user
    const custom = async (answer: Promise<{ body: Record<string, string> }>) =>
      customOf((await answer).body.accessToken ?? null)
    await wishFor(server, { n: 1 })
    expect(await custom(signIn(server, email))).toEqual({ n: 1 })
    await wishFor(server, { n: 2 })
    expect(await custom(refresh(server, signedUp.body.refreshToken))).toEqual({ n: 2 })
    await wishFor(server, { n: 3 })
    const change = { currentPassword: password, newPassword: 'another good password' }
    expect(
      await custom(server.anonymous.post(`${auth}/change-password`, change, bearer(signedUp.body.accessToken))),
    ).toEqual({ n: 3 })
    await wishFor(server, { n: 4 })
    const mfaTicket = await person.ticket()
    await server.elapse(30_000)
    expect(await custom(server.anonymous.post(`${auth}/mfa/verify`, { mfaTicket, code: person.code() }))).toEqual({
      n: 4,
    })
    await wishFor(server, { n: 5 })
    const key = createAuthenticator({ origin: 'http://localhost:5173' })
    const fresh = (await signUp(server)).body
    const headers = bearer(fresh.accessToken)
    const creation = (await server.anonymous.post(`${auth}/passkeys/register-options`, undefined, headers)).body.options
    await server.anonymous.post(`${auth}/passkeys/register`, { response: key.register(creation) }, headers)
    const request = (await server.anonymous.post(`${auth}/passkeys/auth-options`, {})).body.options
    expect(
      await custom(server.anonymous.post(`${auth}/passkeys/authenticate`, { response: key.authenticate(request) })),
    ).toEqual({ n: 5 })
    await wishFor(server, { n: 6 })
    const reset = newEmail()
    await signUp(server, reset)
    await server.anonymous.post(`${auth}/signin/magic-link`, { email: reset })
    const token = await signUps.mailbox.nextToken(reset)
    expect(await custom(server.anonymous.post(`${auth}/verify-magic-link`, { token }))).toEqual({ n: 6 })
  })

  test('[FN-AUTH-7] the function gets the user as service keys see it, and acts for nobody', async () => {
    await wishFor(server, 'user')
    const { body } = await signUp(server, newEmail(), { data: { displayName: 'Ann' } })
    const { user, caller, hasDb } = customOf(body.accessToken)
    const { updatedAt, ...known } = (await server.service.get(`${adminUsers}/${body.user.id}`)).body
    expect(user).toEqual({ ...known, updatedAt: expect.any(String) })
    expect([caller, hasDb]).toEqual([null, false])
    expect(JSON.stringify(user)).not.toMatch(/hash|password/i)
  })

  test('[FN-AUTH-8] they are added to the claims of an administrator, and win over them', async () => {
    const { body } = await signUp(server)
    await setClaims(server, body.user.id, { team: 'blue', seat: 7 })
    const { accessToken, refreshToken } = (await refresh(server, body.refreshToken)).body
    expect(customOf(accessToken)).toEqual({ team: 'red', seat: 7 })
    expect((await server.service.get(`${adminUsers}/${body.user.id}`)).body.customClaims).toEqual({
      team: 'blue',
      seat: 7,
    })
    await wishFor(server, {})
    expect(customOf((await refresh(server, refreshToken)).body.accessToken)).toEqual({ team: 'blue', seat: 7 })
  })

  test('[FN-AUTH-7] rules see them; a token keeps its own until it is refreshed', async () => {
    for (const team of ['red', 'blue']) await server.service.post(teams, { team })
    const seen = async (accessToken: string) => {
      const { items } = (await server.anonymous.get(teams, bearer(accessToken))).body
      return [...new Set(items.map(({ team }: { team: string }) => team))]
    }
    const { body } = await signUp(server)
    expect(await seen(body.accessToken)).toEqual(['red'])
    await wishFor(server, { team: 'blue' })
    const { accessToken } = (await refresh(server, body.refreshToken)).body
    expect(await seen(accessToken)).toEqual(['blue'])
    expect(await seen(body.accessToken)).toEqual(['red'])
  })

  test('[FN-AUTH-10] open sockets follow the newest claims, of the function and of an administrator', async () => {
    const { body } = await signUp(server)
    const socket = await watch(server.url, { channel: 'dblive:shared:teams', token: body.accessToken })
    /** Inserts one that the caller must not see, then one that the caller sees. */
    const expectTeam = async (team: string) => {
      for (const one of [`not ${team}`, team]) await server.service.post(teams, { team: one })
      const [change] = changesIn([await socket.next()])
      expect(change?.data.team).toBe(team)
    }
    await expectTeam('red')
    await wishFor(server, { team: 'green' })
    const refreshed = (await refresh(server, body.refreshToken)).body
    await socket.expect('auth_refreshed')
    await expectTeam('green')
    // That of the function stays in force.
    await setClaims(server, body.user.id, { team: 'yellow' })
    await expectTeam('green')
    await wishFor(server, {})
    await refresh(server, refreshed.refreshToken)
    await socket.expect('auth_refreshed')
    await expectTeam('yellow')
    await setClaims(server, body.user.id, { team: 'white' })
    await socket.expect('auth_refreshed')
    await expectTeam('white')
    await socket.close()
  })

  test('[FN-AUTH-10] a signed URL has the newest claims of its user', async () => {
    const { body } = await signUp(server)
    const headers = bearer(body.accessToken)
    const form = new FormData()
    form.set('key', 'a.txt')
    form.set('file', new Blob(['text'], { type: 'text/plain' }), 'a.txt')
    const stored = await fetch(`${server.url}/api/storage/notes/upload`, {
      method: 'POST',
      headers: { 'x-platform-service-key': server.settings().serviceKey },
      body: form,
    })
    expect(stored.status).toBe(201)
    const { url } = (await server.anonymous.post('/api/storage/notes/signed-url', { key: 'a.txt' }, headers)).body
    const { pathname, search } = new URL(url)
    const download = () => fetch(new URL(pathname + search, server.url))
    expect((await download()).status).toBe(200)
    await server.anonymous.post(`${auth}/signout`, { refreshToken: body.refreshToken })
    expect((await download()).status).toBe(200)
    await wishFor(server, { team: 'blue' })
    await signIn(server, body.user.email)
    expect((await download()).status).not.toBe(200)
  })

  for (const [wish, status, slug] of [
    ['throw', 500, 'hook-failed'],
    ['hang', 500, 'hook-failed'],
    ['nothing', 500, 'hook-failed'],
    ['null', 500, 'hook-failed'],
    ['[]', 500, 'hook-failed'],
    ['"text"', 500, 'hook-failed'],
    ['{"sub":"x"}', 500, 'hook-failed'],
    ['{"role":"admin"}', 500, 'hook-failed'],
    ['{"exp":1}', 500, 'hook-failed'],
    ['{"a":{"__proto__":{"b":1}}}', 500, 'hook-failed'],
    [`{"a":${'['.repeat(200)}${']'.repeat(200)}}`, 500, 'hook-failed'],
    [`{"a":"${'x'.repeat(customClaimsBytesMax)}"}`, 500, 'hook-failed'],
    [`{"a":"${'é'.repeat(customClaimsBytesMax / 2)}"}`, 500, 'hook-failed'],
    ['refuse', 403, 'plan-expired'],
  ] as const)
    test(`[FN-AUTH-9] a sign-in and a refresh are refused with ${status} for ${wish.slice(0, 40)}, and change nothing`, async () => {
      const { body } = await signUp(server)
      const sessions = async () =>
        (await server.anonymous.get(`${auth}/sessions`, bearer(body.accessToken))).body.sessions
      const before = await sessions()
      await wishFor(server, wish)
      expect(expectRefusal(await signIn(server, body.user.email), status).slug).toBe(slug)
      expect(expectRefusal(await refresh(server, body.refreshToken), status).slug).toBe(slug)
      expect(await sessions()).toEqual(before)
      await wishFor(server, { team: 'red' })
      expect((await refresh(server, body.refreshToken)).status).toBe(200)
    })

  test('[FN-AUTH-9] both kinds of claims together have at most 4 KiB', async () => {
    const { body } = await signUp(server)
    await setClaims(server, body.user.id, { seat: 'x'.repeat(customClaimsBytesMax - 100) })
    await wishFor(server, { team: 'y'.repeat(100) })
    expectRefusal(await refresh(server, body.refreshToken), 500)
    expect(server.logged()).toContain('the claims of the user and those that it returned')
    await wishFor(server, { team: 'y' })
    expect((await refresh(server, body.refreshToken)).status).toBe(200)
  })

  test('[FN-AUTH-9] a refused refresh does not use its token up, however long that lasts', async () => {
    const { body } = await signUp(server)
    await wishFor(server, 'throw')
    for (let time = 0; time < 3; time++) {
      expectRefusal(await refresh(server, body.refreshToken), 500)
      await server.elapse(2 * refreshGraceMs)
    }
    await wishFor(server, { team: 'red' })
    expect((await refresh(server, body.refreshToken)).status).toBe(200)
  })

  test('[FN-AUTH-7] concurrent refreshes with one token get the same session, with the claims', async () => {
    const { body } = await signUp(server)
    await wishFor(server, { team: 'blue' })
    const answers = await Promise.all(Array.from({ length: 4 }, () => refresh(server, body.refreshToken)))
    expect(new Set(answers.map((answer) => answer.body.refreshToken)).size).toBe(1)
    for (const answer of answers) expect(customOf(answer.body.accessToken)).toEqual({ team: 'blue' })
  })

  test('[FN-AUTH-11] without the function tokens have the claims of the administrator alone', async () => {
    const { body } = await signUp(server)
    await setClaims(server, body.user.id, { seat: 7 })
    project.write('')
    await server.reloadFunctions()
    expect(customOf((await refresh(server, body.refreshToken)).body.accessToken)).toEqual({ seat: 7 })
    expect((await signUp(server)).status).toBe(201)
    project.write(code)
    await server.reloadFunctions()
  })

  test('[FN-AUTH-9] a token that is reused after its time ends the session, with the function as without it', async () => {
    const { body } = await signUp(server)
    const second = (await refresh(server, body.refreshToken)).body
    await server.elapse(2 * refreshGraceMs)
    expectRefusal(await refresh(server, body.refreshToken), 401)
    expectRefusal(await refresh(server, second.refreshToken), 401)
  })
})
