/** Changing passwords, imported hashes, and rate limits of sign-in and sign-up. */
import { describe, expect, test } from 'bun:test'
import { pbkdf2Sync } from 'node:crypto'
import { manualClock } from '../../../src/base/clock.ts'
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

describeServer('change of the password', { config }, (server) => {
  const change = (token: string, currentPassword: string, newPassword: string) =>
    server.anonymous.post(`${auth}/change-password`, { currentPassword, newPassword }, bearer(token))

  test('[USER-12] changing the password ends every session and starts a new one', async () => {
    const email = newEmail()
    const { body: first } = await signUp(server, email)
    const { body: second } = await signIn(server, email)
    const { status, body } = await change(second.accessToken, password, 'a better password')
    expect(status).toBe(200)
    expect(body.user.id).toBe(first.user.id)
    expect((await server.anonymous.get(`${auth}/me`, bearer(body.accessToken))).status).toBe(200)
    for (const { accessToken, refreshToken } of [first, second]) {
      expectRefusal(await server.anonymous.get(`${auth}/me`, bearer(accessToken)), 401)
      expectRefusal(await server.anonymous.post(`${auth}/refresh`, { refreshToken }), 401)
    }
    expectRefusal(await signIn(server, email), 401)
    expect((await signIn(server, email, 'a better password')).status).toBe(200)
  })

  test('[USER-12] a wrong current or an invalid new password changes nothing', async () => {
    const email = newEmail()
    const { body } = await signUp(server, email)
    expectRefusal(await change(body.accessToken, 'another password', 'a better password'), 401)
    expect(codesOf(expectRefusal(await change(body.accessToken, password, 'short'), 400).data)).toEqual({
      newPassword: 'min',
    })
    expect((await server.anonymous.get(`${auth}/me`, bearer(body.accessToken))).status).toBe(200)
    expect((await signIn(server, email)).status).toBe(200)
  })

  test('[USER-12] of 20 concurrent changes one succeeds', async () => {
    const email = newEmail()
    const { body } = await signUp(server, email)
    const answers = await Promise.all(times(20, (n) => change(body.accessToken, password, `password number ${n}`)))
    const succeeded = answers.flatMap(({ status }, n) => (status === 200 ? [n] : []))
    expect(succeeded).toHaveLength(1)
    expect((await signIn(server, email, `password number ${succeeded[0]}`)).status).toBe(200)
    expectRefusal(await signIn(server, email), 401)
  })
})

describe('imported hashes', () => {
  describeServer('sign-in', { config }, (server) => {
    test('[USER-15, USER-5] an imported hash signs in and is then replaced', async () => {
      const long = `${'x'.repeat(72)} and more than the 72 bytes of bcrypt`
      const cases = [
        { secret: password, hash: await Bun.password.hash(password, { algorithm: 'bcrypt', cost: 4 }) },
        { secret: long, hash: await Bun.password.hash(long.slice(0, 72), { algorithm: 'bcrypt', cost: 4 }) },
        { secret: password, hash: pbkdf2Of(password, 1000) },
      ]
      for (const { secret, hash } of cases) {
        const email = newEmail()
        const { body } = await server.service.post(`${admin}/import`, { users: [{ email, passwordHash: hash }] })
        expect(body).toMatchObject({ imported: 1, errors: 0 })
        expectRefusal(await signIn(server, email, 'another password'), 401)
        expect((await signIn(server, email, secret)).status).toBe(200)
        // bcrypt ignores everything after 72 bytes; argon2id does not.
        if (secret === long) expectRefusal(await signIn(server, email, long.slice(0, 72)), 401)
        expect((await signIn(server, email, secret)).status).toBe(200)
      }
    })
  })
})

function pbkdf2Of(secret: string, iterations: number): string {
  const salt = crypto.getRandomValues(Buffer.alloc(16))
  const hash = pbkdf2Sync(secret, salt, iterations, 32, 'sha256')
  return `pbkdf2:sha256:${iterations}:${salt.toString('base64')}:${hash.toString('base64')}`
}

const clock = manualClock()
const narrow = { ...config, rateLimits: { db: config.rateLimits.db, auth: config.rateLimits.auth } }
describeServer('rate limits', { config: narrow, mode: 'release', clock }, (server) => {
  test('[USER-6] an address can be tried ten times a minute over all its spellings', async () => {
    const email = newEmail()
    await signUp(server, email)
    const spellings = [email, email.toUpperCase(), ` ${email}`]
    for (const n of times(10, (i) => i))
      expectRefusal(await signIn(server, spellings[n % 3] as string, 'another password'), 401)
    const refused = await signIn(server, email)
    expectRefusal(refused, 429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await server.service.post(`${auth}/signin`, { email, password })).status).toBe(200)
    expectRefusal(await signIn(server, newEmail()), 401)
    await server.elapse(60_000)
    expect((await signIn(server, email)).status).toBe(200)
  })

  test('[USER-6] an IP address can sign up ten times a minute', async () => {
    await server.elapse(60_000)
    for (const _ of times(10, () => 0)) expect((await signUp(server)).status).toBe(201)
    const before = await countUsers(server)
    expectRefusal(await signUp(server), 429)
    expectRefusal(await server.anonymous.post(`${auth}/signin/anonymous`, undefined), 429)
    expect(await countUsers(server)).toBe(before)
    expect((await server.service.post(`${auth}/signup`, { email: newEmail(), password })).status).toBe(201)
  })
})

const closed = { ...config, auth: { signup: false, anonymous: false, passwordMinLength: 12 } }
describeServer('restricted sign-up', { config: closed }, (server) => {
  test('[USER-8] sign-up and anonymous sign-in are 403 if disabled', async () => {
    expectRefusal(await signUp(server), 403)
    expectRefusal(await server.anonymous.post(`${auth}/signin/anonymous`, undefined), 403)
    expect(await countUsers(server)).toBe(0)
    expect((await server.anonymous.get('/api/config')).body.auth).toMatchObject({ signup: false, anonymous: false })
  })

  test('[USER-3] the minimum password length is configurable', async () => {
    const create = (secret: string) => server.service.post(admin, { email: newEmail(), password: secret })
    expect(codesOf(expectRefusal(await create('eleven char'), 400).data)).toEqual({ password: 'min' })
    expect((await create('twelve chars')).status).toBe(201)
  })
})
