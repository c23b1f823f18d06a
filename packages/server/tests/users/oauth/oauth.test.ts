/** Sign-in through a real OpenID Connect provider: start, callback, and the resulting account. */
import { afterAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { createClient } from '../../harness/client.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import {
  allUsers,
  appUrl,
  callbackUrl,
  clientOf,
  openBrowser,
  providerOf,
  publicUrl,
  signInAt,
  signInAtProvider,
  startPath,
} from '../../harness/users/oauth.ts'
import { fragmentOf } from '../../harness/users/oauth-browser.ts'
import { openOidcIssuer } from '../../harness/users/oidc-issuer.ts'
import { codeOf } from '../../harness/users/test-user.ts'

const corp = await openOidcIssuer({ redirectUris: ['corp', 'google'].map(callbackUrl) })
/** Another issuer, at which other people have the same names. */
const club = await openOidcIssuer({ redirectUris: [callbackUrl('club')], isStrict: true })
afterAll(() => {
  corp.close()
  club.close()
})

// The issuers use the clock of this machine.
const clock = manualClock(Date.now())
const auth = {
  redirectUrls: ['https://app.example.org', 'https://exact.example.org/cb?x=1', 'com.example.app:/done'],
  providers: { corp: providerOf(corp), google: providerOf(corp), club: providerOf(club) },
}
const config = { auth }
const settings = { publicUrl }

const me = async (server: TestServer, fragment: Readonly<Record<string, string>>) => {
  const { status, body } = await clientOf(server, fragment).get('/api/auth/me')
  expect(status).toBe(200)
  return body.user ?? body
}
const importUser = async (server: TestServer, user: object): Promise<string> => {
  const { body } = await server.service.post('/api/auth/admin/users/import', { users: [user] })
  expect(body.imported).toBe(1)
  return body.results[0].id
}

