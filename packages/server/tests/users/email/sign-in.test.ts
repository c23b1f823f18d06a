/** Signing in by email: links and codes, their validity and single use. */
import { afterAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { emailCodeLifetimeMs, magicLinkLifetimeMs, oneTimeCodeAttemptsMax } from '../../../src/limits/users.ts'
import type { Answer } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, startServer, type TestServer } from '../../harness/server.ts'
import { unlimitedRates } from '../../harness/users/accounts.ts'
import { mailAuth, page } from '../../harness/users/mail-config.ts'
import { openMailbox } from '../../harness/users/mailbox.ts'
import { signUp, signUpWithApp } from '../../harness/users/test-user.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
const config = { auth: mailAuth(mailbox), rateLimits: unlimitedRates }
const concurrentUses = 50

let unregisteredCount = 0
/** An address without an account. */
const unregistered = (): string => `unregistered${++unregisteredCount}@example.org`

const requestLink = (server: TestServer, email: string, more: object = {}): Promise<Answer> =>
  server.anonymous.post('/api/auth/signin/magic-link', { email, ...more })
const requestCode = (server: TestServer, email: string, more: object = {}): Promise<Answer> =>
  server.anonymous.post('/api/auth/signin/email-otp', { email, ...more })
const redeemLink = (server: TestServer, token: string): Promise<Answer> =>
  server.anonymous.post('/api/auth/verify-magic-link', { token })
const redeemCode = (server: TestServer, email: string, code: string): Promise<Answer> =>
  server.anonymous.post('/api/auth/verify-email-otp', { email, code })

async function linkToken(server: TestServer, email: string): Promise<string> {
  expect((await requestLink(server, email)).body).toEqual({ ok: true })
  return mailbox.nextToken(email)
}
async function mailedCode(server: TestServer, email: string): Promise<string> {
  expect((await requestCode(server, email)).body).toEqual({ ok: true })
  return mailbox.nextCode(email)
}
/** Another six-digit code. */
const wrongOf = (code: string, n = 1): string => String((Number(code) + n) % 1_000_000).padStart(6, '0')

const usersWith = async (server: TestServer, email: string): Promise<number> =>
  (await server.service.get('/api/auth/admin/users?limit=1000')).body.users.filter(
    (user: { email: string | null }) => user.email === email,
  ).length

