/** Signing in by mail: links and codes, their validity and single use. */
import { afterAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { emailCodeLifetimeMs, magicLinkLifetimeMs, oneTimeCodeAttemptsMax } from '../../../src/limits/users.ts'
import type { Answer } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, startServer, type TestServer } from '../../harness/server.ts'
import { unlimitedRates } from '../../harness/users/accounts.ts'
import { mailAuth, page } from '../../harness/users/mail-config.ts'
import { openMailbox } from '../../harness/users/mailbox.ts'
import { signUp, signUpWithApp } from '../../harness/users/person.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
const config = { auth: mailAuth(mailbox), rateLimits: unlimitedRates }
const racers = 50

let strangers = 0
/** An address without an account. */
const stranger = (): string => `stranger${++strangers}@example.org`

const askLink = (server: TestServer, email: string, more: object = {}): Promise<Answer> =>
  server.anonymous.post('/api/auth/signin/magic-link', { email, ...more })
const askCode = (server: TestServer, email: string, more: object = {}): Promise<Answer> =>
  server.anonymous.post('/api/auth/signin/email-otp', { email, ...more })
const useLink = (server: TestServer, token: string): Promise<Answer> =>
  server.anonymous.post('/api/auth/verify-magic-link', { token })
const useCode = (server: TestServer, email: string, code: string): Promise<Answer> =>
  server.anonymous.post('/api/auth/verify-email-otp', { email, code })

async function linkToken(server: TestServer, email: string): Promise<string> {
  expect((await askLink(server, email)).body).toEqual({ ok: true })
  return mailbox.nextToken(email)
}
async function mailedCode(server: TestServer, email: string): Promise<string> {
  expect((await askCode(server, email)).body).toEqual({ ok: true })
  return mailbox.nextCode(email)
}
/** Six digits that are not these. */
const wrongOf = (code: string, n = 1): string => String((Number(code) + n) % 1_000_000).padStart(6, '0')

const usersWith = async (server: TestServer, email: string): Promise<number> =>
  (await server.service.get('/api/auth/admin/users?limit=1000')).body.users.filter(
    (user: { email: string | null }) => user.email === email,
  ).length

