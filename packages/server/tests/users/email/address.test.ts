/** Verification and change of an email address. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { emailChangeLifetimeMs, emailVerificationLifetimeMs, recentSignInMs } from '../../../src/limits/users.ts'
import { type Answer, type Client, createClient } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, startServer, type TestServer } from '../../harness/server.ts'
import { unlimitedRates } from '../../harness/users/accounts.ts'
import { createAuthenticator } from '../../harness/users/authenticator.ts'
import { mailAuth, page } from '../../harness/users/mail-config.ts'
import { openMailbox } from '../../harness/users/mailbox.ts'
import { signUp, type TestUser } from '../../harness/users/test-user.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
const config = { auth: mailAuth(mailbox), rateLimits: unlimitedRates }
const concurrentUses = 50

const bearer = (server: TestServer, accessToken: string): Client =>
  createClient(() => server.url, { authorization: `Bearer ${accessToken}` })
const userOf = async (client: Client) => (await client.get('/api/auth/me')).body.user

describeServer('email verification', { config, clock }, (server) => {
  let person: TestUser
  beforeEach(async () => {
    person = await signUp(server)
  })
  const requestLink = (): Promise<Answer> => person.client.post('/api/auth/request-email-verification', undefined)
  const verify = (token: string): Promise<Answer> => person.client.post('/api/auth/verify-email', { token })

  test('[MAIL-19] the mailed token verifies the address', async () => {
    expect((await requestLink()).body).toEqual({ ok: true })
    const { text } = await mailbox.next(person.email)
    const token = new RegExp(`^${page('verify')}\\?token=([\\w-]{43})$`, 'm').exec(text)?.[1] ?? ''
    expect((await userOf(person.client)).emailVerified).toBe(false)
    const { body } = await verify(token)
    expect(body).toEqual({ ok: true, user: await userOf(person.client) })
    expect(body.user.emailVerified).toBe(true)
    expect((await person.signIn()).status).toBe(200)
  })

  test('[MAIL-13] of fifty concurrent verifications with one token one succeeds', async () => {
    await requestLink()
    const token = await mailbox.nextToken(person.email)
    const answers = await Promise.all(Array.from({ length: concurrentUses }, () => verify(token)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 200) expectRefusal(answer, 401, 'Invalid token')
  })

  test('[MAIL-19] no mail is sent for an address that is already verified', async () => {
    await requestLink()
    await verify(await mailbox.nextToken(person.email))
    const before = mailbox.received.length
    expect((await requestLink()).body).toEqual({ ok: true })
    await server.restart()
    expect(mailbox.received.length).toBe(before)
  })

  test('[MAIL-19] requesting a verification is 401 without credentials and 403 with a service key', async () => {
    expectRefusal(await server.anonymous.post('/api/auth/request-email-verification', undefined), 401)
    expectRefusal(await server.service.post('/api/auth/request-email-verification', undefined), 403)
  })

  test('[MAIL-13] a verification token expires after a day', async () => {
    await requestLink()
    const token = await mailbox.nextToken(person.email)
    await server.elapse(emailVerificationLifetimeMs)
    const { accessToken } = (await person.signIn()).body
    expectRefusal(await bearer(server, accessToken).post('/api/auth/verify-email', { token }), 401, 'Invalid token')
    expect((await userOf(bearer(server, (await person.signIn()).body.accessToken))).emailVerified).toBe(false)
  })

  test('[MAIL-19] a request of an anonymous user is ok and sends no mail', async () => {
    const { body } = await server.anonymous.post('/api/auth/signin/anonymous', undefined)
    const answer = await bearer(server, body.accessToken).post('/api/auth/request-email-verification', undefined)
    expect(answer.body).toEqual({ ok: true })
  })
})

const verifying = { ...config, auth: mailAuth(mailbox, { verifySignups: true }) }
describeServer('sign-up with verifySignups', { config: verifying, clock }, (server) => {
  test('[MAIL-23] a sign-up mails a link that verifies the address', async () => {
    const person = await signUp(server)
    const token = await mailbox.nextToken(person.email)
    expect((await userOf(person.client)).emailVerified).toBe(false)
    expect((await person.client.post('/api/auth/verify-email', { token })).status).toBe(200)
    expect((await userOf(person.client)).emailVerified).toBe(true)
  })

  test('[MAIL-23] signing up as an anonymous user mails a link', async () => {
    const { body } = await server.anonymous.post('/api/auth/signin/anonymous', undefined)
    const email = `once-anonymous-${body.user.id}@example.org`
    const client = bearer(server, body.accessToken)
    expect((await client.post('/api/auth/signup', { email, password: 'a good password' })).status).toBe(201)
    expect(await mailbox.nextToken(email)).toHaveLength(43)
  })

  test('[MAIL-23] a refused sign-up mails nothing', async () => {
    const person = await signUp(server)
    await mailbox.nextToken(person.email)
    const before = mailbox.received.length
    const { email, password } = person
    expectRefusal(await server.anonymous.post('/api/auth/signup', { email, password }), 409)
    await server.restart()
    expect(mailbox.received.length).toBe(before)
  })
})

describeServer('change of the email address', { config, clock }, (server) => {
  let person: TestUser
  let newEmail: string
  beforeEach(async () => {
    person = await signUp(server)
    newEmail = `new-${person.email}`
  })
  const change = (body: object, client = person.client): Promise<Answer> => client.post('/api/auth/change-email', body)
  const verify = (token: string, client = person.client): Promise<Answer> =>
    client.post('/api/auth/verify-email-change', { token })
  const changeToken = async (email = newEmail): Promise<string> => {
    expect((await change({ newEmail: email, password: person.password })).body).toEqual({ ok: true })
    return mailbox.nextToken(email)
  }

  test('[MAIL-20] a change mails a link to the new address and a notice to the old one, and takes effect with the token', async () => {
    expect((await change({ newEmail: ` ${newEmail.toUpperCase()} `, password: person.password })).status).toBe(200)
    const notice = await mailbox.next(person.email)
    expect(notice.text).toContain(newEmail)
    expect(notice.text).not.toContain('token=')
    const { text } = await mailbox.next(newEmail)
    expect(text).toContain(`\n${page('change')}?token=`)
    expect((await userOf(person.client)).email).toBe(person.email)

    const { body } = await verify(/token=([\w-]{43})$/m.exec(text)?.[1] ?? '')
    expect(body).toEqual({ ok: true, user: await userOf(person.client) })
    expect(body.user).toMatchObject({ email: newEmail, emailVerified: true, id: person.id })
    expectRefusal(await person.signIn(), 401)
    const { password } = person
    expect((await server.anonymous.post('/api/auth/signin', { email: newEmail, password })).status).toBe(200)
  })

  test('[MAIL-20] a change ends every session but the requesting and the confirming one', async () => {
    const other = (await person.signIn()).body
    const confirming = bearer(server, (await person.signIn()).body.accessToken)
    const token = await changeToken()
    expect((await verify(token, confirming)).status).toBe(200)
    expect((await person.client.get('/api/auth/me')).status).toBe(200)
    expect((await confirming.get('/api/auth/me')).status).toBe(200)
    expectRefusal(await bearer(server, other.accessToken).get('/api/auth/me'), 401)
    expectRefusal(await server.anonymous.post('/api/auth/refresh', { refreshToken: other.refreshToken }), 401)
  })

  test('[MAIL-13] of fifty concurrent confirmations with one token one succeeds', async () => {
    const token = await changeToken()
    const answers = await Promise.all(Array.from({ length: concurrentUses }, () => verify(token)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 200) expectRefusal(answer, 401, 'Invalid token')
    expect((await userOf(person.client)).email).toBe(newEmail)
  })

  test('[MAIL-20] a refused change sends no mail: missing or wrong password, malformed or own address, no user', async () => {
    const before = mailbox.received.length
    expectRefusal(await change({ newEmail }), 400, 'password')
    expectRefusal(await change({ newEmail, password: 'not the password' }), 401)
    expectRefusal(await change({ newEmail: person.email, password: person.password }), 400, 'newEmail')
    expectRefusal(await change({ newEmail: 'nowhere', password: person.password }), 400, 'newEmail')
    expectRefusal(await change({ newEmail, password: person.password }, server.anonymous), 401)
    expectRefusal(await change({ newEmail, password: person.password }, server.service), 403)
    await server.restart()
    expect(mailbox.received.length).toBe(before)
  })

  test('[MAIL-20] a change to the address of another account gets the same response and mails only the notice', async () => {
    const other = await signUp(server)
    const { password } = person
    const free = await change({ newEmail, password })
    const taken = await change({ newEmail: other.email, password })
    expect(taken.status).toBe(free.status)
    expect(taken.text).toBe(free.text)
    await mailbox.next(person.email)
    await mailbox.next(person.email)
    await server.restart()
    expect(mailbox.received.filter(({ to }) => to.includes(other.email))).toEqual([])
  })

  test('[MAIL-20] a confirmation is 409 and changes nothing if another account has taken the address meanwhile', async () => {
    const token = await changeToken()
    await server.service.post('/api/auth/admin/users', { email: newEmail, password: 'a long password' })
    const refusal = expectRefusal(await verify(token), 409)
    expect(refusal.data).toMatchObject({ email: { code: 'unique' } })
    expect((await userOf(person.client)).email).toBe(person.email)
    expect((await person.signIn()).status).toBe(200)
  })

  test('[MAIL-20] of ten concurrent changes to one address one succeeds and the others are 409', async () => {
    const accounts = [person, ...(await Promise.all(Array.from({ length: 9 }, () => signUp(server))))]
    const tokens: string[] = []
    for (const { client, password } of accounts) {
      await change({ newEmail, password }, client)
      tokens.push(await mailbox.nextToken(newEmail))
    }
    const answers = tokens.map((token, at) => verify(token, accounts[at]?.client))
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([200, ...Array.from({ length: accounts.length - 1 }, () => 409)])
    const emails = await Promise.all(accounts.map(async ({ client }) => (await userOf(client)).email))
    expect(emails.filter((email) => email === newEmail)).toHaveLength(1)
  })

  test('[MAIL-20, PASSKEY-13] an account without a password needs a recent sign-in for a change', async () => {
    const email = `only-passkey-${newEmail}`
    const signIn = async (): Promise<Client> => {
      await server.anonymous.post('/api/auth/signin/magic-link', { email })
      const token = await mailbox.nextToken(email)
      const { body } = await server.anonymous.post('/api/auth/verify-magic-link', { token })
      return bearer(server, body.accessToken)
    }
    const client = await signIn()
    const { options } = (await client.post('/api/auth/passkeys/register-options', undefined)).body
    const response = createAuthenticator({ origin: 'http://localhost:5173' }).register(options)
    expect((await client.post('/api/auth/passkeys/register', { response })).status).toBe(201)
    await server.elapse(recentSignInMs + 1)
    expect(expectRefusal(await change({ newEmail }, client), 403).slug).toBe('sign-in-again')
    await server.restart()
    expect(mailbox.received.filter(({ to }) => to.includes(newEmail))).toEqual([])
    expect((await userOf(client)).email).toBe(email)

    const again = await signIn()
    expect((await change({ newEmail }, again)).status).toBe(200)
    expect((await verify(await mailbox.nextToken(newEmail), again)).status).toBe(200)
    expect((await userOf(again)).email).toBe(newEmail)
  })

  test('[MAIL-20] a new request for a change replaces the previous one', async () => {
    const first = await changeToken()
    const second = await changeToken(`second-${newEmail}`)
    expectRefusal(await verify(first), 401, 'Invalid token')
    expect((await verify(second)).status).toBe(200)
  })

  test('[MAIL-20] changing the password cancels a pending change', async () => {
    const token = await changeToken()
    const body = { currentPassword: person.password, newPassword: 'another long password' }
    expect((await person.client.post('/api/auth/change-password', body)).status).toBe(200)
    expectRefusal(await verify(token, server.anonymous), 401, 'Invalid token')
  })

  test('[MAIL-20] ending the requesting session cancels its change', async () => {
    const { accessToken, refreshToken } = (await person.signIn()).body
    const request = { newEmail, password: person.password }
    expect((await change(request, bearer(server, accessToken))).status).toBe(200)
    const token = await mailbox.nextToken(newEmail)
    await server.anonymous.post('/api/auth/signout', { refreshToken })
    expectRefusal(await verify(token), 401, 'Invalid token')

    const revoked = await changeToken(`revoked-${newEmail}`)
    await server.service.post(`/api/auth/admin/users/${person.id}/revoke`, undefined)
    expectRefusal(await verify(revoked, server.anonymous), 401, 'Invalid token')
    expect((await person.signIn()).status).toBe(200)
  })

  test('[MAIL-20] a change invalidates tokens mailed to the old address', async () => {
    await server.anonymous.post('/api/auth/request-password-reset', { email: person.email })
    const token = await mailbox.nextToken(person.email)
    await verify(await changeToken())
    const reset = await server.anonymous.post('/api/auth/reset-password', { token, newPassword: 'a new password' })
    expectRefusal(reset, 401, 'Invalid token')
  })

  test('[MAIL-20] disabling an account cancels its pending change', async () => {
    const token = await changeToken()
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: true })
    expectRefusal(await verify(token), 401)
    const { body } = await server.service.get(`/api/auth/admin/users/${person.id}`)
    expect(body.email).toBe(person.email)
  })

  test('[MAIL-13] a token for a change expires after an hour', async () => {
    const token = await changeToken()
    await server.elapse(emailChangeLifetimeMs)
    expectRefusal(await verify(token, server.anonymous), 401, 'Invalid token')
  })

  test('[MAIL-20] an anonymous user who confirms an address gets a permanent account', async () => {
    const { body } = await server.anonymous.post('/api/auth/signin/anonymous', undefined)
    const client = bearer(server, body.accessToken)
    // No recent sign-in is needed: an anonymous user cannot sign in again.
    await server.elapse(recentSignInMs + 1)
    expect((await change({ newEmail }, client)).status).toBe(200)
    expect((await verify(await mailbox.nextToken(newEmail), client)).status).toBe(200)
    expect(await userOf(client)).toMatchObject({ id: body.user.id, email: newEmail, isAnonymous: false })
    await server.anonymous.post('/api/auth/signin/magic-link', { email: newEmail })
    const token = await mailbox.nextToken(newEmail)
    const again = await server.anonymous.post('/api/auth/verify-magic-link', { token })
    expect(again.body.user.id).toBe(body.user.id)
  })
})

test('[MAIL-20] with sign-up closed, an anonymous user cannot add an address', async () => {
  const closed = { auth: mailAuth(mailbox, { signup: false }), rateLimits: unlimitedRates }
  const server = await startServer({ config: closed, clock })
  try {
    const { body } = await server.anonymous.post('/api/auth/signin/anonymous', undefined)
    const client = bearer(server, body.accessToken)
    const before = mailbox.received.length
    expectRefusal(await client.post('/api/auth/change-email', { newEmail: 'closed@example.org' }), 403)
    await server.restart()
    expect(mailbox.received.length).toBe(before)
    expect(await userOf(client)).toMatchObject({ email: null, isAnonymous: true })
  } finally {
    await server.close()
  }
})