describeServer('sign-in links', { config, clock }, (server) => {
  test('[MAIL-14] a link signs in to the account of its address', async () => {
    const person = await signUp(server)
    const token = await linkToken(server, person.email)
    const { status, body } = await redeemLink(server, token)
    expect(status).toBe(200)
    expect(Object.keys(body).sort()).toEqual(['accessToken', 'deviceToken', 'expiresIn', 'refreshToken', 'user'])
    expect(body.user).toMatchObject({ id: person.id, email: person.email, emailVerified: true })
  })

  test('[MAIL-22] links and codes are not logged when mails are sent', async () => {
    const email = unregistered()
    const token = await linkToken(server, email)
    const code = await mailedCode(server, email)
    await redeemLink(server, token)
    await redeemCode(server, email, wrongOf(code))
    await redeemCode(server, email, code)
    const lines = server.logged()
    expect(lines).toContain('/api/auth/verify-email-otp')
    expect(lines).not.toContain(token)
    expect(lines).not.toContain(`"${code}"`)
  })

  test('[MAIL-8] a link opens the configured page, whatever the headers of the request', async () => {
    const email = unregistered()
    const spoofed = { host: 'evil.example', 'x-forwarded-host': 'evil.example', origin: 'https://evil.example' }
    await server.anonymous.post('/api/auth/signin/magic-link', { email }, spoofed)
    const { text } = await mailbox.next(email)
    expect(text).toMatch(new RegExp(`^${page('magic')}\\?token=[\\w-]{43}$`, 'm'))
    expect(text).not.toContain('evil')
  })

  test('[MAIL-14] the first link to a new address creates a verified account, the next one signs in to it', async () => {
    const email = unregistered()
    await requestLink(server, email, { locale: 'de' })
    const token = await mailbox.nextToken(email)
    expect(await usersWith(server, email)).toBe(0)
    const { status, body } = await redeemLink(server, token)
    expect(status).toBe(200)
    expect(body.user).toMatchObject({ email, emailVerified: true, isAnonymous: false, role: 'user', locale: 'de' })
    const again = await redeemLink(server, await linkToken(server, email))
    expect(again.body.user.id).toBe(body.user.id)
    expect(await usersWith(server, email)).toBe(1)
  })

  test('[MAIL-14] two links redeemed concurrently create one account', async () => {
    const email = unregistered()
    const tokens = [await linkToken(server, email), await linkToken(server, email)]
    const answers = await Promise.all(tokens.map((token) => redeemLink(server, token)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(answers[0]?.body.user.id).toBe(answers[1]?.body.user.id)
    expect(await usersWith(server, email)).toBe(1)
  })

  test('[MAIL-13] of fifty concurrent uses of a link one succeeds', async () => {
    const email = unregistered()
    const token = await linkToken(server, email)
    const answers = await Promise.all(Array.from({ length: concurrentUses }, () => redeemLink(server, token)))
    const succeeded = answers.filter(({ status }) => status === 200)
    expect(succeeded).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 200) expectRefusal(answer, 401, 'Invalid token')
    const { accessToken } = succeeded[0]?.body ?? {}
    const { sessions } = (await server.anonymous.get('/api/auth/sessions', { authorization: `Bearer ${accessToken}` }))
      .body
    expect(sessions).toHaveLength(1)
  })

  test('[MAIL-13] a link works until it expires and not after', async () => {
    const [early, late] = [unregistered(), unregistered()]
    const tokens = [await linkToken(server, early), await linkToken(server, late)] as const
    await server.elapse(magicLinkLifetimeMs - 1)
    expect((await redeemLink(server, tokens[0])).status).toBe(200)
    await server.elapse(1)
    expectRefusal(await redeemLink(server, tokens[1]), 401, 'Invalid token')
    expect(await usersWith(server, late)).toBe(0)
  })

  test.each(['x', 'A'.repeat(43), '../../etc/passwd', "' OR 1=1 --", '\0'])(
    '[MAIL-13] a token that was never issued is 401: %j',
    async (token) => {
      expectRefusal(await redeemLink(server, token), 401, 'Invalid token')
    },
  )

  test('[MAIL-21] a link is valid only for signing in, and no other token is', async () => {
    const person = await signUp(server)
    const token = await linkToken(server, person.email)
    for (const path of ['verify-email', 'verify-email-change'])
      expectRefusal(await server.anonymous.post(`/api/auth/${path}`, { token }), 401, 'Invalid token')
    const reset = { token, newPassword: 'a new password' }
    expectRefusal(await server.anonymous.post('/api/auth/reset-password', reset), 401, 'Invalid token')
    expect((await person.signIn()).status).toBe(200)
    await server.anonymous.post('/api/auth/request-password-reset', { email: person.email })
    expectRefusal(await redeemLink(server, await mailbox.nextToken(person.email)), 401, 'Invalid token')
    expect((await redeemLink(server, token)).status).toBe(200)
  })

  test('[MAIL-16] a link to a disabled account is 403, and works once the account is enabled again', async () => {
    const person = await signUp(server)
    const before = await linkToken(server, person.email)
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: true })
    expectRefusal(await redeemLink(server, before), 401, 'Invalid token')
    const token = await linkToken(server, person.email)
    expectRefusal(await redeemLink(server, token), 403, 'Account is disabled')
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: false })
    expect((await redeemLink(server, token)).status).toBe(200)
  })

  test('[MAIL-16] a link does not replace the second factor', async () => {
    const person = await signUpWithApp(server, clock)
    // With an unverified address the link would remove the factor, which another person may have added.
    await person.client.post('/api/auth/request-email-verification', undefined)
    const verified = await mailbox.nextToken(person.email)
    await person.client.post('/api/auth/verify-email', { token: verified })
    const { status, body } = await redeemLink(server, await linkToken(server, person.email))
    expect(status).toBe(200)
    expect(body.mfaRequired).toBe(true)
    expect(body.accessToken).toBeUndefined()
    const { mfaTicket } = body
    const done = await server.anonymous.post('/api/auth/mfa/verify', { mfaTicket, code: person.code(1) })
    expect(done.body.user.id).toBe(person.id)
  })

  test('[MAIL-13] a link of a deleted account does not recreate it', async () => {
    const person = await signUp(server)
    const token = await linkToken(server, person.email)
    await server.service.delete(`/api/auth/admin/users/${person.id}`)
    expectRefusal(await redeemLink(server, token), 401, 'Invalid token')
    expect(await usersWith(server, person.email)).toBe(0)
  })
})