describeServer('a link', { config, clock }, (server) => {
  test('[MAIL-14] signs in whoever holds the mailbox of an account', async () => {
    const person = await signUp(server)
    const token = await linkToken(server, person.email)
    const { status, body } = await useLink(server, token)
    expect(status).toBe(200)
    expect(Object.keys(body).sort()).toEqual(['accessToken', 'deviceToken', 'refreshToken', 'user'])
    expect(body.user).toMatchObject({ id: person.id, email: person.email, emailVerified: true })
  })

  test('[MAIL-22] and a code are in no log where mails are sent', async () => {
    const email = stranger()
    const token = await linkToken(server, email)
    const code = await mailedCode(server, email)
    await useLink(server, token)
    await useCode(server, email, wrongOf(code))
    await useCode(server, email, code)
    const lines = server.logged()
    expect(lines).toContain('/api/auth/verify-email-otp')
    expect(lines).not.toContain(token)
    expect(lines).not.toContain(`"${code}"`)
  })

  test('[MAIL-8] leads to the configured page, whatever the request says the server is called', async () => {
    const email = stranger()
    const spoofed = { host: 'evil.example', 'x-forwarded-host': 'evil.example', origin: 'https://evil.example' }
    await server.anonymous.post('/api/auth/signin/magic-link', { email }, spoofed)
    const { text } = await mailbox.next(email)
    expect(text).toMatch(new RegExp(`^${page('magic')}\\?token=[\\w-]{43}$`, 'm'))
    expect(text).not.toContain('evil')
  })

  test('[MAIL-14] makes an account for whoever has none, verified, once', async () => {
    const email = stranger()
    await askLink(server, email, { locale: 'de' })
    const token = await mailbox.nextToken(email)
    expect(await usersWith(server, email)).toBe(0)
    const { status, body } = await useLink(server, token)
    expect(status).toBe(200)
    expect(body.user).toMatchObject({ email, emailVerified: true, isAnonymous: false, role: 'user', locale: 'de' })
    const again = await useLink(server, await linkToken(server, email))
    expect(again.body.user.id).toBe(body.user.id)
    expect(await usersWith(server, email)).toBe(1)
  })

  test('[MAIL-14] two links at once make one account', async () => {
    const email = stranger()
    const tokens = [await linkToken(server, email), await linkToken(server, email)]
    const answers = await Promise.all(tokens.map((token) => useLink(server, token)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(answers[0]?.body.user.id).toBe(answers[1]?.body.user.id)
    expect(await usersWith(server, email)).toBe(1)
  })

  test('[MAIL-13] followed fifty times at once works once', async () => {
    const email = stranger()
    const token = await linkToken(server, email)
    const answers = await Promise.all(Array.from({ length: racers }, () => useLink(server, token)))
    const winners = answers.filter(({ status }) => status === 200)
    expect(winners).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 200) expectRefusal(answer, 401, 'Invalid token')
    const { accessToken } = winners[0]?.body ?? {}
    const { sessions } = (await server.anonymous.get('/api/auth/sessions', { authorization: `Bearer ${accessToken}` }))
      .body
    expect(sessions).toHaveLength(1)
  })

  test('[MAIL-13] works up to its end and not after', async () => {
    const [early, late] = [stranger(), stranger()]
    const tokens = [await linkToken(server, early), await linkToken(server, late)] as const
    await server.elapse(magicLinkLifetimeMs - 1)
    expect((await useLink(server, tokens[0])).status).toBe(200)
    await server.elapse(1)
    expectRefusal(await useLink(server, tokens[1]), 401, 'Invalid token')
    expect(await usersWith(server, late)).toBe(0)
  })

  test.each(['x', 'A'.repeat(43), '../../etc/passwd', "' OR 1=1 --", '\0'])(
    '[MAIL-13] a token that was never issued is 401: %j',
    async (token) => {
      expectRefusal(await useLink(server, token), 401, 'Invalid token')
    },
  )

  test('[MAIL-21] is good for nothing else, nor anything else for it', async () => {
    const person = await signUp(server)
    const token = await linkToken(server, person.email)
    for (const path of ['verify-email', 'verify-email-change'])
      expectRefusal(await server.anonymous.post(`/api/auth/${path}`, { token }), 401, 'Invalid token')
    const reset = { token, newPassword: 'a new password' }
    expectRefusal(await server.anonymous.post('/api/auth/reset-password', reset), 401, 'Invalid token')
    expect((await person.signIn()).status).toBe(200)
    await server.anonymous.post('/api/auth/request-password-reset', { email: person.email })
    expectRefusal(await useLink(server, await mailbox.nextToken(person.email)), 401, 'Invalid token')
    expect((await useLink(server, token)).status).toBe(200)
  })

  test('[MAIL-16] to a disabled account is 403, and lets in once it is enabled again', async () => {
    const person = await signUp(server)
    const before = await linkToken(server, person.email)
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: true })
    expectRefusal(await useLink(server, before), 401, 'Invalid token')
    const token = await linkToken(server, person.email)
    expectRefusal(await useLink(server, token), 403, 'Account is disabled')
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: false })
    expect((await useLink(server, token)).status).toBe(200)
  })

  test('[MAIL-16] does not replace the second factor', async () => {
    const person = await signUpWithApp(server, clock)
    // The address must be theirs already, or the factor could be somebody else's.
    await person.client.post('/api/auth/request-email-verification', undefined)
    const verified = await mailbox.nextToken(person.email)
    await person.client.post('/api/auth/verify-email', { token: verified })
    const { status, body } = await useLink(server, await linkToken(server, person.email))
    expect([status, body.mfaRequired, body.accessToken]).toEqual([200, true, undefined])
    const { mfaTicket } = body
    const done = await server.anonymous.post('/api/auth/mfa/verify', { mfaTicket, code: person.code(1) })
    expect(done.body.user.id).toBe(person.id)
  })

  test('[MAIL-13] of a deleted user brings nobody back', async () => {
    const person = await signUp(server)
    const token = await linkToken(server, person.email)
    await server.service.delete(`/api/auth/admin/users/${person.id}`)
    expectRefusal(await useLink(server, token), 401, 'Invalid token')
    expect(await usersWith(server, person.email)).toBe(0)
  })
})

