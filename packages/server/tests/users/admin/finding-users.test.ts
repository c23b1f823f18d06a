/** Administrators find users, see how they sign in, end single sessions and invite users. */
import { afterAll, expect, test } from 'bun:test'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { adminUsers, auth, bearer, newEmail, password, unlimitedRates } from '../../harness/users/accounts.ts'
import { mailAuth } from '../../harness/users/mail-config.ts'
import { openMailbox } from '../../harness/users/mailbox.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const invitations = '/api/auth/admin/invitations'

describeServer('users as administrators find them', { config: { rateLimits: unlimitedRates } }, (server) => {
  const create = async (email: string, displayName?: string): Promise<string> => {
    const answer = await server.service.post(adminUsers, { email, password, ...(displayName ? { displayName } : {}) })
    expect(answer.status).toBe(201)
    return answer.body.user.id
  }
  const search = async (text: string, limit = 10): Promise<string[]> => {
    const { status, body } = await server.service.get(`${adminUsers}?search=${encodeURIComponent(text)}&limit=${limit}`)
    expect(status).toBe(200)
    expect(body.cursor).toBeNull()
    return body.users.map(({ id }: { id: string }) => id)
  }

  test('[ADMIN-26] a search finds users by id and by the beginning of email and display name', async () => {
    const ada = await create('ada.lovelace@example.com', 'Countess')
    const alan = await create('turing@example.com', 'Ada-like Alan')
    const grace = await create('grace@example.com', 'Zoë 100%_')
    expect(await search('ADA')).toEqual([ada, alan])
    expect(await search(grace)).toEqual([grace])
    expect(await search('grace@example.com')).toEqual([grace])
    expect(await search('Zoë 100%_')).toEqual([grace])
    // Characters of patterns stand for themselves, and only the beginning counts.
    for (const text of ['%', '_', 'lovelace', '\u{10ffff}', "' OR 1=1 --", '\0']) expect(await search(text)).toEqual([])
    expect(await search('ada', 1)).toEqual([ada])
    expectRefusal(await server.service.get(`${adminUsers}?search=`), 400)
    expectRefusal(await server.service.get(`${adminUsers}?search=${'x'.repeat(321)}`), 400)
  })

  test('[ADMIN-27] credentials show how a user signs in, and single sessions end', async () => {
    const email = newEmail()
    const id = await create(email)
    const signIn = async () => (await server.anonymous.post(`${auth}/signin`, { email, password })).body
    const [first, second] = [await signIn(), await signIn()]
    const path = `${adminUsers}/${id}/credentials`
    const { status, body, text } = await server.service.get(path)
    expect(status).toBe(200)
    expect(body).toMatchObject({ hasPassword: true, identities: [], passkeys: [], factor: null, recoveryCodesLeft: 0 })
    expect(body.sessions).toHaveLength(2)
    for (const secret of [first.refreshToken, second.refreshToken, 'argon2']) expect(text).not.toContain(secret)

    const other = await create(newEmail())
    const [newest] = body.sessions
    const end = (user: string, session: string) => server.service.delete(`${adminUsers}/${user}/sessions/${session}`)
    expectRefusal(await end(other, newest.id), 404)
    expectRefusal(await end(id, 'unknown'), 404)
    expect((await end(id, newest.id)).body).toEqual({ ok: true })
    expectRefusal(await server.anonymous.get(`${auth}/me`, bearer(second.accessToken)), 401)
    expect((await server.anonymous.get(`${auth}/me`, bearer(first.accessToken))).status).toBe(200)
    expect((await server.service.get(path)).body.sessions).toHaveLength(1)
    expectRefusal(await server.service.get(`${adminUsers}/none/credentials`), 404)
  })
})

describeServer('invitations', { config: { auth: mailAuth(mailbox), rateLimits: unlimitedRates } }, (server) => {
  const invite = (body: object) => server.service.post(invitations, body)
  const signIn = (email: string) => server.anonymous.post(`${auth}/signin`, { email, password })

  test('[ADMIN-28] an invited user chooses a password by the mailed link', async () => {
    const email = newEmail()
    const { status, body } = await invite({ email, displayName: 'Ada', role: 'editor' })
    expect(status).toBe(201)
    expect(body.user).toMatchObject({ email, displayName: 'Ada', role: 'editor', emailVerified: false })
    expectRefusal(await signIn(email), 401)
    const mail = await mailbox.next(email)
    expect(mail.subject).toContain('invited')
    const token = new URL(/https?:\S+/.exec(mail.text)?.[0] ?? '').searchParams.get('token')
    const reset = await server.anonymous.post(`${auth}/reset-password`, { token, newPassword: password })
    expect(reset.status).toBe(200)
    expect((await signIn(email)).body.user).toMatchObject({ id: body.user.id, emailVerified: true })
    expectRefusal(await invite({ email }), 409)
  })

  test('[ADMIN-28] an invitation can be repeated until it is used', async () => {
    const email = newEmail()
    const first = await invite({ email })
    expect((await invite({ email: email.toUpperCase() })).body.user.id).toBe(first.body.user.id)
    await server.service.patch(`${adminUsers}/${first.body.user.id}`, { disabled: true })
    expectRefusal(await invite({ email }), 403)
    expectRefusal(await invite({ email: 'no address' }), 400)
    expectRefusal(await invite({ email: newEmail(), isAdmin: true }), 400)
  })
})

describeServer(
  'invitations without a mail server',
  { config: { rateLimits: unlimitedRates }, mode: 'release' },
  (server) => {
    test('[ADMIN-28] are refused, and create no account', async () => {
      const email = newEmail()
      expectRefusal(await server.service.post(invitations, { email }), 409)
      expect((await server.service.get(`${adminUsers}?email=${email}`)).body.users).toEqual([])
    })
  },
)