describeServer('sign-in codes', { config, clock }, (server) => {
  test('[MAIL-14, MAIL-15] a six-digit code signs in to an existing account or creates one', async () => {
    const person = await signUp(server)
    const code = await mailedCode(server, person.email)
    expect((await redeemCode(server, ` ${person.email.toUpperCase()} `, ` ${code} `)).body.user.id).toBe(person.id)
    const email = unregistered()
    const { status, body } = await redeemCode(server, email, await mailedCode(server, email))
    expect(status).toBe(200)
    expect(body.user).toMatchObject({ email, emailVerified: true })
  })

  test('[MAIL-13] of fifty concurrent uses of a code one succeeds', async () => {
    const email = unregistered()
    const code = await mailedCode(server, email)
    const answers = await Promise.all(Array.from({ length: concurrentUses }, () => redeemCode(server, email, code)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 200) expectRefusal(answer, 401, 'Invalid code')
    expect(await usersWith(server, email)).toBe(1)
  })

  test('[MAIL-15] a code survives four wrong attempts, and the fifth invalidates it', async () => {
    const [fourWrong, fiveWrong] = [unregistered(), unregistered()]
    const code = await mailedCode(server, fourWrong)
    for (let n = 1; n < oneTimeCodeAttemptsMax; n++)
      expectRefusal(await redeemCode(server, fourWrong, wrongOf(code, n)), 401, 'Invalid code')
    expect((await redeemCode(server, fourWrong, code)).status).toBe(200)
    const other = await mailedCode(server, fiveWrong)
    for (let n = 1; n <= oneTimeCodeAttemptsMax; n++)
      expectRefusal(await redeemCode(server, fiveWrong, wrongOf(other, n)), 401, 'Invalid code')
    expectRefusal(await redeemCode(server, fiveWrong, other), 401, 'Invalid code')
    expect(await usersWith(server, fiveWrong)).toBe(0)
  })

  test('[MAIL-15] concurrent wrong attempts invalidate a code as well', async () => {
    const email = unregistered()
    const code = await mailedCode(server, email)
    const answers = await Promise.all(
      Array.from({ length: concurrentUses }, (_, n) => redeemCode(server, email, wrongOf(code, n + 1))),
    )
    for (const answer of answers) expectRefusal(answer, 401, 'Invalid code')
    expectRefusal(await redeemCode(server, email, code), 401, 'Invalid code')
  })

  test('[MAIL-15] a code is valid only for its address, and a new one replaces it', async () => {
    const [one, other] = [unregistered(), unregistered()]
    const first = await mailedCode(server, one)
    await mailedCode(server, other)
    expectRefusal(await redeemCode(server, other, wrongOf(first, 0)), 401, 'Invalid code')
    let second = await mailedCode(server, one)
    // Two random codes are equal once in a million.
    while (second === first) second = await mailedCode(server, one)
    expectRefusal(await redeemCode(server, one, first), 401, 'Invalid code')
    expect((await redeemCode(server, one, second)).status).toBe(200)
  })

  test('[MAIL-15] an expired code is refused', async () => {
    const email = unregistered()
    const code = await mailedCode(server, email)
    await server.elapse(emailCodeLifetimeMs)
    expectRefusal(await redeemCode(server, email, code), 401, 'Invalid code')
  })

  test('[MAIL-16] a code of a disabled account is 403', async () => {
    const person = await signUp(server)
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: true })
    const code = await mailedCode(server, person.email)
    expectRefusal(await redeemCode(server, person.email, code), 403, 'Account is disabled')
  })

  test.each(['12345', '1234567', '12345a', '１２３４５６', '', '-12345', '1e5000'])(
    '[MAIL-15] a malformed code is 400: %j',
    async (code) => {
      expectRefusal(await redeemCode(server, unregistered(), code), 400, 'code')
    },
  )

  test.each(['', 'name', 'a@b', 'a b@example.org', 'a@example.org\r\nBcc: b@example.org', 'a@x.org,b@x.org'])(
    '[MAIL-10] a malformed address is 400: %j',
    async (email) => {
      for (const request of [requestLink, requestCode]) expectRefusal(await request(server, email), 400, 'email')
      expectRefusal(await redeemCode(server, email, '123456'), 400, 'email')
    },
  )
})

