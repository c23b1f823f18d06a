/** Providers that fail, send invalid responses or deviate from the standards. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createLocalJWKSet, exportJWK, exportPKCS8, generateKeyPair, jwtVerify } from 'jose'
import { manualClock } from '../../../src/base/clock.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import {
  appUrl,
  callbackUrl,
  clientOf,
  everybody,
  type Fragment,
  openBrowser,
  publicUrl,
  scriptedProvider,
  scriptedReturn,
  signInBy,
  startPath,
} from '../../harness/users/oauth.ts'
import { discordAnswers, githubAnswers, openOAuthApi } from '../../harness/users/oauth-apis.ts'
import { openScriptedIssuer, type Script } from '../../harness/users/scripted-issuer.ts'

const issuer = await openScriptedIssuer()
/** One that fails at discovery, and is asked for it again. */
const flaky = await openScriptedIssuer()
const githubEmails = [
  { email: 'octocat@example.com', primary: true, verified: true, visibility: 'private' },
  { email: 'other@example.com', primary: false, verified: true, visibility: null },
]
const github = openOAuthApi(githubAnswers(583231, githubEmails))
const discord = openOAuthApi(discordAnswers({ email: 'nelly@example.com', verified: true }))
const appleKey = await generateKeyPair('ES256', { extractable: true })
afterAll(() => {
  for (const opened of [issuer, flaky, github, discord]) opened.close()
})

const clock = manualClock(Date.now())
const client = { clientId: 'plinth', clientSecret: 'a secret' }
const config = {
  auth: {
    redirectUrls: ['https://app.example.org'],
    providers: {
      corp: scriptedProvider(issuer),
      flaky: scriptedProvider(flaky),
      microsoft: scriptedProvider(issuer),
      apple: {
        clientId: 'plinth',
        teamId: 'TEAM123456',
        keyId: 'KEY1234567',
        privateKey: await exportPKCS8(appleKey.privateKey),
        issuer: issuer.issuer,
      },
      github: { ...client, endpoints: github.endpoints },
      discord: { ...client, endpoints: discord.endpoints },
      // Nobody listens there, and nobody may be asked there.
      gone: { ...client, issuer: 'http://127.0.0.1:1' },
      inside: { ...client, issuer: 'http://169.254.169.254' },
    },
  },
}
const settings = { publicUrl }

/** What every failure of a provider looks like from outside. */
const providerError = {
  error: 'provider-error',
  message: 'The provider could not be reached, or its response was invalid',
}
const secretsOfProviders = ['provider-access-token', 'api-access-token', 'inside of the provider']

const me = async (server: TestServer, fragment: Fragment) => (await clientOf(server, fragment).get('/api/auth/me')).body

/** Through GitHub or Discord, with any code. */
async function signInThrough(server: TestServer, provider: string): Promise<Fragment> {
  const browser = openBrowser(server)
  const { searchParams } = new URL(await browser.leave(startPath(provider)))
  return browser.comeBack(`${callbackUrl(provider)}?code=a-code&state=${searchParams.get('state')}`)
}

