/** Rate limits per email address: other sources cannot exhaust the limit of the owner. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { deviceTokenLifetimeMs, mailSourcesFactor, passwordSourcesFactor } from '../../../src/limits/users.ts'
import type { Answer } from '../../harness/client.ts'
import { sharedEngine } from '../../harness/engines.ts'
import { openNodes } from '../../harness/nodes.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import { adminUsers, auth, bearer, newEmail, password, unlimitedRates } from '../../harness/users/accounts.ts'
import { mailAuth } from '../../harness/users/mail-config.ts'
import { openMailbox } from '../../harness/users/mailbox.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const perSource = 4
const mailsPerSource = 2
const config = {
  auth: mailAuth(mailbox),
  rateLimits: { ...unlimitedRates, signin: { requests: perSource }, mail: { requests: mailsPerSource } },
}
const options = { config, clock: manualClock(), settings: { trustProxy: { kind: 'hops', hops: 1 } } } as const

const home = '203.0.113.7'
const otherSources = (count: number): string[] => Array.from({ length: count }, (_, n) => `198.51.100.${n + 1}`)
const from = (address: string) => ({ 'x-forwarded-for': address })
const statusesOf = (answers: readonly Answer[]): number[] => answers.map(({ status }) => status)

/** Sends wrong passwords from many sources until a new source is refused. */
async function exhaustSignIn(server: TestServer, email: string): Promise<void> {
  for (const address of otherSources(passwordSourcesFactor))
    for (let n = 0; n < perSource; n++) {
      const body = { email, password: 'a wrong password' }
      const { status } = await server.anonymous.post(`${auth}/signin`, body, from(address))
      // Earlier attempts of the test count too, so the bound may be reached before the end.
      expect([401, 429]).toContain(status)
    }
  const body = { email, password }
  expectRefusal(await server.anonymous.post(`${auth}/signin`, body, from('192.0.2.250')), 429)
}

describeServer('password attempts for an address', options, (server) => {
  let email: string
  beforeEach(async () => {
    email = newEmail()
    await server.service.post(adminUsers, { email, password })
  })
  const signIn = (address: string, more: object = {}): Promise<Answer> =>
    server.anonymous.post(`${auth}/signin`, { email, password, ...more }, from(address))
  const guess = (address: string, more: object = {}): Promise<Answer> =>
    signIn(address, { password: 'a wrong password', ...more })

  test('[USER-6, USER-20] attempts from one source rate-limit that source only', async () => {
    for (let n = 0; n < perSource; n++) expectRefusal(await guess('198.51.100.1'), 401)
    expectRefusal(await guess('198.51.100.1'), 429)
    expectRefusal(await signIn('198.51.100.1'), 429)
    expect((await signIn(home)).status).toBe(200)
  })

  test('[USER-20] attempts from all sources together are bounded, with and without an account', async () => {
    for (const address of [email, newEmail()]) {
      await exhaustSignIn(server, address)
      expectRefusal(await signIn('192.0.2.99', { email: address }), 429)
    }
  })

  test('[USER-20] attempts from elsewhere do not lock out a device that sends its device token, from any client address', async () => {
    const { deviceToken } = (await signIn(home)).body
    await exhaustSignIn(server, email)
    expect((await signIn('192.0.2.1', { deviceToken })).status).toBe(200)
    const others = (await signIn('192.0.2.1', { deviceToken })).body.deviceToken
    expect((await signIn('192.0.2.2', { deviceToken: others })).status).toBe(200)
  })

  test('[USER-20] attempts from elsewhere do not lock out the client address of a live session', async () => {
    const { refreshToken } = (await signIn(home)).body
    await exhaustSignIn(server, email)
    expect((await signIn(home)).status).toBe(200)
    expectRefusal(await guess('192.0.2.1'), 429)
    await server.service.post(`${adminUsers}/${(await signIn(home)).body.user.id}/revoke`, undefined)
    expectRefusal(await server.anonymous.post(`${auth}/refresh`, { refreshToken }, from(home)), 401)
    expectRefusal(await signIn(home), 429)
  })

  test('[USER-20] attempts of a known device are bounded', async () => {
    const { deviceToken } = (await signIn(home)).body
    for (let n = 0; n < perSource; n++) expectRefusal(await guess('192.0.2.1', { deviceToken }), 401)
    expectRefusal(await guess('192.0.2.2', { deviceToken }), 429)
    expect((await signIn('192.0.2.3')).status).toBe(200)
  })

  test('[USER-20] attempts of all known devices share a separate limit', async () => {
    const tokens: string[] = []
    for (const address of otherSources(passwordSourcesFactor + 1)) tokens.push((await signIn(address)).body.deviceToken)
    await server.elapse(60_000)
    const last = tokens.pop()
    for (const deviceToken of tokens)
      for (let n = 0; n < perSource; n++) expectRefusal(await guess(home, { deviceToken }), 401)
    expectRefusal(await guess(home, { deviceToken: last }), 429)
    expect((await signIn(home)).status).toBe(200)
  })

  test('[USER-20] devices that signed in before the address was verified cannot lock out those that signed in after', async () => {
    const claimed = newEmail()
    const made = await server.service.post(adminUsers, { email: claimed, password, emailVerified: false })
    const early: string[] = []
    for (const address of otherSources(passwordSourcesFactor))
      early.push((await signIn(address, { email: claimed })).body.deviceToken)
    await server.service.patch(`${adminUsers}/${made.body.user.id}`, { emailVerified: true })
    await server.elapse(60_000)
    const { deviceToken } = (await signIn(home, { email: claimed })).body
    await server.elapse(60_000)
    for (const token of early)
      for (let n = 0; n < perSource; n++)
        expectRefusal(await guess('192.0.2.1', { email: claimed, deviceToken: token }), 401)
    const spare = (await signIn('192.0.2.5', { email: claimed })).body.deviceToken
    expect((await signIn('192.0.2.2', { email: claimed, deviceToken })).status).toBe(200)
    expect((await signIn('192.0.2.3', { email: claimed, deviceToken: spare })).status).toBe(200)
    expectRefusal(await guess('192.0.2.4', { email: claimed, deviceToken: early[0] }), 429)
  })

  test('[USER-20] attempts with an invalid device token count like those without one', async () => {
    const { deviceToken } = (await signIn(home)).body
    const other = newEmail()
    await server.service.post(adminUsers, { email: other, password })
    const { body } = await server.anonymous.post(`${auth}/signin`, { email: other, password }, from(home))
    const [id = '', ...rest] = deviceToken.split('.')
    await exhaustSignIn(server, email)
    for (const forged of [body.deviceToken, [`${id}x`, ...rest].join('.'), '', 'x', `${deviceToken}x`, '....'])
      expectRefusal(await signIn('192.0.2.9', { deviceToken: forged }), 429)
    expectRefusal(await signIn('192.0.2.8', { deviceToken: 7 }), 400)
    await server.elapse(deviceTokenLifetimeMs)
    await exhaustSignIn(server, email)
    expectRefusal(await signIn('192.0.2.9', { deviceToken }), 429)
  })

  test('[USER-21] password confirmations in a session and sign-ins are counted separately', async () => {
    const { accessToken } = (await signIn(home)).body
    const change = (currentPassword: string) =>
      server.anonymous.post(
        `${auth}/change-password`,
        { currentPassword, newPassword: 'another good password' },
        { ...from(home), ...bearer(accessToken) },
      )
    for (let n = 0; n < perSource; n++) expectRefusal(await change('a wrong password'), 401)
    expectRefusal(await change('a wrong password'), 429)
    expect((await signIn('192.0.2.1')).status).toBe(200)
    await server.elapse(60_000)
    await exhaustSignIn(server, email)
    expect((await change(password)).status).toBe(200)
  })

  test('[MAIL-15] wrong codes from other sources do not invalidate the code for the requesting source', async () => {
    const mailed = newEmail()
    await server.anonymous.post(`${auth}/signin/email-otp`, { email: mailed }, from(home))
    const code = await mailbox.nextCode(mailed)
    const wrong = code === '000000' ? '000001' : '000000'
    const redeem = (text: string, address: string) =>
      server.anonymous.post(`${auth}/verify-email-otp`, { email: mailed, code: text }, from(address))
    for (const address of otherSources(2)) for (let n = 0; n < 3; n++) expectRefusal(await redeem(wrong, address), 401)
    expectRefusal(await redeem(code, '192.0.2.1'), 401)
    expect((await redeem(code, home)).status).toBe(200)
  })
})

