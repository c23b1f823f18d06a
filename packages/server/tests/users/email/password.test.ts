/** Password reset by mail, and the first verification of a mailbox. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { passwordResetLifetimeMs } from '../../../src/limits/users.ts'
import { type Answer, type Client, createClient } from '../../harness/client.ts'
import { engines } from '../../harness/engines.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { createServer, describeServer, type TestServer } from '../../harness/server.ts'
import { unlimitedRates } from '../../harness/users/accounts.ts'
import { mailAuth, page } from '../../harness/users/mail-config.ts'
import { openMailbox } from '../../harness/users/mailbox.ts'
import { signUp, signUpWithApp, type TestUser } from '../../harness/users/test-user.ts'
import { createUserRows, type UserRows, watchedEngine } from '../../harness/users/user-rows.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
const config = { auth: mailAuth(mailbox), rateLimits: unlimitedRates }
const newPassword = 'an entirely new password'
const concurrentUses = 50

const requestReset = (server: TestServer, email: string): Promise<Answer> =>
  server.anonymous.post('/api/auth/request-password-reset', { email })
const reset = (server: TestServer, token: string, password = newPassword): Promise<Answer> =>
  server.anonymous.post('/api/auth/reset-password', { token, newPassword: password })
const signIn = (server: TestServer, email: string, password: string): Promise<Answer> =>
  server.anonymous.post('/api/auth/signin', { email, password })

async function resetToken(server: TestServer, email: string): Promise<string> {
  expect((await requestReset(server, email)).body).toEqual({ ok: true })
  return mailbox.nextToken(email)
}
async function linkToken(server: TestServer, email: string): Promise<string> {
  expect((await server.anonymous.post('/api/auth/signin/magic-link', { email })).body).toEqual({ ok: true })
  return mailbox.nextToken(email)
}
const bearer = (server: TestServer, accessToken: string): Client =>
  createClient(() => server.url, { authorization: `Bearer ${accessToken}` })

async function verify(person: TestUser): Promise<void> {
  await person.client.post('/api/auth/request-email-verification', undefined)
  const token = await mailbox.nextToken(person.email)
  expect((await person.client.post('/api/auth/verify-email', { token })).status).toBe(200)
}

describeServer('password resets', { config, clock }, (server) => {
  let person: TestUser
  beforeEach(async () => {
    person = await signUp(server)
  })

  test('[MAIL-18] a reset sets the password, ends every session, verifies the address and mails a notice', async () => {
    const { refreshToken } = (await person.signIn()).body
    await requestReset(server, person.email)
    const { text } = await mailbox.next(person.email)
    const token = /token=([\w-]{43})$/m.exec(text)?.[1] ?? ''
    expect(text).toContain(`\n${page('reset?lang=en')}&token=${token}\n`)
    expect((await person.client.get('/api/auth/me')).status).toBe(200)

    expect((await reset(server, token)).body).toEqual({ ok: true })
    expect((await mailbox.next(person.email)).subject).toBe('Your password for Atlas was changed')
    expectRefusal(await person.signIn(), 401)
    expectRefusal(await person.client.get('/api/auth/me'), 401)
    expectRefusal(await server.anonymous.post('/api/auth/refresh', { refreshToken }), 401)
    const { body } = await signIn(server, person.email, newPassword)
    expect(body.user).toMatchObject({ id: person.id, emailVerified: true })
  })

  test('[MAIL-13] of fifty concurrent resets with one token one succeeds', async () => {
    const token = await resetToken(server, person.email)
    const answers = await Promise.all(
      Array.from({ length: concurrentUses }, (_, n) => reset(server, token, `password number ${n}`)),
    )
    const succeeded = answers.flatMap(({ status }, n) => (status === 200 ? [n] : []))
    expect(succeeded).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 200) expectRefusal(answer, 401, 'Invalid token')
    expect((await signIn(server, person.email, `password number ${succeeded[0]}`)).status).toBe(200)
  })

  test('[MAIL-18] a reset with an invalid password is 400, changes nothing and keeps the token valid', async () => {
    const token = await resetToken(server, person.email)
    for (const bad of ['short', 'x'.repeat(257), 'nul\0nul-nul'])
      expectRefusal(await reset(server, token, bad), 400, 'newPassword')
    expect((await person.signIn()).status).toBe(200)
    expect((await reset(server, token)).status).toBe(200)
  })

  test('[MAIL-18] a reset invalidates every link and code mailed before', async () => {
    await verify(person)
    const [first, second] = [await resetToken(server, person.email), await resetToken(server, person.email)]
    const link = await linkToken(server, person.email)
    await server.anonymous.post('/api/auth/signin/email-otp', { email: person.email })
    const code = await mailbox.nextCode(person.email)
    const newEmail = `moved-${person.email}`
    await person.client.post('/api/auth/change-email', { newEmail, password: person.password })
    const change = await mailbox.nextToken(newEmail)
    expect((await reset(server, second)).status).toBe(200)

    expectRefusal(await reset(server, first, 'yet another password'), 401, 'Invalid token')
    expectRefusal(await server.anonymous.post('/api/auth/verify-magic-link', { token: link }), 401)
    expectRefusal(await server.anonymous.post('/api/auth/verify-email-otp', { email: person.email, code }), 401)
    expectRefusal(await server.anonymous.post('/api/auth/verify-email-change', { token: change }), 401)
    expect((await signIn(server, person.email, newPassword)).body.user.email).toBe(person.email)
  })

  test('[MAIL-18] a reset keeps the second factor of a verified account', async () => {
    const owner = await signUpWithApp(server, clock)
    await verify(owner)
    await reset(server, await resetToken(server, owner.email))
    expect((await signIn(server, owner.email, newPassword)).body).toMatchObject({ mfaRequired: true })
  })

  test('[MAIL-18] a reset sets the first password of an account without one', async () => {
    const email = `no-password-${person.email}`
    const first = await server.anonymous.post('/api/auth/verify-magic-link', { token: await linkToken(server, email) })
    expect((await reset(server, await resetToken(server, email))).status).toBe(200)
    expect((await signIn(server, email, newPassword)).body.user.id).toBe(first.body.user.id)
  })

  test('[MAIL-13] an expired reset token is refused', async () => {
    const token = await resetToken(server, person.email)
    await server.elapse(passwordResetLifetimeMs)
    expectRefusal(await reset(server, token), 401, 'Invalid token')
    expect((await person.signIn()).status).toBe(200)
  })

  test('[MAIL-18] no mail is sent for a disabled or unknown account', async () => {
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: true })
    for (const email of [person.email, `unknown-${person.email}`])
      expect((await requestReset(server, email)).body).toEqual({ ok: true })
    const before = mailbox.received.length
    // A stopping server sends all queued mails.
    await server.restart()
    expect(mailbox.received.slice(before)).toEqual([])
  })

  test('[MAIL-18] disabling an account invalidates its reset tokens', async () => {
    const token = await resetToken(server, person.email)
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: true })
    expectRefusal(await reset(server, token), 401)
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: false })
    expect((await person.signIn()).status).toBe(200)
  })
})

for (const engine of engines)
  describe(`an account created with another person’s address on ${engine.name}`, () => {
    const watched = watchedEngine(engine)
    let server: TestServer
    let squatter: TestUser & { readonly refreshToken: string }
    let rows: UserRows

    beforeEach(async () => {
      server = createServer({ config, clock }, watched.engine)
      await server.open()
      rows = createUserRows(server.dataFolder, watched.storage)
      const owner = await signUpWithApp(server, clock)
      const { body } = await server.anonymous.post('/api/auth/mfa/verify', {
        mfaTicket: await owner.ticket(),
        code: owner.code(1),
      })
      squatter = { ...owner, refreshToken: body.refreshToken }
      const common = { user_id: owner.id, created_at: clock.now() }
      await rows.insert('_identities', { ...common, id: 'i', provider: 'google', subject: 's', email: null })
      const key = { name: 'key', public_key: 'x', counter: 0, transports: '[]', backed_up: 0, used_at: null }
      await rows.insert('_passkeys', { ...common, ...key, id: 'p' })
    })
    afterEach(() => server.close())

    /** The squatter's sign-in methods: identities, factors, recovery codes and passkeys. */
    const signInMethods = async (): Promise<readonly number[]> =>
      Promise.all(
        ['_identities', '_factors', '_recovery_codes', '_passkeys'].map((table) =>
          rows.count(table, 'user_id', squatter.id),
        ),
      )

    /** Each way to verify the mailbox; returns an access token of the owner. */
    const proofs: readonly (readonly [string, (email: string) => Promise<string | null>])[] = [
      [
        'a link',
        async (email) => {
          const token = await linkToken(server, email)
          return (await server.anonymous.post('/api/auth/verify-magic-link', { token })).body.accessToken
        },
      ],
      [
        'a code',
        async (email) => {
          await server.anonymous.post('/api/auth/signin/email-otp', { email })
          const code = await mailbox.nextCode(email)
          return (await server.anonymous.post('/api/auth/verify-email-otp', { email, code })).body.accessToken
        },
      ],
      [
        'a password reset',
        async (email) => {
          expect((await reset(server, await resetToken(server, email))).status).toBe(200)
          await mailbox.next(email)
          return (await signIn(server, email, newPassword)).body.accessToken
        },
      ],
      ['a verification link opened without a session', (email) => verifyThenSignIn(email, server.anonymous)],
      [
        'a verification link opened in the session of another account',
        async (email) => verifyThenSignIn(email, (await signUp(server)).client),
      ],
    ]
    async function verifyThenSignIn(email: string, browser: Client): Promise<string | null> {
      await squatter.client.post('/api/auth/request-email-verification', undefined)
      const token = await mailbox.nextToken(email)
      expect((await browser.post('/api/auth/verify-email', { token })).body).toEqual({ ok: true })
      const link = await linkToken(server, email)
      return (await server.anonymous.post('/api/auth/verify-magic-link', { token: link })).body.accessToken
    }
    for (const [name, verifyMailbox] of proofs)
      test(`[MAIL-17] verifying the mailbox by ${name} leaves only the owner of the address with access`, async () => {
        const { id, email, refreshToken } = squatter
        const newEmail = `squatter-${email}`
        await squatter.client.post('/api/auth/change-email', { newEmail, password: squatter.password })
        const pending = await mailbox.nextToken(newEmail)
        await mailbox.next(email)
        expect(await signInMethods()).toEqual([1, 1, 8, 1])

        const accessToken = await verifyMailbox(email)
        const me = await bearer(server, accessToken ?? '').get('/api/auth/me')
        expect(me.body.user).toMatchObject({ id, email, emailVerified: true })

        expect(await signInMethods()).toEqual([0, 0, 0, 0])
        expectRefusal(await squatter.signIn(), 401)
        expectRefusal(await squatter.client.get('/api/auth/me'), 401)
        expectRefusal(await server.anonymous.post('/api/auth/refresh', { refreshToken }), 401)
        expectRefusal(await server.anonymous.post('/api/auth/verify-email-change', { token: pending }), 401)
      })

    test('[MAIL-17] a sign-in link keeps all sign-in methods if the address was verified from a session before', async () => {
      await verify(squatter)
      const token = await linkToken(server, squatter.email)
      const { body } = await server.anonymous.post('/api/auth/verify-magic-link', { token })
      expect(body.mfaRequired).toBe(true)
      expect(await signInMethods()).toEqual([1, 1, 8, 1])
      expect((await squatter.signIn()).body).toMatchObject({ mfaRequired: true })
      expect((await squatter.client.get('/api/auth/me')).status).toBe(200)
    })

    test('[MAIL-19] a verification link opened in a session of the account keeps all sign-in methods and sessions', async () => {
      await verify(squatter)
      expect(await signInMethods()).toEqual([1, 1, 8, 1])
      const me = await squatter.client.get('/api/auth/me')
      expect(me.body.user).toMatchObject({ email: squatter.email, emailVerified: true })
      const { refreshToken } = squatter
      expect((await server.anonymous.post('/api/auth/refresh', { refreshToken })).status).toBe(200)
      expect((await squatter.signIn()).body).toMatchObject({ mfaRequired: true })
    })

    test('[MAIL-19] a second verification link, opened without a session, changes nothing once the address is verified', async () => {
      await squatter.client.post('/api/auth/request-email-verification', undefined)
      const late = await mailbox.nextToken(squatter.email)
      await verify(squatter)
      expect((await server.anonymous.post('/api/auth/verify-email', { token: late })).status).toBe(200)
      expect(await signInMethods()).toEqual([1, 1, 8, 1])
      expect((await squatter.client.get('/api/auth/me')).status).toBe(200)
    })

    for (const who of ['a service key', 'an ended session'] as const)
      test(`[MAIL-17] a verification link opened by ${who} removes all sign-in methods`, async () => {
        await squatter.client.post('/api/auth/request-email-verification', undefined)
        const token = await mailbox.nextToken(squatter.email)
        if (who === 'a service key') {
          expect((await server.service.post('/api/auth/verify-email', { token })).status).toBe(200)
        } else {
          await server.service.post(`/api/auth/admin/users/${squatter.id}/revoke`, undefined)
          expectRefusal(await squatter.client.post('/api/auth/verify-email', { token }), 401)
          expect(await signInMethods()).toEqual([1, 1, 8, 1])
          expect((await server.anonymous.post('/api/auth/verify-email', { token })).status).toBe(200)
        }
        expect(await signInMethods()).toEqual([0, 0, 0, 0])
        expectRefusal(await squatter.signIn(), 401)
        expectRefusal(await squatter.client.get('/api/auth/me'), 401)
      })

    test('[MAIL-17] a change of address confirmed without a session leaves only the owner of the new address with access', async () => {
      await verify(squatter)
      const { password, refreshToken } = squatter
      const owners = `owner-${squatter.email}`
      await squatter.client.post('/api/auth/change-email', { newEmail: owners, password })
      const token = await mailbox.nextToken(owners)
      expect((await server.anonymous.post('/api/auth/verify-email-change', { token })).status).toBe(200)
      expect(await signInMethods()).toEqual([0, 0, 0, 0])
      expectRefusal(await signIn(server, owners, password), 401)
      expectRefusal(await squatter.client.get('/api/auth/me'), 401)
      expectRefusal(await server.anonymous.post('/api/auth/refresh', { refreshToken }), 401)
      const link = await linkToken(server, owners)
      const { body } = await server.anonymous.post('/api/auth/verify-magic-link', { token: link })
      expect(body.user).toMatchObject({ id: squatter.id, email: owners, emailVerified: true })
    })

    test('[MAIL-20] a change of address confirmed in a session of the account keeps all sign-in methods', async () => {
      const newEmail = `moved-${squatter.email}`
      await squatter.client.post('/api/auth/change-email', { newEmail, password: squatter.password })
      const token = await mailbox.nextToken(newEmail)
      expect((await squatter.client.post('/api/auth/verify-email-change', { token })).status).toBe(200)
      expect(await signInMethods()).toEqual([1, 1, 8, 1])
      expect((await squatter.client.get('/api/auth/me')).status).toBe(200)
    })

    test('[MAIL-17] a refused sign-in link keeps all sign-in methods', async () => {
      await server.service.patch(`/api/auth/admin/users/${squatter.id}`, { disabled: true })
      const token = await linkToken(server, squatter.email)
      expectRefusal(await server.anonymous.post('/api/auth/verify-magic-link', { token }), 403, 'Account is disabled')
      expect(await signInMethods()).toEqual([1, 1, 8, 1])
    })
  })