describeServer('oauth providers', { config, settings, clock }, (server) => {
  const nowSeconds = Math.floor(Date.now() / 1000)

  describe('an ID token', () => {
    const email = { email: 'token@example.com', email_verified: true }

    test('[OAUTH-5] with valid claims is accepted, so each case below fails for its own reason', async () => {
      const claims = { ...email, name: 'Tok' }
      expect((await me(server, await signInBy(server, 'corp', issuer, { claims }))).user).toMatchObject({
        email: 'token@example.com',
        displayName: 'Tok',
      })
      const audiences = { ...claims, aud: ['plinth', 'other'], azp: 'plinth' }
      expect(Object.keys(await signInBy(server, 'corp', issuer, { claims: audiences }))).toContain('accessToken')
    })

    const lies: Readonly<Record<string, Script>> = {
      'of another issuer': { claims: { iss: 'https://evil.example' } },
      'of no issuer': { claims: { iss: undefined } } as unknown as Script,
      'for another client': { claims: { aud: 'another-client' } },
      'for others of several clients': { claims: { aud: ['another-client', 'a-third'] } },
      'for several clients, issued to another': { claims: { aud: ['plinth', 'other'], azp: 'other' } },
      'for nobody': { claims: { aud: undefined } } as unknown as Script,
      'of another flow': { claims: { nonce: 'x'.repeat(43) } },
      'of no flow': { claims: { nonce: undefined } },
      'of the past': { claims: { iat: nowSeconds - 7200, exp: nowSeconds - 3600 } },
      'without an end': { claims: { exp: undefined } } as unknown as Script,
      'of the future': { claims: { iat: nowSeconds, nbf: nowSeconds + 3600 } },
      'of nobody': { claims: { sub: undefined } } as unknown as Script,
      'of an empty subject': { claims: { sub: '' } },
      'of a subject that is no text': { claims: { sub: 7 } } as unknown as Script,
      'signed by somebody else': { isForged: true },
      'signed with a key that is not published': { kid: 'key-2' },
      'not signed': { alg: 'none' },
      'signed with a shared secret': { alg: 'HS256' },
      'that is none': { reply: () => Response.json({ access_token: 'a', token_type: 'Bearer', id_token: 'a.b.c' }) },
      'that is not sent': { reply: () => Response.json({ access_token: 'a', token_type: 'Bearer' }) },
    }
    for (const [title, lie] of Object.entries(lies))
      test(`[OAUTH-5, OAUTH-6] ${title} is rejected`, async () => {
        const before = await everybody(server)
        const claims = { ...email, sub: 'somebody-new', ...lie.claims }
        expect(await signInBy(server, 'corp', issuer, { ...lie, claims })).toEqual(providerError)
        expect(await everybody(server)).toEqual(before)
      })
  })

  describe('a provider that fails', () => {
    const html = '<html>inside of the provider</html>'
    const failures: Readonly<Record<string, () => Response>> = {
      'with 500': () => new Response(html, { status: 500 }),
      'with a page': () => new Response(html, { headers: { 'content-type': 'text/html' } }),
      'with an empty answer': () => new Response(null, { status: 200 }),
      'with half an answer': () =>
        new Response('{"access_token":"inside of', { headers: { 'content-type': 'application/json' } }),
      'with a list': () => Response.json(['inside of the provider']),
      'with too much': () => Response.json({ access_token: 'x'.repeat(300 * 1024), token_type: 'Bearer' }),
      'by sending us elsewhere': () =>
        new Response(null, { status: 307, headers: { location: 'http://127.0.0.1:1/' } }),
      'with an error of its own': () =>
        Response.json({ error: 'invalid_grant', error_description: 'inside of the provider' }, { status: 400 }),
      'with a challenge': () =>
        new Response(html, { status: 401, headers: { 'www-authenticate': 'Basic realm="inside of the provider"' } }),
    }
    for (const [title, reply] of Object.entries(failures))
      test(`[OAUTH-6] ${title} leads back to the app`, async () => {
        const before = await everybody(server)
        const browser = openBrowser(server)
        const url = scriptedReturn(issuer, await browser.leave(startPath('corp')), { reply })
        const { status, location, text } = await browser.visit(url)
        expect([status, location, text]).toEqual([302, `${appUrl}#${new URLSearchParams(providerError)}`, ''])
        expect(await everybody(server)).toEqual(before)
      })

    test('[OAUTH-6] the log has no text of the provider and no secret', async () => {
      const logged = server.logged()
      expect(logged).toContain('users.oauth_provider_failed')
      for (const secret of [...secretsOfProviders, client.clientSecret]) expect(logged).not.toContain(secret)
    })

    test('[OAUTH-6] an error in the callback leads to the app, without text of the provider', async () => {
      for (const error of ['server_error', 'temporarily_unavailable', '<script>', 'account-exists', '']) {
        const browser = openBrowser(server)
        const { searchParams } = new URL(await browser.leave(startPath('corp')))
        const back = new URLSearchParams({ error, error_description: 'x', state: searchParams.get('state') ?? '' })
        expect(await browser.comeBack(`${callbackUrl('corp')}?${back}`)).toEqual(providerError)
      }
    })

    test('[OAUTH-6] an unreachable or forbidden provider leads back to the app at once', async () => {
      for (const provider of ['gone', 'inside']) {
        const { status, headers } = await server.anonymous.get(startPath(provider))
        expect([status, headers.get('location')]).toEqual([302, `${appUrl}#${new URLSearchParams(providerError)}`])
        expect(headers.getSetCookie()).toEqual([])
      }
    })

    const documents: Readonly<Record<string, () => Response>> = {
      'of another issuer': () => Response.json({ issuer: 'https://evil.example' }),
      'that is none': () => new Response('{', { headers: { 'content-type': 'application/json' } }),
      'that is too large': () => Response.json({ issuer: flaky.issuer, more: 'x'.repeat(300 * 1024) }),
      'that is away': () => new Response(null, { status: 503 }),
      'that is elsewhere': () => new Response(null, { status: 302, headers: { location: issuer.issuer } }),
      'with an endpoint that is no address': () =>
        Response.json({ ...flaky.metadata, authorization_endpoint: 'javascript:alert(1)' }),
      'without endpoints': () => Response.json({ issuer: flaky.issuer }),
    }
    for (const [title, document] of Object.entries(documents))
      test(`[OAUTH-6, OAUTH-19] a discovery document ${title} is rejected and loaded again`, async () => {
        await server.reload({ ...config })
        flaky.discover(document)
        const location = (await server.anonymous.get(startPath('flaky'))).headers.get('location')
        expect(location).toBe(`${appUrl}#${new URLSearchParams(providerError)}`)
        flaky.discover(null)
        expect(Object.keys(await signInBy(server, 'flaky', flaky))).toContain('accessToken')
      })

    test('[OAUTH-19] a discovery document is cached for an hour', async () => {
      await server.reload({ ...config })
      const before = flaky.discoveries()
      await Promise.all(Array.from({ length: 10 }, () => signInBy(server, 'flaky', flaky)))
      expect(flaky.discoveries()).toBe(before + 1)
      clock.advance(60 * 60_000 - 1)
      await signInBy(server, 'flaky', flaky)
      expect(flaky.discoveries()).toBe(before + 1)
      clock.advance(1)
      await signInBy(server, 'flaky', flaky)
      expect(flaky.discoveries()).toBe(before + 2)
    })
  })

  test('[OAUTH-3] 30 concurrent first sign-ins of one person create one user', async () => {
    const claims = { sub: 'popular', email: 'popular@example.com', email_verified: true }
    const ends = await Promise.all(
      Array.from({ length: 30 }, async () => me(server, await signInBy(server, 'corp', issuer, { claims }))),
    )
    expect(new Set(ends.map(({ user }) => user.id)).size).toBe(1)
    const { body } = await server.service.get('/api/auth/admin/users?email=popular@example.com')
    expect(body.users).toHaveLength(1)
  })

  test('[OAUTH-3] a known person signs in even if the provider sends another e-mail', async () => {
    const claims = { sub: 'mover', email: 'before@example.com', email_verified: true }
    const first = await me(server, await signInBy(server, 'corp', issuer, { claims }))
    const moved = { ...claims, email: 'token@example.com', email_verified: false }
    const then = await me(server, await signInBy(server, 'corp', issuer, { claims: moved }))
    expect([then.user.id, then.user.email]).toEqual([first.user.id, 'before@example.com'])
  })

  describe('GitHub and Discord', () => {
    test('[OAUTH-18] the GitHub profile combines the user and the e-mail endpoints', async () => {
      const from = github.asked.length
      const { user } = await me(server, await signInThrough(server, 'github'))
      expect(user).toMatchObject({
        email: 'octocat@example.com',
        emailVerified: true,
        displayName: 'octocat',
        avatarUrl: 'https://avatars.githubusercontent.com/u/583231',
      })
      const asked = github.asked.slice(from)
      expect(asked.map(({ path }) => path)).toEqual(['/token', '/user', '/user/emails'])
      const form = Object.fromEntries(new URLSearchParams(asked[0]?.body))
      expect(form).toMatchObject({ code: 'a-code', client_id: 'plinth', client_secret: 'a secret' })
      expect(form.code_verifier).toMatch(/^[\w-]{43}$/)
      for (const { headers } of asked.slice(1))
        expect([headers.get('authorization'), headers.get('user-agent')]).toEqual(['Bearer api-access-token', 'plinth'])
    })

    test('[OAUTH-18, OAUTH-8] an address that GitHub has not verified is not stored', async () => {
      const [primary] = githubEmails
      github.answers = githubAnswers(2, [{ ...primary, email: 'unsure@example.com', verified: false }])
      expect((await me(server, await signInThrough(server, 'github'))).user).toMatchObject({ email: null })
      github.answers = githubAnswers(583231, githubEmails)
    })

    test('[OAUTH-18] the Discord profile comes from the user endpoint', async () => {
      const { user } = await me(server, await signInThrough(server, 'discord'))
      expect(user).toMatchObject({ email: 'nelly@example.com', emailVerified: true, displayName: 'nelly' })
      discord.answers = discordAnswers({ id: '2', email: 'nelly2@example.com', verified: false })
      expect((await me(server, await signInThrough(server, 'discord'))).user).toMatchObject({ email: null })
      discord.answers = discordAnswers({ email: 'nelly@example.com', verified: true })
    })

    const failures: Readonly<Record<string, Parameters<typeof openOAuthApi>[0]>> = {
      // GitHub says so with a 200.
      'a bad code': { '/token': () => Response.json({ error: 'bad_verification_code' }) },
      'an answer without the person': { '/user': () => Response.json({ message: 'Bad credentials' }, { status: 401 }) },
      'a person without an id': { '/user': () => Response.json({ login: 'ghost' }) },
      'an id that is no number': { '/user': () => Response.json({ id: '583231', login: 'octocat' }) },
      'addresses that are none': { '/user/emails': () => Response.json({ message: 'Not Found' }) },
      'a page': { '/user': () => new Response('<html>') },
      'too much': { '/user/emails': () => Response.json(Array.from({ length: 10_000 }, () => githubEmails[0])) },
      'a redirect': { '/user': () => new Response(null, { status: 302, headers: { location: '/user/emails' } }) },
    }
    for (const [title, answers] of Object.entries(failures))
      test(`[OAUTH-6] ${title} is an error of the provider`, async () => {
        const before = await everybody(server)
        github.answers = { ...githubAnswers(583231, githubEmails), ...answers }
        expect(await signInThrough(server, 'github')).toEqual(providerError)
        github.answers = githubAnswers(583231, githubEmails)
        expect(await everybody(server)).toEqual(before)
      })
  })

  test('[OAUTH-6] forbidden endpoints lead back to the app at once', async () => {
    for (const name of ['authorize', 'token', 'user']) {
      const endpoints = { ...github.endpoints, [name]: 'http://169.254.169.254/' }
      await server.reload({ auth: { ...config.auth, providers: { github: { ...client, endpoints } } } })
      const location = (await server.anonymous.get(startPath('github'))).headers.get('location')
      expect(location).toBe(`${appUrl}#${new URLSearchParams(providerError)}`)
    }
    await server.reload(config)
  })

  test('[OAUTH-18] a Microsoft e-mail is verified only by xms_edov', async () => {
    const claims = { sub: 'tenant-admin', email: 'ceo@example.com', email_verified: true }
    expect((await me(server, await signInBy(server, 'microsoft', issuer, { claims }))).user.email).toBeNull()
    const vouched = { ...claims, sub: 'ceo', xms_edov: true }
    expect((await me(server, await signInBy(server, 'microsoft', issuer, { claims: vouched }))).user).toMatchObject({
      email: 'ceo@example.com',
      emailVerified: true,
    })
  })

  describe('a form that the provider posts', () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    let jwks: ReturnType<typeof createLocalJWKSet>
    beforeAll(async () => {
      const jwk = { ...(await exportJWK(appleKey.publicKey)), kid: 'KEY1234567' }
      jwks = createLocalJWKSet({ keys: [jwk] })
    })

    test('[OAUTH-11, OAUTH-18] redirects to the callback with a query, and Apple gets a signed client secret', async () => {
      const browser = openBrowser(server)
      const leftFor = await browser.leave(startPath('apple'))
      expect(new URL(leftFor).searchParams.get('response_mode')).toBe('form_post')
      const claims = { sub: '001.apple', email: 'relay@privaterelay.example.com', email_verified: 'true' }
      const back = new URL(scriptedReturn(issuer, leftFor, { claims }))
      const user = JSON.stringify({ name: { firstName: 'Tim', lastName: 'A' }, email: 'eve@example.com' })
      const form = new URLSearchParams([...back.searchParams, ['user', user], ['id_token', 'ignored']])
      const post = { method: 'POST', headers, body: form.toString() }
      const { status, location } = await browser.visit(callbackUrl('apple'), post)
      expect([status, location?.split('?')[0]]).toEqual([303, callbackUrl('apple')])
      // Posting again, or from elsewhere, uses nothing up.
      expect((await openBrowser(server).visit(callbackUrl('apple'), post)).status).toBe(303)
      const told = await me(server, await browser.comeBack(location ?? ''))
      expect(told.user).toMatchObject({ email: claims.email, emailVerified: true, displayName: 'Tim A' })
      const secret = issuer.requests.at(-1)?.form.get('client_secret') ?? ''
      const { payload, protectedHeader } = await jwtVerify(secret, jwks, {
        issuer: 'TEAM123456',
        subject: 'plinth',
        audience: 'https://appleid.apple.com',
        currentDate: new Date(clock.now()),
      })
      expect([protectedHeader.alg, (payload.exp ?? 0) - (payload.iat ?? 0)]).toEqual(['ES256', 300])
    })

    test('[OAUTH-11] must be a form within the size limit, without repeated fields', async () => {
      const post = (raw: string, type = headers['content-type']) =>
        server.anonymous.request('POST', '/api/auth/oauth/apple/callback', { raw, headers: { 'content-type': type } })
      expectRefusal(await post('{"state":"x"}', 'application/json'), 415)
      expectRefusal(await post('state=x', 'multipart/form-data; boundary=x'), 415)
      expectRefusal(await post(`state=${'x'.repeat(17 * 1024)}`), 413)
      expectRefusal(await post(`state=${'x'.repeat(5000)}`), 400, 'state')
      expectRefusal(await post('state=x&state=y'), 400)
      expectRefusal(await post('state=%ff'), 400)
      const { status, headers: answered } = await post(
        'state=x&error=%0d%0aSet-Cookie:+a',
        `${headers['content-type']}; charset=UTF-8`,
      )
      expect([status, answered.get('location')]).toEqual([
        303,
        `${callbackUrl('apple')}?state=x&error=%0D%0ASet-Cookie%3A+a`,
      ])
      expectRefusal(
        await server.anonymous.request('POST', '/api/auth/oauth/unknown/callback', { raw: '', headers }),
        404,
      )
    })
  })
})