describeServer('a code', { config, clock }, (server) => {
  test('[MAIL-14, MAIL-15] of six digits signs in, with or without an account before', async () => {
    const person = await signUp(server)
    const code = await mailedCode(server, person.email)
    expect((await useCode(server, ` ${person.email.toUpperCase()} `, ` ${code} `)).body.user.id).toBe(person.id)
    const email = stranger()
    const { status, body } = await useCode(server, email, await mailedCode(server, email))
    expect([status, body.user.email, body.user.emailVerified]).toEqual([200, email, true])
  })

  test('[MAIL-13] typed fifty times at once works once', async () => {
    const email = stranger()
    const code = await mailedCode(server, email)
    const answers = await Promise.all(Array.from({ length: racers }, () => useCode(server, email, code)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 200) expectRefusal(answer, 401, 'Invalid code')
    expect(await usersWith(server, email)).toBe(1)
  })

  test('[MAIL-15] survives four wrong tries and not a fifth', async () => {
    const [lucky, unlucky] = [stranger(), stranger()]
    const code = await mailedCode(server, lucky)
    for (let n = 1; n < oneTimeCodeAttemptsMax; n++)
      expectRefusal(await useCode(server, lucky, wrongOf(code, n)), 401, 'Invalid code')
    expect((await useCode(server, lucky, code)).status).toBe(200)
    const other = await mailedCode(server, unlucky)
    for (let n = 1; n <= oneTimeCodeAttemptsMax; n++)
      expectRefusal(await useCode(server, unlucky, wrongOf(other, n)), 401, 'Invalid code')
    expectRefusal(await useCode(server, unlucky, other), 401, 'Invalid code')
    expect(await usersWith(server, unlucky)).toBe(0)
  })

  test('[MAIL-15] cannot be guessed faster by guessing at once', async () => {
    const email = stranger()
    const code = await mailedCode(server, email)
    const answers = await Promise.all(
      Array.from({ length: racers }, (_, n) => useCode(server, email, wrongOf(code, n + 1))),
    )
    for (const answer of answers) expectRefusal(answer, 401, 'Invalid code')
    expectRefusal(await useCode(server, email, code), 401, 'Invalid code')
  })

  test('[MAIL-15] is for the address it was sent to, and a new one replaces it', async () => {
    const [one, other] = [stranger(), stranger()]
    const first = await mailedCode(server, one)
    await mailedCode(server, other)
    expectRefusal(await useCode(server, other, wrongOf(first, 0)), 401, 'Invalid code')
    let second = await mailedCode(server, one)
    // One time in a million the two are the same.
    while (second === first) second = await mailedCode(server, one)
    expectRefusal(await useCode(server, one, first), 401, 'Invalid code')
    expect((await useCode(server, one, second)).status).toBe(200)
  })

  test('[MAIL-15] ends after its time', async () => {
    const email = stranger()
    const code = await mailedCode(server, email)
    await server.elapse(emailCodeLifetimeMs)
    expectRefusal(await useCode(server, email, code), 401, 'Invalid code')
  })

  test('[MAIL-16] to a disabled account is 403', async () => {
    const person = await signUp(server)
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: true })
    const code = await mailedCode(server, person.email)
    expectRefusal(await useCode(server, person.email, code), 403, 'Account is disabled')
  })

  test.each(['12345', '1234567', '12345a', '１２３４５６', '', '-12345', '1e5000'])(
    '[MAIL-15] that is none is refused with 400: %j',
    async (code) => {
      expectRefusal(await useCode(server, stranger(), code), 400, 'code')
    },
  )

  test.each(['', 'nobody', 'a@b', 'a b@example.org', 'a@example.org\r\nBcc: b@example.org', 'a@x.org,b@x.org'])(
    '[MAIL-10] is sent to no address that is none: %j',
    async (email) => {
      for (const ask of [askLink, askCode]) expectRefusal(await ask(server, email), 400, 'email')
      expectRefusal(await useCode(server, email, '123456'), 400, 'email')
    },
  )
})

describe('without sign-up', () => {
  const closed = { auth: mailAuth(mailbox, { signup: false }), rateLimits: unlimitedRates }
  describeServer('a link or code', { config: closed, clock }, (server) => {
    test('[MAIL-14] comes to those alone who have an account', async () => {
      const [email, known] = [stranger(), stranger()]
      await server.service.post('/api/auth/admin/users', { email: known, password: 'a long password' })
      for (const ask of [askLink, askCode]) expect((await ask(server, email)).body).toEqual({ ok: true })
      expect((await useLink(server, await linkToken(server, known))).status).toBe(200)
      expect((await useCode(server, known, await mailedCode(server, known))).status).toBe(200)
      // Stopping sends whatever there is to send.
      await server.restart()
      expect(mailbox.received.filter(({ to }) => to.includes(email))).toEqual([])
      expect(await usersWith(server, email)).toBe(0)
    })
  })
})

test('[MAIL-14] a link that outlives permission to sign up makes no account', async () => {
  const server = await startServer({ config, clock })
  try {
    const email = stranger()
    const token = await linkToken(server, email)
    await server.reload({ ...config, auth: mailAuth(mailbox, { signup: false }) })
    expectRefusal(await useLink(server, token), 401, 'Invalid token')
    expect(await usersWith(server, email)).toBe(0)
  } finally {
    await server.close()
  }
})

test('[MAIL-11] mails are in the language of the account, else of whoever asks', async () => {
  const auth = mailAuth(mailbox)
  const german = { subject: 'Anmelden bei {{appName}}', text: 'Hier entlang, {{displayName}}: {{link}}' }
  const mail = { ...auth.mail, templates: { de: { 'magic-link': german } } }
  const server = await startServer({ config: { auth: { mail }, rateLimits: unlimitedRates }, clock })
  try {
    const email = stranger()
    await askLink(server, email, { locale: 'de-AT' })
    const first = await mailbox.next(email)
    expect(first.subject).toBe('Anmelden bei Atlas')
    // Of the account that this makes, German is the language.
    await useLink(server, /token=([\w-]{43})/.exec(first.text)?.[1] ?? '')
    await askLink(server, email, { locale: 'fr' })
    expect((await mailbox.next(email)).subject).toBe('Anmelden bei Atlas')
    const other = stranger()
    await askLink(server, other, { locale: 'fr' })
    expect((await mailbox.next(other)).subject).toBe('Sign in to Atlas')
    expectRefusal(await askLink(server, other, { locale: '../de' }), 400, 'locale')
  } finally {
    await server.close()
  }
})
