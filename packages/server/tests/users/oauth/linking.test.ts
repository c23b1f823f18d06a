/** Linking and unlinking providers: authorization, the linked account, and the last sign-in method. */
import { afterAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { recentSignInMs } from '../../../src/limits/users.ts'
import { type Client, createClient } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { unlimitedRates } from '../../harness/users/accounts.ts'
import { createAuthenticator } from '../../harness/users/authenticator.ts'
import { mailAuth } from '../../harness/users/mail-config.ts'
import { openMailbox } from '../../harness/users/mailbox.ts'
import {
  allUsers,
  appUrl,
  clientOf,
  openBrowser,
  providerOf,
  publicUrl,
  scriptedProvider,
  scriptedReturn,
  signInAt,
  signInAtProvider,
  signInBy,
} from '../../harness/users/oauth.ts'
import { openOidcIssuer } from '../../harness/users/oidc-issuer.ts'
import { openScriptedIssuer } from '../../harness/users/scripted-issuer.ts'
import { signUp } from '../../harness/users/test-user.ts'

const corp = await openOidcIssuer({ redirectUris: [`${publicUrl}/api/auth/oauth/corp/callback`] })
const scripted = await openScriptedIssuer()
afterAll(() => {
  corp.close()
  scripted.close()
})

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const clock = manualClock(Date.now())
const auth = {
  ...mailAuth(mailbox),
  redirectUrls: ['https://app.example.org'],
  providers: { corp: providerOf(corp), club: scriptedProvider(scripted), team: scriptedProvider(scripted) },
}
const config = { auth, rateLimits: unlimitedRates }

describeServer('linking', { config, settings: { publicUrl }, clock }, (server) => {
  const link = (client: Client, linkTicket: unknown) => client.post('/api/auth/identities', { linkTicket })
  const identitiesOf = async (client: Client) => (await client.get('/api/auth/identities')).body.identities
  const start = async (client: Client, provider: string): Promise<string> => {
    const { status, body } = await client.post(`/api/auth/oauth/${provider}/link`, { redirectUrl: appUrl })
    expect(status).toBe(200)
    return body.url
  }
  /** A ticket for this person at the real provider. */
  async function ticketAt(client: Client, person: string): Promise<string> {
    const browser = openBrowser(server)
    const providerUrl = (await browser.visit(await start(client, 'corp'))).location ?? ''
    const fragment = await browser.openCallback(await signInAtProvider(browser, providerUrl, 'corp', person))
    expect(Object.keys(fragment)).toEqual(['linkTicket'])
    return fragment.linkTicket ?? ''
  }
  /** A ticket for a person with these claims at the scripted provider. */
  async function ticketBy(client: Client, claims: object, provider = 'club'): Promise<string> {
    const browser = openBrowser(server)
    const providerUrl = (await browser.visit(await start(client, provider))).location ?? ''
    return (
      (await browser.openCallback(scriptedReturn(scripted, providerUrl, { claims: { ...claims } }))).linkTicket ?? ''
    )
  }
  const anonymous = async (): Promise<{ id: string; client: Client }> => {
    const { status, body } = await server.anonymous.post('/api/auth/signin/anonymous', {})
    expect(status).toBe(201)
    return {
      id: body.user.id,
      client: createClient(() => server.url, { authorization: `Bearer ${body.accessToken}` }),
    }
  }

  describe('linking', () => {
    test('[OAUTH-12, OAUTH-15] an identity is linked to the user who started the flow, and can then sign in', async () => {
      const person = await signUp(server)
      const linked = await link(person.client, await ticketAt(person.client, 'linked'))
      expect(linked.status).toBe(201)
      expect(linked.body.identity).toEqual({
        id: expect.any(String),
        provider: 'corp',
        email: 'linked@example.com',
        createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      })
      expect(linked.body.user).toMatchObject({ id: person.id, email: person.email, emailVerified: false })
      expect(await identitiesOf(person.client)).toEqual([linked.body.identity])
      const { body } = await clientOf(server, await signInAt(server, 'corp', 'linked')).get('/api/auth/me')
      expect(body.user.id).toBe(person.id)
    })

    test('[OAUTH-12] linking requires a signed-in user and an allowed redirect URL', async () => {
      const { client } = await signUp(server)
      const path = '/api/auth/oauth/corp/link'
      expectRefusal(await server.anonymous.post(path, { redirectUrl: appUrl }), 401)
      expectRefusal(await server.service.post(path, { redirectUrl: appUrl }), 403)
      expectRefusal(await client.post('/api/auth/oauth/unknown/link', { redirectUrl: appUrl }), 404)
      for (const redirectUrl of ['https://evil.example', '//evil.example', '', undefined, 7])
        expectRefusal(await client.post(path, { redirectUrl }), 400, 'redirectUrl')
      expectRefusal(await client.get('/api/auth/oauth/corp?link=x'), 400)
      for (const caller of [server.anonymous, server.service]) {
        const status = caller === server.anonymous ? 401 : 403
        expectRefusal(await caller.get('/api/auth/identities'), status)
        expectRefusal(await link(caller, 'x'), status)
        expectRefusal(await caller.delete('/api/auth/identities/x'), status)
      }
    })

    test('[OAUTH-12] the ticket of another user is rejected and stays valid for its owner', async () => {
      const [victim, attacker] = [await signUp(server), await signUp(server)]
      const ticket = await ticketAt(attacker.client, 'led-through')
      const before = await allUsers(server)
      expectRefusal(await link(victim.client, ticket), 400)
      expect(await allUsers(server)).toEqual(before)
      expect(await identitiesOf(victim.client)).toEqual([])
      expect((await link(attacker.client, ticket)).status).toBe(201)
    })

    test('[OAUTH-12] the callback works only in the browser that started the flow, and does not sign in', async () => {
      const { client } = await signUp(server)
      const browser = openBrowser(server)
      const providerUrl = (await browser.visit(await start(client, 'corp'))).location ?? ''
      const url = await signInAtProvider(browser, providerUrl, 'corp', 'unbound')
      expect((await openBrowser(server).visit(url)).status).toBe(400)
      expect(Object.keys(await browser.openCallback(url))).toEqual(['linkTicket'])
    })

    test('[OAUTH-12] of 50 concurrent uses of a start URL, and of a ticket, one succeeds', async () => {
      const { client } = await signUp(server)
      const url = await start(client, 'club')
      const visits = await Promise.all(Array.from({ length: 50 }, () => openBrowser(server).visit(url)))
      expect(visits.map(({ status }) => status).sort()).toEqual([302, ...Array.from({ length: 49 }, () => 400)])
      const ticket = await ticketBy(client, { sub: 'ticket-racer' })
      const answers = await Promise.all(Array.from({ length: 50 }, () => link(client, ticket)))
      expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 49 }, () => 400)])
    })

    test('[OAUTH-12] start URLs and tickets expire after two minutes, and each token is valid for its step only', async () => {
      const { client } = await signUp(server)
      const [url, ticket] = [await start(client, 'club'), await ticketBy(client, { sub: 'late' })]
      const browser = openBrowser(server)
      await browser.visit(await start(client, 'club'))
      const [state] = [...(browser.cookies.get('api.example.org')?.values() ?? [])]
      for (const other of [new URL(url).searchParams.get('link'), state, '', 'x'.repeat(43), null, 7])
        expectRefusal(await link(client, other), 400)
      expect((await browser.visit(`${publicUrl}/api/auth/oauth/club?link=${ticket}`)).status).toBe(400)
      const [lateUrl, lateTicket] = [await start(client, 'club'), await ticketBy(client, { sub: 'late' })]
      clock.advance(2 * 60_000)
      expect((await browser.visit(lateUrl)).status).toBe(400)
      expectRefusal(await link(client, lateTicket), 400)
      expect(await identitiesOf(client)).toEqual([])
      clock.set(Date.now())
    })

    test('[OAUTH-7] an identity linked before the address was verified is removed when its owner verifies it', async () => {
      const squatter = await signUp(server)
      expect((await link(squatter.client, await ticketBy(squatter.client, { sub: 'squatter' }))).status).toBe(201)
      await server.anonymous.post('/api/auth/signin/magic-link', { email: squatter.email })
      const token = await mailbox.nextToken(squatter.email)
      const { status, body } = await server.anonymous.post('/api/auth/verify-magic-link', { token })
      expect(status).toBe(200)
      expect(body.user.id).toBe(squatter.id)
      const owner = createClient(() => server.url, { authorization: `Bearer ${body.accessToken}` })
      expect(await identitiesOf(owner)).toEqual([])
      expectRefusal(await squatter.client.get('/api/auth/identities'), 401)
      const again = await signInBy(server, 'club', scripted, { claims: { sub: 'squatter' } })
      expect((await clientOf(server, again).get('/api/auth/me')).body.user.id).not.toBe(squatter.id)
    })

    test('[OAUTH-14] an identity of another user is 409, and linking it again changes nothing', async () => {
      const owner = await signUp(server)
      const first = await link(owner.client, await ticketBy(owner.client, { sub: 'shared' }))
      const other = await signUp(server)
      const before = await allUsers(server)
      expectRefusal(await link(other.client, await ticketBy(other.client, { sub: 'shared' })), 409)
      const again = await link(owner.client, await ticketBy(owner.client, { sub: 'shared' }))
      expect(again.status).toBe(201)
      expect(again.body.identity).toEqual(first.body.identity)
      expect(await allUsers(server)).toEqual(before)
      // The same subject at another provider is another person.
      expect((await link(other.client, await ticketBy(other.client, { sub: 'shared' }, 'team'))).status).toBe(201)
    })

    test('[OAUTH-14] linking one identity to two users concurrently succeeds once', async () => {
      const accounts = await Promise.all([signUp(server), signUp(server)])
      const tickets = await Promise.all(accounts.map(({ client }) => ticketBy(client, { sub: 'torn' })))
      const answers = await Promise.all(accounts.map(({ client }, at) => link(client, tickets[at])))
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
    })

    test('[OAUTH-14] a user can link at most twenty identities', async () => {
      const { client } = await signUp(server)
      for (let at = 0; at < 20; at++)
        expect((await link(client, await ticketBy(client, { sub: `many-${at}` }))).status).toBe(201)
      expectRefusal(await link(client, await ticketBy(client, { sub: 'many-20' })), 409)
      const providers = (await identitiesOf(client)).map(({ provider }: { provider: string }) => provider)
      expect(providers).toEqual(Array.from({ length: 20 }, () => 'club'))
    })
  })

  describe('the linked account', () => {
    test('[OAUTH-13] an anonymous user is upgraded and keeps the id', async () => {
      const { id, client } = await anonymous()
      const { status, body } = await link(client, await ticketAt(client, 'upgraded'))
      expect(status).toBe(201)
      expect(body.user).toMatchObject({
        id,
        isAnonymous: false,
        email: 'upgraded@example.com',
        emailVerified: true,
        displayName: 'Name of upgraded',
        avatarUrl: 'https://images.example.com/upgraded.png',
      })
      const signedIn = clientOf(server, await signInAt(server, 'corp', 'upgraded'))
      expect((await signedIn.get('/api/auth/me')).body.user).toMatchObject({ id, isAnonymous: false })
    })

    test('[OAUTH-13] an address that the provider has not verified is not taken over', async () => {
      const { client } = await anonymous()
      const { body } = await link(client, await ticketAt(client, 'unverified-upgraded-2'))
      expect(body.user).toMatchObject({ isAnonymous: false, email: null, emailVerified: false })
    })

    test('[OAUTH-14] an anonymous user cannot take over the address of another user', async () => {
      const { client } = await anonymous()
      const claims = { sub: 'second-self', email: 'known@example.com', email_verified: true }
      const ticket = await ticketBy(client, claims)
      await signInBy(server, 'team', scripted, { claims: { ...claims, sub: 'first-self' } })
      const before = await allUsers(server)
      expectRefusal(await link(client, ticket), 409)
      expect(await allUsers(server)).toEqual(before)
      expect(await identitiesOf(client)).toEqual([])
    })

    test('[OAUTH-9] an anonymous user cannot link while sign-up is disabled', async () => {
      const { client } = await anonymous()
      const ticket = await ticketBy(client, { sub: 'closed' })
      await server.reload({ ...config, auth: { ...auth, signup: false } })
      const before = await allUsers(server)
      expectRefusal(await link(client, ticket), 403)
      expect(await allUsers(server)).toEqual(before)
      await server.reload(config)
      expect((await link(client, ticket)).status).toBe(201)
    })

    test('[PASSKEY-13] an old session cannot link an identity to an account with a passkey', async () => {
      const person = await signUp(server)
      const passkeys = '/api/auth/passkeys'
      const { options } = (await person.client.post(`${passkeys}/register-options`, undefined)).body
      const response = createAuthenticator({ origin: 'http://localhost:5173' }).register(options)
      expect((await person.client.post(`${passkeys}/register`, { response })).status).toBe(201)
      await server.elapse(recentSignInMs + 1)
      const refused = await person.client.post('/api/auth/oauth/club/link', { redirectUrl: appUrl })
      expect(expectRefusal(refused, 403).slug).toBe('sign-in-again')
      const { accessToken } = (await person.signIn()).body
      const again = createClient(() => server.url, { authorization: `Bearer ${accessToken}` })
      expect((await link(again, await ticketBy(again, { sub: 'guarded' }))).status).toBe(201)
    })

    test('[OAUTH-13] linking verifies the address of the account if the provider has verified the same one', async () => {
      const person = await signUp(server)
      const other = { sub: 'own-1', email: 'elsewhere@example.com', email_verified: true, name: 'Real Name' }
      const first = await link(person.client, await ticketBy(person.client, other))
      expect(first.body.user).toMatchObject({ email: person.email, emailVerified: false, displayName: 'Real Name' })
      const claims = { sub: 'own-2', email: person.email.toUpperCase(), email_verified: false, name: 'Second Name' }
      const second = await link(person.client, await ticketBy(person.client, claims))
      expect(second.body.user).toMatchObject({ emailVerified: false, displayName: 'Real Name' })
      const verified = { ...claims, sub: 'own-3', email_verified: true }
      const third = await link(person.client, await ticketBy(person.client, verified))
      expect(third.body.user).toMatchObject({ email: person.email, emailVerified: true })
    })
  })

  describe('unlinking', () => {
    const unlink = (client: Client, id: string) => client.delete(`/api/auth/identities/${id}`)

    test('[OAUTH-16] unlinking an identity keeps the other sign-in methods', async () => {
      const person = await signUp(server)
      const { body } = await link(person.client, await ticketAt(person.client, 'unlinked'))
      const other = await signUp(server)
      expectRefusal(await unlink(other.client, body.identity.id), 404)
      expectRefusal(await unlink(person.client, 'unknown'), 404)
      const unlinked = await unlink(person.client, body.identity.id)
      expect(unlinked).toMatchObject({ status: 200, body: { ok: true } })
      expect(await identitiesOf(person.client)).toEqual([])
      expectRefusal(await unlink(person.client, body.identity.id), 404)
      expect((await person.signIn()).status).toBe(200)
      // A sign-in with the unlinked identity creates a new account.
      const { body: me } = await clientOf(server, await signInAt(server, 'corp', 'unlinked')).get('/api/auth/me')
      expect(me.user.id).not.toBe(person.id)
    })

    test('[OAUTH-16] the last sign-in method cannot be removed', async () => {
      const claims = { sub: 'only-way' }
      const client = clientOf(server, await signInBy(server, 'club', scripted, { claims }))
      const [identity] = await identitiesOf(client)
      expectRefusal(await unlink(client, identity.id), 409)
      expect(await identitiesOf(client)).toEqual([identity])
      expect((await link(client, await ticketBy(client, claims, 'team'))).status).toBe(201)
      expect((await unlink(client, identity.id)).status).toBe(200)
      const [last] = await identitiesOf(client)
      expect(last.provider).toBe('team')
      expectRefusal(await unlink(client, last.id), 409)
    })

    test('[OAUTH-16] the last identity can be removed if the email is verified', async () => {
      const claims = { sub: 'mailed', email: 'mailed@example.com', email_verified: true }
      const client = clientOf(server, await signInBy(server, 'club', scripted, { claims }))
      const [identity] = await identitiesOf(client)
      expect((await unlink(client, identity.id)).status).toBe(200)
      // The verified address signs in to the same account.
      const again = clientOf(server, await signInBy(server, 'club', scripted, { claims }))
      const ids = await Promise.all([client, again].map(async (who) => (await who.get('/api/auth/me')).body.user.id))
      expect(ids[0]).toBe(ids[1])
    })

    test('[OAUTH-16] of the last two identities only one is removed when both are removed concurrently', async () => {
      for (let round = 0; round < 5; round++) {
        const claims = { sub: `last-two-${round}` }
        const client = clientOf(server, await signInBy(server, 'club', scripted, { claims }))
        await link(client, await ticketBy(client, claims, 'team'))
        const ids: string[] = (await identitiesOf(client)).map(({ id }: { id: string }) => id)
        const answers = await Promise.all([...ids, ...ids].map((id) => unlink(client, id)))
        expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
        expect(await identitiesOf(client)).toHaveLength(1)
      }
    })
  })
})