describeServer('mails to an address', options, (server) => {
  let email: string
  beforeEach(() => {
    email = newEmail()
  })
  const requestMail = (address: string, more: object = {}, path = 'signin/magic-link'): Promise<Answer> =>
    server.anonymous.post(`${auth}/${path}`, { email, ...more }, from(address))
  async function exhaust(): Promise<void> {
    for (const address of otherSources(mailSourcesFactor))
      for (let n = 0; n < mailsPerSource; n++) expect((await requestMail(address)).status).toBe(200)
  }

  test('[MAIL-9] requests from one source rate-limit that source only, across all kinds of mail', async () => {
    const kinds = ['signin/magic-link', 'request-password-reset', 'signin/email-otp']
    const answers = []
    for (const kind of kinds) answers.push(await requestMail('198.51.100.1', {}, kind))
    expect(statusesOf(answers)).toEqual([200, 200, 429])
    for (const kind of kinds.slice(1)) expect((await requestMail(home, {}, kind)).status).toBe(200)
  })

  test('[MAIL-9] requests from all sources together are bounded', async () => {
    await exhaust()
    expectRefusal(await requestMail('192.0.2.1'), 429)
  })

  test('[MAIL-24] a device that signed in to the verified address has a separate limit', async () => {
    await server.service.post(adminUsers, { email, password })
    const { deviceToken } = (await server.anonymous.post(`${auth}/signin`, { email, password }, from(home))).body
    await exhaust()
    expectRefusal(await requestMail('192.0.2.1'), 429)
    const answers = []
    for (let n = 0; n <= mailsPerSource; n++) answers.push(await requestMail('192.0.2.1', { deviceToken }))
    expect(statusesOf(answers)).toEqual([200, 200, 429])
  })

  test('[MAIL-24] a device that signed in to an unverified address has no separate limit', async () => {
    const squatted = await server.anonymous.post(`${auth}/signup`, { email, password }, from(home))
    await exhaust()
    expectRefusal(await requestMail('192.0.2.1', { deviceToken: squatted.body.deviceToken }), 429)
  })
})

if (sharedEngine)
  test('[USER-20] nodes share the counters and accept each other’s device tokens', async () => {
    const { nodes, close } = await openNodes(sharedEngine, 2, options)
    try {
      const [one, other] = nodes as [TestServer, TestServer]
      const email = newEmail()
      await one.service.post(adminUsers, { email, password })
      const body = { email, password }
      const { deviceToken } = (await one.anonymous.post(`${auth}/signin`, body, from(home))).body
      await exhaustSignIn(one, email)
      expectRefusal(await other.anonymous.post(`${auth}/signin`, body, from('192.0.2.1')), 429)
      const known = await other.anonymous.post(`${auth}/signin`, { ...body, deviceToken }, from('192.0.2.1'))
      expect(known.status).toBe(200)
    } finally {
      await close()
    }
  })
