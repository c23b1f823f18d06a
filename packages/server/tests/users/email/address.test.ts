/** Verification and change of an address. */
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
import { type Person, signUp } from '../../harness/users/person.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
const config = { auth: mailAuth(mailbox), rateLimits: unlimitedRates }
const racers = 50

const bearer = (server: TestServer, accessToken: string): Client =>
  createClient(() => server.url, { authorization: `Bearer ${accessToken}` })
const userOf = async (client: Client) => (await client.get('/api/auth/me')).body.user

describeServer('verifying an address', { config, clock }, (server) => {
  let person: Person
  beforeEach(async () => {
    person = await signUp(server)
  })
  const ask = (): Promise<Answer> => person.client.post('/api/auth/request-email-verification', undefined)
  const verify = (token: string): Promise<Answer> => person.client.post('/api/auth/verify-email', { token })

  test('[MAIL-19] takes the token that was mailed to it', async () => {
    expect((await ask()).body).toEqual({ ok: true })
    const { text } = await mailbox.next(person.email)
    const token = new RegExp(`^${page('verify')}\\?token=([\\w-]{43})$`, 'm').exec(text)?.[1] ?? ''
    expect((await userOf(person.client)).emailVerified).toBe(false)
    expect((await verify(token)).body).toEqual({ ok: true })
    expect((await userOf(person.client)).emailVerified).toBe(true)
    expect((await person.signIn()).status).toBe(200)
  })

  test('[MAIL-13] fifty times at once works once', async () => {
    await ask()
    const token = await mailbox.nextToken(person.email)
    const answers = await Promise.all(Array.from({ length: racers }, () => verify(token)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 200) expectRefusal(answer, 401, 'Invalid token')
  })

  test('[MAIL-19] is nothing to do twice: no further mail is sent', async () => {
    await ask()
    await verify(await mailbox.nextToken(person.email))
    const before = mailbox.received.length
    expect((await ask()).body).toEqual({ ok: true })
    await server.restart()
    expect(mailbox.received.length).toBe(before)
  })

  test('[MAIL-19] needs a user: nobody 401, a service key 403', async () => {
    expectRefusal(await server.anonymous.post('/api/auth/request-email-verification', undefined), 401)
    expectRefusal(await server.service.post('/api/auth/request-email-verification', undefined), 403)
  })

  test('[MAIL-13] ends after a day', async () => {
    await ask()
    const token = await mailbox.nextToken(person.email)
    await server.elapse(emailVerificationLifetimeMs)
    const { accessToken } = (await person.signIn()).body
    expectRefusal(await bearer(server, accessToken).post('/api/auth/verify-email', { token }), 401, 'Invalid token')
    expect((await userOf(bearer(server, (await person.signIn()).body.accessToken))).emailVerified).toBe(false)
  })

  test('[MAIL-19] of an anonymous user has nothing to send', async () => {
    const { body } = await server.anonymous.post('/api/auth/signin/anonymous', undefined)
    const answer = await bearer(server, body.accessToken).post('/api/auth/request-email-verification', undefined)
    expect(answer.body).toEqual({ ok: true })
  })
})

const welcoming = { ...config, auth: mailAuth(mailbox, { verifySignups: true }) }
describeServer('signing up', { config: welcoming, clock }, (server) => {
  test('[MAIL-23] mails a link that verifies the address', async () => {
    const person = await signUp(server)
    const token = await mailbox.nextToken(person.email)
    expect((await userOf(person.client)).emailVerified).toBe(false)
    expect((await person.client.post('/api/auth/verify-email', { token })).status).toBe(200)
    expect((await userOf(person.client)).emailVerified).toBe(true)
  })

  test('[MAIL-23] so does giving an anonymous account an address', async () => {
    const { body } = await server.anonymous.post('/api/auth/signin/anonymous', undefined)
    const email = `once-nobody-${body.user.id}@example.org`
    const client = bearer(server, body.accessToken)
    expect((await client.post('/api/auth/signup', { email, password: 'a good password' })).status).toBe(201)
    expect(await mailbox.nextToken(email)).toHaveLength(43)
  })

  test('[MAIL-23] a sign-up that is refused mails nothing', async () => {
    const person = await signUp(server)
    await mailbox.nextToken(person.email)
    const before = mailbox.received.length
    const { email, password } = person
    expectRefusal(await server.anonymous.post('/api/auth/signup', { email, password }), 409)
    await server.restart()
    expect(mailbox.received.length).toBe(before)
  })
})

describeServer('changing an address', { config, clock }, (server) => {
  let person: Person
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

  test('[MAIL-20] sends a link to the new address and a notice to the old one, and takes effect with the token', async () => {
    expect((await change({ newEmail: ` ${newEmail.toUpperCase()} `, password: person.password })).status).toBe(200)
    const notice = await mailbox.next(person.email)
    expect(notice.text).toContain(newEmail)
    expect(notice.text).not.toContain('token=')
    const { text } = await mailbox.next(newEmail)
    expect(text).toContain(`\n${page('change')}?token=`)
    expect((await userOf(person.client)).email).toBe(person.email)

    expect((await verify(/token=([\w-]{43})$/m.exec(text)?.[1] ?? '')).body).toEqual({ ok: true })
    expect(await userOf(person.client)).toMatchObject({ email: newEmail, emailVerified: true, id: person.id })
    expectRefusal(await person.signIn(), 401)
    const { password } = person
    expect((await server.anonymous.post('/api/auth/signin', { email: newEmail, password })).status).toBe(200)
  })

  test('[MAIL-20] ends every session but the one that asked and the one that confirms', async () => {
    const other = (await person.signIn()).body
    const confirming = bearer(server, (await person.signIn()).body.accessToken)
    const token = await changeToken()
    expect((await verify(token, confirming)).status).toBe(200)
    expect((await person.client.get('/api/auth/me')).status).toBe(200)
    expect((await confirming.get('/api/auth/me')).status).toBe(200)
    expectRefusal(await bearer(server, other.accessToken).get('/api/auth/me'), 401)
    expectRefusal(await server.anonymous.post('/api/auth/refresh', { refreshToken: other.refreshToken }), 401)
  })

  test('[MAIL-13] fifty times at once works once', async () => {
    const token = await changeToken()
    const answers = await Promise.all(Array.from({ length: racers }, () => verify(token)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 200) expectRefusal(answer, 401, 'Invalid token')
    expect((await userOf(person.client)).email).toBe(newEmail)
  })

  test('[MAIL-20] requires the password of an account that has one, and sends no mail without it', async () => {
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

  test('[MAIL-20] answers alike for an address of another account, and sends only the notice', async () => {
    const other = await signUp(server)
    const { password } = person
    const free = await change({ newEmail, password })
    const taken = await change({ newEmail: other.email, password })
    expect([taken.status, taken.text]).toEqual([free.status, free.text])
    await mailbox.next(person.email)
    await mailbox.next(person.email)
    await server.restart()
    expect(mailbox.received.filter(({ to }) => to.includes(other.email))).toEqual([])
  })

  test('[MAIL-20] is 409 and changes nothing if another account has taken the address meanwhile', async () => {
    const token = await changeToken()
    await server.service.post('/api/auth/admin/users', { email: newEmail, password: 'a long password' })
    const refusal = expectRefusal(await verify(token), 409)
    expect(refusal.data).toMatchObject({ email: { code: 'unique' } })
    expect((await userOf(person.client)).email).toBe(person.email)
    expect((await person.signIn()).status).toBe(200)
  })

  test('[MAIL-20] of many accounts to one address at once has one winner', async () => {
    const people = [person, ...(await Promise.all(Array.from({ length: 9 }, () => signUp(server))))]
    const tokens: string[] = []
    for (const { client, password } of people) {
      await change({ newEmail, password }, client)
      tokens.push(await mailbox.nextToken(newEmail))
    }
    const answers = tokens.map((token, at) => verify(token, people[at]?.client))
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([200, ...Array.from({ length: people.length - 1 }, () => 409)])
    const emails = await Promise.all(people.map(async ({ client }) => (await userOf(client)).email))
    expect(emails.filter((email) => email === newEmail)).toHaveLength(1)
  })

  test('[MAIL-20, PASSKEY-13] takes a recent sign-in where an account has no password', async () => {
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

  test('[MAIL-20] asked for again replaces the request before', async () => {
    const first = await changeToken()
    const second = await changeToken(`second-${newEmail}`)
    expectRefusal(await verify(first), 401, 'Invalid token')
    expect((await verify(second)).status).toBe(200)
  })

  test('[MAIL-20] ends with a change of the password', async () => {
    const token = await changeToken()
    const body = { currentPassword: person.password, newPassword: 'another long password' }
    expect((await person.client.post('/api/auth/change-password', body)).status).toBe(200)
    expectRefusal(await verify(token, server.anonymous), 401, 'Invalid token')
  })

  test('[MAIL-20] is of no use to a session that has ended', async () => {
    const { accessToken, refreshToken } = (await person.signIn()).body
    const ask = { newEmail, password: person.password }
    expect((await change(ask, bearer(server, accessToken))).status).toBe(200)
    const token = await mailbox.nextToken(newEmail)
    await server.anonymous.post('/api/auth/signout', { refreshToken })
    expectRefusal(await verify(token), 401, 'Invalid token')

    const revoked = await changeToken(`revoked-${newEmail}`)
    await server.service.post(`/api/auth/admin/users/${person.id}/revoke`, undefined)
    expectRefusal(await verify(revoked, server.anonymous), 401, 'Invalid token')
    expect((await person.signIn()).status).toBe(200)
  })

  test('[MAIL-20] makes worthless what was mailed to the old address', async () => {
    await server.anonymous.post('/api/auth/request-password-reset', { email: person.email })
    const token = await mailbox.nextToken(person.email)
    await verify(await changeToken())
    const reset = await server.anonymous.post('/api/auth/reset-password', { token, newPassword: 'a new password' })
    expectRefusal(reset, 401, 'Invalid token')
  })

  test('[MAIL-20] of a disabled account is worth nothing', async () => {
    const token = await changeToken()
    await server.service.patch(`/api/auth/admin/users/${person.id}`, { disabled: true })
    expectRefusal(await verify(token), 401)
    const { body } = await server.service.get(`/api/auth/admin/users/${person.id}`)
    expect(body.email).toBe(person.email)
  })

  test('[MAIL-13] ends after an hour', async () => {
    const token = await changeToken()
    await server.elapse(emailChangeLifetimeMs)
    expectRefusal(await verify(token, server.anonymous), 401, 'Invalid token')
  })

  test('[MAIL-20] gives an anonymous user an address, and so a way in', async () => {
    const { body } = await server.anonymous.post('/api/auth/signin/anonymous', undefined)
    const client = bearer(server, body.accessToken)
    // There is nothing to sign in again with.
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

test('[MAIL-20] an anonymous user gets no address where sign-up is closed', async () => {
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
