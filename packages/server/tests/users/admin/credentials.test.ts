/** Administrators change the address, the password and the verification of users. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { adminUsers, auth, bearer, newEmail, unlimitedRates } from '../../harness/users/accounts.ts'
import { mailAuth } from '../../harness/users/mail-config.ts'
import { openMailbox } from '../../harness/users/mailbox.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const config = { auth: mailAuth(mailbox), rateLimits: unlimitedRates }
const password = 'chosen by the operator'
const other = 'chosen by another person'

describeServer('credentials set by an administrator', { config }, (server) => {
  let email: string
  beforeEach(() => {
    email = newEmail()
  })

  const create = async (fields: object = {}) => {
    const answer = await server.service.post(adminUsers, { email, password, ...fields })
    expect(answer.status).toBe(201)
    return answer.body.user
  }
  const patch = (id: string, body: object) => server.service.patch(`${adminUsers}/${id}`, body)
  const signIn = (address = email, secret = password) =>
    server.anonymous.post(`${auth}/signin`, { email: address, password: secret })
  async function signInByLink(address = email) {
    await server.anonymous.post(`${auth}/signin/magic-link`, { email: address })
    const token = await mailbox.nextToken(address)
    return server.anonymous.post(`${auth}/verify-magic-link`, { token })
  }

  test('[ADMIN-23] a new user is verified by default', async () => {
    expect(await create()).toMatchObject({ emailVerified: true, verified: true })
    email = newEmail()
    expect(await create({ emailVerified: false })).toMatchObject({ emailVerified: false, verified: false })
    expectRefusal(await server.service.post(adminUsers, { email: newEmail(), password, emailVerified: 'no' }), 400)
  })

  for (const emailVerified of [true, false])
    test(`[ADMIN-24] a password set for ${emailVerified ? 'a verified' : 'an unverified'} user stays valid after the first sign-in link`, async () => {
      await create({ emailVerified })
      expect((await signInByLink()).body.user).toMatchObject({ emailVerified: true })
      expect((await signIn()).status).toBe(200)
    })

  test('[ADMIN-24] the first sign-in link keeps a password set by an administrator and removes one set by the sign-up', async () => {
    const squatted = await server.anonymous.post(`${auth}/signup`, { email, password: other })
    const { id } = squatted.body.user
    expect((await patch(id, { password })).status).toBe(200)
    expectRefusal(await signIn(email, other), 401)
    expect((await signInByLink()).status).toBe(200)
    expect((await signIn()).status).toBe(200)

    const unclaimed = newEmail()
    await server.anonymous.post(`${auth}/signup`, { email: unclaimed, password: other })
    expect((await signInByLink(unclaimed)).status).toBe(200)
    expectRefusal(await signIn(unclaimed, other), 401)
  })

  test('[ADMIN-24] a password set for one address is removed when another address is verified without a session', async () => {
    await create()
    const { accessToken } = (await signIn()).body
    const newAddress = newEmail()
    await server.anonymous.post(`${auth}/change-email`, { newEmail: newAddress, password }, bearer(accessToken))
    const token = await mailbox.nextToken(newAddress)
    expect((await server.anonymous.post(`${auth}/verify-email-change`, { token })).status).toBe(200)
    expectRefusal(await signIn(newAddress), 401)
    expectRefusal(await signIn(email), 401)
  })

  test('[ADMIN-25] a new password ends every session and invalidates mailed links', async () => {
    const { id } = await create()
    const { accessToken, refreshToken } = (await signIn()).body
    await server.anonymous.post(`${auth}/request-password-reset`, { email })
    const token = await mailbox.nextToken(email)
    expect((await patch(id, { password: other })).status).toBe(200)
    expectRefusal(await server.anonymous.get(`${auth}/me`, bearer(accessToken)), 401)
    expectRefusal(await server.anonymous.post(`${auth}/refresh`, { refreshToken }), 401)
    expectRefusal(await server.anonymous.post(`${auth}/reset-password`, { token, newPassword: password }), 401)
    expectRefusal(await signIn(), 401)
    expect((await signIn(email, other)).status).toBe(200)
  })

  test('[ADMIN-25] a new address signs in, is verified by default, and the old one no longer works', async () => {
    const { id } = await create({ emailVerified: false })
    const { accessToken } = (await signIn()).body
    const next = newEmail()
    expect((await patch(id, { email: ` ${next.toUpperCase()} ` })).body).toMatchObject({
      email: next,
      emailVerified: true,
    })
    expectRefusal(await signIn(), 401)
    expect((await signIn(next)).status).toBe(200)
    const me = await server.anonymous.get(`${auth}/me`, bearer(accessToken))
    expect(me.body.user).toMatchObject({ email: next, emailVerified: true })
    const third = newEmail()
    expect((await patch(id, { email: third, emailVerified: false })).body).toMatchObject({ emailVerified: false })
    expect((await patch(id, { emailVerified: true })).body).toMatchObject({ email: third, emailVerified: true })
    // Setting the current address again changes nothing.
    expect((await patch(id, { emailVerified: false })).body.emailVerified).toBe(false)
    expect((await patch(id, { email: third })).body.emailVerified).toBe(false)
  })

  test('[ADMIN-25] a taken address is 409, and nothing is changed', async () => {
    const { id } = await create()
    const taken = email
    email = newEmail()
    const victim = await create()
    const refusal = expectRefusal(await patch(victim.id, { email: taken, displayName: 'Other', password: other }), 409)
    expect(refusal.data).toMatchObject({ email: { code: 'unique' } })
    expect((await server.service.get(`${adminUsers}/${victim.id}`)).body).toMatchObject({ email, displayName: null })
    expect((await signIn()).status).toBe(200)
    expect((await server.service.get(`${adminUsers}/${id}`)).body.email).toBe(taken)
  })

  test('[ADMIN-25] setting an address upgrades an anonymous user; a missing address cannot be verified', async () => {
    const { body } = await server.anonymous.post(`${auth}/signin/anonymous`, undefined)
    const { id } = body.user
    const refusal = expectRefusal(await patch(id, { emailVerified: true }), 400)
    expect(refusal.data).toMatchObject({ emailVerified: { code: 'required' } })
    expect((await patch(id, { email, password })).body).toMatchObject({
      email,
      isAnonymous: false,
      emailVerified: true,
    })
    expect((await signIn()).body.user.id).toBe(id)
  })

  test('[ADMIN-7] a password for an unknown user is 404', async () => {
    expectRefusal(await patch('unknown', { password }), 404)
  })
})