describe('with sign-up closed', () => {
  const closed = { auth: mailAuth(mailbox, { signup: false }), rateLimits: unlimitedRates }
  describeServer('links and codes', { config: closed, clock }, (server) => {
    test('[MAIL-14] are mailed only to addresses with an account', async () => {
      const [email, known] = [unregistered(), unregistered()]
      await server.service.post('/api/auth/admin/users', { email: known, password: 'a long password' })
      for (const request of [requestLink, requestCode])
        expect((await request(server, email)).body).toEqual({ ok: true })
      expect((await redeemLink(server, await linkToken(server, known))).status).toBe(200)
      expect((await redeemCode(server, known, await mailedCode(server, known))).status).toBe(200)
      // A stopping server sends all queued mails.
      await server.restart()
      expect(mailbox.received.filter(({ to }) => to.includes(email))).toEqual([])
      expect(await usersWith(server, email)).toBe(0)
    })
  })
})

test('[MAIL-14] a link mailed before sign-up was closed creates no account', async () => {
  const server = await startServer({ config, clock })
  try {
    const email = unregistered()
    const token = await linkToken(server, email)
    await server.reload({ ...config, auth: mailAuth(mailbox, { signup: false }) })
    expectRefusal(await redeemLink(server, token), 401, 'Invalid token')
    expect(await usersWith(server, email)).toBe(0)
  } finally {
    await server.close()
  }
})

test('[MAIL-11] mails are in the language of the account, otherwise of the request', async () => {
  const auth = mailAuth(mailbox)
  const german = { subject: 'Anmelden bei {{appName}}', text: 'Hier entlang, {{displayName}}: {{link}}' }
  const mail = { ...auth.mail, templates: { de: { 'magic-link': german } } }
  const server = await startServer({ config: { auth: { mail }, rateLimits: unlimitedRates }, clock })
  try {
    const email = unregistered()
    await requestLink(server, email, { locale: 'de-AT' })
    const first = await mailbox.next(email)
    expect(first.subject).toBe('Anmelden bei Atlas')
    // The account that this creates has the locale `de`.
    await redeemLink(server, /token=([\w-]{43})/.exec(first.text)?.[1] ?? '')
    await requestLink(server, email, { locale: 'fr' })
    expect((await mailbox.next(email)).subject).toBe('Anmelden bei Atlas')
    const other = unregistered()
    await requestLink(server, other, { locale: 'fr' })
    expect((await mailbox.next(other)).subject).toBe('Sign in to Atlas')
    expectRefusal(await requestLink(server, other, { locale: '../de' }), 400, 'locale')
  } finally {
    await server.close()
  }
})
