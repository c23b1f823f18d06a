/** The last owner of the dashboard: no request ends their access, from any caller and whatever runs concurrently. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import type { Answer, Client } from '../harness/client.ts'
import { createClient } from '../harness/client.ts'
import {
  createAdministrator,
  openAdministrator,
  setRole,
  signInToDashboard,
  type TestAdministrator,
} from '../harness/dashboard/administrators.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'
import { unlimitedRates as rateLimits } from '../harness/users/accounts.ts'
import { createAuthenticator } from '../harness/users/authenticator.ts'
import { mailAuth } from '../harness/users/mail-config.ts'
import { openMailbox } from '../harness/users/mailbox.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const config = {
  rateLimits,
  auth: mailAuth(mailbox, { passkeys: { rpId: 'localhost', origins: ['http://localhost'] } }),
}
const users = '/api/auth/admin/users'

interface Listed {
  readonly id: string
  readonly dashboardRole: string
  readonly disabled: boolean
}

describeServer('the last owner', { config }, (server) => {
  let owner: TestAdministrator
  beforeEach(async () => {
    const before = await owners()
    owner = await openAdministrator(server, 'owner')
    for (const { id } of before) await setRole(server, id, null)
  })

  /** Owners who are not disabled. */
  async function owners(): Promise<Listed[]> {
    const { body } = await server.service.get('/api/auth/admin/administrators')
    return body.administrators.filter(({ dashboardRole, disabled }: Listed) => dashboardRole === 'owner' && !disabled)
  }
  const remains = async (): Promise<void> => {
    expect((await owners()).map(({ id }) => id)).toEqual([owner.id])
    expect((await signInToDashboard(server, owner)).status).toBe(200)
    expect((await owner.client.get('/api/session')).status).toBe(200)
  }
  const bearer = (token: string): Client => createClient(() => server.url, { authorization: `Bearer ${token}` })

  const requests: readonly (readonly [string, (client: Client, id: string) => Promise<Answer>])[] = [
    ['deleted', (client, id) => client.delete(`${users}/${id}`)],
    ['disabled', (client, id) => client.patch(`${users}/${id}`, { disabled: true, displayName: 'Disabled' })],
    ['demoted', (client, id) => client.request('PUT', `${users}/${id}/dashboard-role`, { body: { role: 'editor' } })],
    [
      'without a role',
      (client, id) => client.request('PUT', `${users}/${id}/dashboard-role`, { body: { role: null } }),
    ],
  ]
  for (const [what, send] of requests) {
    test(`[DASH-12] is not ${what}, neither from the page nor with a service key`, async () => {
      const before = (await server.service.get(`${users}/${owner.id}`)).body
      expect(expectRefusal(await send(owner.client, owner.id), 409).message).toContain('The last owner must stay one')
      expectRefusal(await send(server.service, owner.id), 409)
      expect((await server.service.get(`${users}/${owner.id}`)).body).toEqual(before)
      await remains()
    })

    test(`[DASH-12] one of two owners can be ${what}, and of two requests at once one is refused`, async () => {
      const other = await openAdministrator(server, 'owner')
      const both = await Promise.all([send(owner.client, other.id), send(other.client, owner.id)])
      // The one who was first may have ended the session of the other before its request was let in.
      const statuses = both.map(({ status }) => status).sort()
      expect(statuses[0]).toBe(200)
      expect([401, 403, 409]).toContain(statuses[1] as number)
      expect(await owners()).toHaveLength(1)
    })

    test(`[DASH-12] of two owners ${what} with a key at once, one is refused`, async () => {
      const other = await createAdministrator(server, 'owner')
      const both = await Promise.all([send(server.service, other.id), send(server.service, owner.id)])
      expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
      expect(await owners()).toHaveLength(1)
    })
  }

  test('[DASH-12] an owner who is disabled, or who could never sign in, does not count', async () => {
    const disabled = await createAdministrator(server, 'owner')
    expect((await server.service.patch(`${users}/${disabled.id}`, { disabled: true })).status).toBe(200)
    const invited = await server.service.post('/api/auth/admin/invitations', { email: 'never@example.org' })
    expect(invited.status).toBe(201)
    await setRole(server, invited.body.user.id, 'owner')
    for (const [, send] of requests) expectRefusal(await send(server.service, owner.id), 409)
    expect((await signInToDashboard(server, owner)).status).toBe(200)
    // Removing those two takes nothing from the last owner.
    for (const id of [disabled.id, invited.body.user.id])
      expect((await server.service.delete(`${users}/${id}`)).status).toBe(200)
    await remains()
  })

  /** A user who signs in by mail and has no password. */
  async function signUpByMail(email: string): Promise<{ id: string; client: Client }> {
    await server.anonymous.post('/api/auth/signin/magic-link', { email })
    const answer = await server.anonymous.post('/api/auth/verify-magic-link', { token: await mailbox.nextToken(email) })
    expect(answer.status).toBe(200)
    return { id: answer.body.user.id, client: bearer(answer.body.accessToken) }
  }

  test('[DASH-12] keeps the only passkey, without a password', async () => {
    const { id, client } = await signUpByMail(`passkey${owner.id}@example.org`)
    const key = createAuthenticator({ origin: 'http://localhost' })
    const add = async (one: typeof key): Promise<Answer> => {
      const { body } = await client.post('/api/auth/passkeys/register-options', undefined)
      return client.post('/api/auth/passkeys/register', { response: one.register(body.options) })
    }
    expect((await add(key)).status).toBe(201)
    await setRole(server, id, 'owner')
    await setRole(server, owner.id, null)
    expect(expectRefusal(await client.delete(`/api/auth/passkeys/${key.credentialId}`), 409).message).toContain(
      'The last owner must stay one',
    )
    expect((await client.get('/api/auth/passkeys')).body.passkeys).toHaveLength(1)
    // With another way to sign in to the dashboard, it can be removed.
    expect((await add(createAuthenticator({ origin: 'http://localhost' }))).status).toBe(201)
    expect((await client.delete(`/api/auth/passkeys/${key.credentialId}`)).status).toBe(200)
  })

  test('[DASH-12] keeps the password when the mailbox is proved for the first time', async () => {
    const email = `unverified${owner.id}@example.org`
    const password = 'a long password'
    const signedUp = await server.anonymous.post('/api/auth/signup', { email, password })
    const { id } = signedUp.body.user
    await setRole(server, id, 'owner')
    await setRole(server, owner.id, null)
    await server.anonymous.post('/api/auth/signin/magic-link', { email })
    const token = await mailbox.nextToken(email)
    expectRefusal(await server.anonymous.post('/api/auth/verify-magic-link', { token }), 409)
    expect((await signInToDashboard(server, { email, password })).status).toBe(200)
    // A reset replaces the password instead of removing it.
    await server.anonymous.post('/api/auth/request-password-reset', { email })
    const reset = { token: await mailbox.nextToken(email), newPassword: 'another long password' }
    expect((await server.anonymous.post('/api/auth/reset-password', reset)).status).toBe(200)
    expect((await signInToDashboard(server, { email, password: reset.newPassword })).status).toBe(200)
  })
})