describeServer('oauth', { config, settings, clock, mode: 'release' }, (server) => {
  /** A flow of a new browser up to the URL of the callback. */
  const callbackOf = async (provider: string, person: string) => {
    const browser = openBrowser(server)
    const providerUrl = await browser.startSignIn(startPath(provider))
    return { browser, url: await signInAtProvider(browser, providerUrl, provider, person) }
  }

  describe('start', () => {
    test('[OAUTH-1] the redirect has state, nonce and the PKCE challenge, and sets a cookie', async () => {
      const browser = openBrowser(server)
      const { status, location, headers } = await browser.visit(publicUrl + startPath('corp'))
      const url = new URL(location ?? '')
      expect(status).toBe(302)
      expect(url.origin).toBe(corp.issuer)
      expect(headers.get('cache-control')).toBe('no-store')
      const { state, nonce, code_challenge, ...others } = Object.fromEntries(url.searchParams)
      expect(others).toEqual({
        response_type: 'code',
        client_id: corp.clientId,
        redirect_uri: callbackUrl('corp'),
        scope: 'openid email profile',
        code_challenge_method: 'S256',
      })
      for (const secret of [state, nonce, code_challenge]) expect(secret).toMatch(/^[\w-]{43}$/)
      const [cookie = ''] = headers.getSetCookie()
      const [pair = '', ...attributes] = cookie.split('; ')
      expect(pair).toMatch(/^__Host-plinth-oauth-[\w-]{16}=[\w-]{43}$/)
      expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=600', 'Path=/', 'SameSite=Lax', 'Secure'])
      expect(location).not.toContain(pair.split('=')[1] ?? '')
      const again = Object.fromEntries(new URL(await browser.startSignIn(startPath('corp'))).searchParams)
      expect(again.state).not.toBe(state)
      expect(again.nonce).not.toBe(nonce)
      expect(again.code_challenge).not.toBe(code_challenge)
    })

    test('[OAUTH-1] an unknown provider is 404', async () => {
      for (const provider of ['unknown', 'Corp', 'constructor', '__proto__', 'hasOwnProperty', '..%2fcorp', '%00'])
        expectRefusal(await server.anonymous.get(startPath(provider)), 404)
    })

    test('[OAUTH-2] a redirect URL that is not allowed is 400', async () => {
      for (const url of [
        'https://app.example.org',
        'https://app.example.org/a?b=c',
        'https://exact.example.org/cb?x=1',
        'com.example.app:/done',
      ])
        expect((await server.anonymous.get(startPath('corp', url))).status).toBe(302)
      const refused = [
        '//evil.example',
        'https://app.example.org@evil.example',
        'https://evil.example\\@app.example.org',
        'https://app.example.org/\r\nSet-Cookie: a=b',
        'https://exact.example.org/',
        'https://exact.example.org/cb?x=1#y',
        'javascript:alert(1)',
        'http://localhost:3000/',
        '',
      ]
      for (const url of refused) {
        const answer = await server.anonymous.get(startPath('corp', url))
        expectRefusal(answer, 400, 'redirect_url')
        expect(answer.headers.getSetCookie()).toEqual([])
      }
      expectRefusal(await server.anonymous.get('/api/auth/oauth/corp'), 400, 'redirect_url')
      expectRefusal(await server.anonymous.get(`${startPath('corp')}&redirect_url=https://evil.example`), 400)
    })
  })

  describe('callback', () => {
    test('[OAUTH-3, OAUTH-15] a new person gets an account and signs in to it the next time', async () => {
      const { browser, url } = await callbackOf('corp', 'ada')
      const { status, location, headers } = await browser.visit(url)
      expect(status).toBe(302)
      expect(location?.split('#')[0]).toBe(appUrl)
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(browser.cookies.get('api.example.org')?.size).toBe(0)
      const first = fragmentOf(location ?? '')
      const user = await me(server, first)
      expect(user).toMatchObject({
        email: 'ada@example.com',
        emailVerified: true,
        displayName: 'Name of ada',
        avatarUrl: 'https://images.example.com/ada.png',
        role: 'user',
        isAnonymous: false,
      })
      expect((await me(server, await signInAt(server, 'corp', 'ada'))).id).toBe(user.id)
      const refreshed = await server.anonymous.post('/api/auth/refresh', { refreshToken: first.refreshToken })
      expect(refreshed).toMatchObject({ status: 200, body: { user: { id: user.id } } })
      const { body } = await clientOf(server, first).get('/api/auth/identities')
      expect(body.identities).toEqual([
        { id: expect.any(String), provider: 'corp', email: 'ada@example.com', createdAt: expect.any(String) },
      ])
      expect(server.logged()).not.toContain(first.refreshToken ?? 'x')
    })

    test('[OAUTH-3] the email comes from the userinfo endpoint if the ID token has none', async () => {
      const user = await me(server, await signInAt(server, 'club', 'grace'))
      expect(user).toMatchObject({ email: 'grace@example.com', emailVerified: true, displayName: 'Name of grace' })
    })

    test('[OAUTH-4] of 50 concurrent callbacks with one state one signs in', async () => {
      const { browser, url } = await callbackOf('corp', 'racer')
      const visits = await Promise.all(Array.from({ length: 50 }, () => browser.visit(url)))
      const signedIn = visits.filter(({ location }) => location?.includes('accessToken'))
      expect(signedIn).toHaveLength(1)
      expect(visits.filter(({ status }) => status === 400)).toHaveLength(49)
      const client = clientOf(server, fragmentOf(signedIn[0]?.location ?? ''))
      expect((await client.get('/api/auth/sessions')).body.sessions).toHaveLength(1)
    })

    test('[OAUTH-4] a callback in another browser is rejected and leaves the flow valid', async () => {
      const { browser, url } = await callbackOf('corp', 'victim')
      const attacker = await callbackOf('corp', 'attacker')
      const without = openBrowser(server)
      for (const other of [without, attacker.browser]) {
        const { status, location } = await other.visit(url)
        expect(status).toBe(400)
        expect(location).toBeNull()
      }
      // The attacker's cookie under the name of the victim's.
      const [name = ''] = browser.cookies.get('api.example.org')?.keys() ?? []
      const [value = ''] = attacker.browser.cookies.get('api.example.org')?.values() ?? []
      for (const cookie of [
        `${name}=${value}`,
        `${name}=`,
        `${name}`,
        `=${value}`,
        `${name}=${'x'.repeat(5000)}`,
        ';;;',
      ]) {
        const { status } = await without.visit(url, { method: 'HEAD', headers: { cookie } })
        expect(status).toBe(400)
      }
      expect((await me(server, await browser.openCallback(url))).email).toBe('victim@example.com')
      expect((await me(server, await attacker.browser.openCallback(attacker.url))).email).toBe('attacker@example.com')
    })

    test('[OAUTH-4] an invalid state, or one of another provider, is 400', async () => {
      const { browser, url } = await callbackOf('corp', 'mixer')
      const { searchParams } = new URL(url)
      const state = searchParams.get('state') ?? ''
      for (const other of ['', 'x', state.slice(1), `${state}A`, `${state} `, '\u0000', 'x'.repeat(4000)]) {
        searchParams.set('state', other)
        expect((await browser.visit(`${callbackUrl('corp')}?${searchParams}`)).status).toBe(400)
      }
      expect((await browser.visit(callbackUrl('corp'))).status).toBe(400)
      expect((await browser.visit(`${url}&state=${state}`)).status).toBe(400)
      expect((await browser.visit(url.replace('/corp/', '/club/'))).status).toBe(400)
    })

    test('[OAUTH-4] a flow expires after ten minutes', async () => {
      const late = await callbackOf('corp', 'late')
      clock.advance(10 * 60_000)
      expect((await late.browser.visit(late.url)).status).toBe(400)
      clock.set(Date.now())
      expect(await allUsers(server)).not.toContainEqual(expect.objectContaining({ email: 'late@example.com' }))
    })

    test('[OAUTH-6] a canceled sign-in returns access-denied without text of the provider', async () => {
      const before = await allUsers(server)
      const { browser, url } = await callbackOf('corp', 'canceling')
      const fragment = await browser.openCallback(url)
      expect(fragment).toEqual({ error: 'access-denied', message: 'The sign-in was canceled' })
      expect(await allUsers(server)).toEqual(before)
    })

    test('[OAUTH-5] a callback that names another issuer is rejected', async () => {
      const { browser, url } = await callbackOf('corp', 'mixed-up')
      const mixed = new URL(url)
      expect(mixed.searchParams.get('iss')).toBe(corp.issuer)
      mixed.searchParams.set('iss', club.issuer)
      expect(await browser.openCallback(mixed.href)).toMatchObject({ error: 'provider-error' })
    })

    test('[OAUTH-17] a code of one flow is invalid in another', async () => {
      const mine = await callbackOf('corp', 'mine')
      const theirs = await callbackOf('corp', 'theirs')
      const crossed = new URL(mine.url)
      crossed.searchParams.set('code', new URL(theirs.url).searchParams.get('code') ?? '')
      expect(await mine.browser.openCallback(crossed.href)).toMatchObject({ error: 'provider-error' })
    })

    test('[OAUTH-17] concurrent flows never mix: each signs in its own person', async () => {
      const flows = ['corp', 'google', 'club'].flatMap((provider) =>
        ['ann', 'ben', 'cyd', 'dan'].map((name) => ({ provider, person: `${name}-${provider}` })),
      )
      const ends = await Promise.all(
        flows.map(async ({ provider, person }) => (await me(server, await signInAt(server, provider, person))).email),
      )
      expect(ends).toEqual(flows.map(({ person }) => `${person}@example.com`))
    })

    test('[OAUTH-17] one browser can run several flows and finish them in any order', async () => {
      const browser = openBrowser(server)
      const urls: string[] = []
      for (const [provider, person] of [
        ['corp', 'eve-1'],
        ['club', 'eve-2'],
        ['google', 'eve-3'],
        ['corp', 'eve-1'],
      ] as const) {
        const providerUrl = await browser.startSignIn(startPath(provider))
        // Another browser session at the provider, in which this person is signed in.
        urls.push(await signInAtProvider(openBrowser(server), providerUrl, provider, person))
      }
      const emails: string[] = []
      for (const url of urls.reverse()) emails.push((await me(server, await browser.openCallback(url))).email)
      expect(emails).toEqual(['eve-1@example.com', 'eve-3@example.com', 'eve-2@example.com', 'eve-1@example.com'])
    })
  })

  describe('the account', () => {
    const password = 'a long enough password'

    test('[OAUTH-7] an existing account is used if it and the provider have verified the email', async () => {
      const id = await importUser(server, { email: 'Both@Example.com', password, verified: true, displayName: 'Kept' })
      expect(await me(server, await signInAt(server, 'corp', 'both'))).toMatchObject({ id, displayName: 'Kept' })
      const signin = await server.anonymous.post('/api/auth/signin', { email: 'both@example.com', password })
      expect(signin.status).toBe(200)
    })

    test('[OAUTH-7] an existing account with an unverified address is not used', async () => {
      await server.anonymous.post('/api/auth/signup', { email: 'hijacked@example.com', password })
      const before = await allUsers(server)
      expect(await signInAt(server, 'corp', 'hijacked')).toMatchObject({ error: 'account-exists' })
      expect(await allUsers(server)).toEqual(before)
      const { body } = await server.anonymous.post('/api/auth/signin', { email: 'hijacked@example.com', password })
      const client = createClient(() => server.url, { authorization: `Bearer ${body.accessToken}` })
      expect((await client.get('/api/auth/identities')).body).toEqual({ identities: [] })
    })

    test('[OAUTH-7, OAUTH-8] an address that the provider has not verified does not match an existing account', async () => {
      const id = await importUser(server, { email: 'owner@example.com', password, verified: true })
      const before = await allUsers(server)
      expect(await signInAt(server, 'corp', 'unverified-owner')).toMatchObject({ error: 'account-exists' })
      expect(await allUsers(server)).toEqual(before)
      expect((await me(server, await signInAt(server, 'corp', 'owner'))).id).toBe(id)
    })

    test('[OAUTH-8] an address that the provider has not verified is not stored', async () => {
      const squatter = await me(server, await signInAt(server, 'corp', 'unverified-famous'))
      expect(squatter).toMatchObject({ email: null, emailVerified: false, isAnonymous: false })
      const owner = await me(server, await signInAt(server, 'club', 'famous'))
      expect(owner.email).toBe('famous@example.com')
      expect(owner.id).not.toBe(squatter.id)
      expect((await me(server, await signInAt(server, 'corp', 'unverified-famous'))).id).toBe(squatter.id)
    })

    test('[OAUTH-9] a disabled user is rejected', async () => {
      const { id } = await me(server, await signInAt(server, 'corp', 'banned'))
      await server.service.patch(`/api/auth/admin/users/${id}`, { disabled: true })
      const linked = await importUser(server, { email: 'banned-2@example.com', password, verified: true })
      await server.service.patch(`/api/auth/admin/users/${linked}`, { disabled: true })
      const before = await allUsers(server)
      for (const person of ['banned', 'banned-2'])
        expect(await signInAt(server, 'corp', person)).toEqual({
          error: 'account-disabled',
          message: 'Account is disabled',
        })
      expect(await allUsers(server)).toEqual(before)
    })

    test('[OAUTH-9] a new person is rejected while sign-up is disabled', async () => {
      const known = await me(server, await signInAt(server, 'corp', 'early'))
      await server.reload({ auth: { ...auth, signup: false } })
      const before = await allUsers(server)
      expect(await signInAt(server, 'corp', 'tardy')).toMatchObject({ error: 'signup-disabled' })
      expect(await allUsers(server)).toEqual(before)
      expect((await me(server, await signInAt(server, 'corp', 'early'))).id).toBe(known.id)
      await server.reload(config)
    })

    test('[OAUTH-10] a user with a second factor gets a ticket for it', async () => {
      const client = clientOf(server, await signInAt(server, 'corp', 'careful'))
      const { secret, factorId } = (await client.post('/api/auth/mfa/totp/enroll', {})).body
      const first = await client.post('/api/auth/mfa/totp/verify', { factorId, code: codeOf(secret, clock.now()) })
      expect(first.status).toBe(200)
      const fragment = await signInAt(server, 'corp', 'careful')
      expect(Object.keys(fragment)).toEqual(['mfaTicket'])
      const code = codeOf(secret, clock.now() + 30_000)
      const done = await server.anonymous.post('/api/auth/mfa/verify', { mfaTicket: fragment.mfaTicket, code })
      expect(done).toMatchObject({ status: 200, body: { user: { email: 'careful@example.com' } } })
    })
  })
})

describeServer('oauth in development mode', { config: { auth: { providers: auth.providers } } }, (server) => {
  test('[OAUTH-1] the callback uses the loopback name that the browser started from, and no other host', async () => {
    const { host, port } = new URL(server.url)
    const callbackFor = async (hostHeader: string) => {
      const path = startPath('corp', 'http://localhost:3000/signed-in')
      const { status, headers } = await server.anonymous.get(path, { host: hostHeader })
      expect(status).toBe(302)
      expect(headers.getSetCookie()[0]).toStartWith('plinth-oauth-')
      return new URL(headers.get('location') ?? '').searchParams.get('redirect_uri')
    }
    const callback = (origin: string) => `http://${origin}/api/auth/oauth/corp/callback`
    expect(await callbackFor(host)).toBe(callback(host))
    expect(await callbackFor(`localhost:${port}`)).toBe(callback(`localhost:${port}`))
    for (const other of ['evil.example', `evil.example:${port}`, 'localhost:1', `localhost.evil.example:${port}`])
      expect(await callbackFor(other)).toBe(callback(host))
  })
})
