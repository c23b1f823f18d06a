/** Providers that fail, send invalid responses or deviate from the standards. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createLocalJWKSet, exportJWK, exportPKCS8, generateKeyPair, jwtVerify } from 'jose'
import { manualClock } from '../../../src/base/clock.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import {
  allUsers,
  appUrl,
  callbackUrl,
  clientOf,
  type Fragment,
  openBrowser,
  publicUrl,
  scriptedProvider,
  scriptedReturn,
  signInBy,
  startPath,
} from '../../harness/users/oauth.ts'
import { discordResponses, githubResponses, openOAuthApi } from '../../harness/users/oauth-apis.ts'
import { openScriptedIssuer, type Script } from '../../harness/users/scripted-issuer.ts'

const issuer = await openScriptedIssuer()
/** An issuer whose discovery document is invalid at first. */
const flaky = await openScriptedIssuer()
const githubEmails = [
  { email: 'octocat@example.com', primary: true, verified: true, visibility: 'private' },
  { email: 'other@example.com', primary: false, verified: true, visibility: null },
]
const github = openOAuthApi(githubResponses(583231, githubEmails))
const discord = openOAuthApi(discordResponses({ email: 'nelly@example.com', verified: true }))
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
      // An address without a listener, and one that is forbidden.
      gone: { ...client, issuer: 'http://127.0.0.1:1' },
      inside: { ...client, issuer: 'http://169.254.169.254' },
    },
  },
}
const settings = { publicUrl }

/** The fragment for every failure of a provider. */
const providerError = {
  error: 'provider-error',
  message: 'The provider could not be reached, or its response was invalid',
}
const secretsOfProviders = ['provider-access-token', 'api-access-token', 'inside of the provider']

const me = async (server: TestServer, fragment: Fragment) => (await clientOf(server, fragment).get('/api/auth/me')).body

/** Signs in with GitHub or Discord, whose stubs accept any code. */
async function signInThrough(server: TestServer, provider: string): Promise<Fragment> {
  const browser = openBrowser(server)
  const { searchParams } = new URL(await browser.startSignIn(startPath(provider)))
  return browser.openCallback(`${callbackUrl(provider)}?code=a-code&state=${searchParams.get('state')}`)
}

describeServer('oauth providers', { config, settings, clock }, (server) => {
  const nowSeconds = Math.floor(Date.now() / 1000)

  describe('ID tokens', () => {
    const email = { email: 'token@example.com', email_verified: true }

    test('[OAUTH-5] an ID token with valid claims is accepted, so each case below fails for its own reason', async () => {
      const claims = { ...email, name: 'Tok' }
      expect((await me(server, await signInBy(server, 'corp', issuer, { claims }))).user).toMatchObject({
        email: 'token@example.com',
        displayName: 'Tok',
      })
      const audiences = { ...claims, aud: ['plinth', 'other'], azp: 'plinth' }
      expect(Object.keys(await signInBy(server, 'corp', issuer, { claims: audiences }))).toContain('accessToken')
    })

    const invalidTokens: Readonly<Record<string, Script>> = {
      'of another issuer': { claims: { iss: 'https://evil.example' } },
      'without an issuer': { claims: { iss: undefined } } as unknown as Script,
      'for another client': { claims: { aud: 'another-client' } },
      'for several other clients': { claims: { aud: ['another-client', 'a-third'] } },
      'for several clients, authorized for another': { claims: { aud: ['plinth', 'other'], azp: 'other' } },
      'without an audience': { claims: { aud: undefined } } as unknown as Script,
      'with the nonce of another flow': { claims: { nonce: 'x'.repeat(43) } },
      'without a nonce': { claims: { nonce: undefined } },
      'that has expired': { claims: { iat: nowSeconds - 7200, exp: nowSeconds - 3600 } },
      'without an expiry': { claims: { exp: undefined } } as unknown as Script,
      'that is not valid yet': { claims: { iat: nowSeconds, nbf: nowSeconds + 3600 } },
      'without a subject': { claims: { sub: undefined } } as unknown as Script,
      'with an empty subject': { claims: { sub: '' } },
      'with a subject that is not a string': { claims: { sub: 7 } } as unknown as Script,
      'signed with a forged key': { isForged: true },
      'signed with a key that is not published': { kid: 'key-2' },
      'not signed': { alg: 'none' },
      'signed with a shared secret': { alg: 'HS256' },
      'that is malformed': {
        reply: () => Response.json({ access_token: 'a', token_type: 'Bearer', id_token: 'a.b.c' }),
      },
      'that is missing': { reply: () => Response.json({ access_token: 'a', token_type: 'Bearer' }) },
    }
    for (const [title, script] of Object.entries(invalidTokens))
      test(`[OAUTH-5, OAUTH-6] an ID token ${title} is rejected`, async () => {
        const before = await allUsers(server)
        const claims = { ...email, sub: 'new-person', ...script.claims }
        expect(await signInBy(server, 'corp', issuer, { ...script, claims })).toEqual(providerError)
        expect(await allUsers(server)).toEqual(before)
      })
  })

  describe('failing providers', () => {
    const html = '<html>inside of the provider</html>'
    const failures: Readonly<Record<string, () => Response>> = {
      'with 500': () => new Response(html, { status: 500 }),
      'with an HTML page': () => new Response(html, { headers: { 'content-type': 'text/html' } }),
      'with an empty response': () => new Response(null, { status: 200 }),
      'with a truncated response': () =>
        new Response('{"access_token":"inside of', { headers: { 'content-type': 'application/json' } }),
      'with a JSON array': () => Response.json(['inside of the provider']),
      'with a response that is too large': () =>
        Response.json({ access_token: 'x'.repeat(300 * 1024), token_type: 'Bearer' }),
      'with a redirect': () => new Response(null, { status: 307, headers: { location: 'http://127.0.0.1:1/' } }),
      'with an OAuth error': () =>
        Response.json({ error: 'invalid_grant', error_description: 'inside of the provider' }, { status: 400 }),
      'with an authentication challenge': () =>
        new Response(html, { status: 401, headers: { 'www-authenticate': 'Basic realm="inside of the provider"' } }),
    }
    for (const [title, reply] of Object.entries(failures))
      test(`[OAUTH-6] a token endpoint that responds ${title} redirects to the app with an error`, async () => {
        const before = await allUsers(server)
        const browser = openBrowser(server)
        const url = scriptedReturn(issuer, await browser.startSignIn(startPath('corp')), { reply })
        const { status, location, text } = await browser.visit(url)
        expect(status).toBe(302)
        expect(location).toBe(`${appUrl}#${new URLSearchParams(providerError)}`)
        expect(text).toBe('')
        expect(await allUsers(server)).toEqual(before)
      })

    test('[OAUTH-6] the log has no text of the provider and no secret', async () => {
      const logged = server.logged()
      expect(logged).toContain('users.oauth_provider_failed')
      for (const secret of [...secretsOfProviders, client.clientSecret]) expect(logged).not.toContain(secret)
    })

    test('[OAUTH-6] an error in the callback redirects to the app without text of the provider', async () => {
      for (const error of ['server_error', 'temporarily_unavailable', '<script>', 'account-exists', '']) {
        const browser = openBrowser(server)
        const { searchParams } = new URL(await browser.startSignIn(startPath('corp')))
        const back = new URLSearchParams({ error, error_description: 'x', state: searchParams.get('state') ?? '' })
        expect(await browser.openCallback(`${callbackUrl('corp')}?${back}`)).toEqual(providerError)
      }
    })

    test('[OAUTH-6] starting at an unreachable or forbidden provider redirects to the app immediately', async () => {
      for (const provider of ['gone', 'inside']) {
        const { status, headers } = await server.anonymous.get(startPath(provider))
        expect(status).toBe(302)
        expect(headers.get('location')).toBe(`${appUrl}#${new URLSearchParams(providerError)}`)
        expect(headers.getSetCookie()).toEqual([])
      }
    })

    const documents: Readonly<Record<string, () => Response>> = {
      'of another issuer': () => Response.json({ issuer: 'https://evil.example' }),
      'that is invalid JSON': () => new Response('{', { headers: { 'content-type': 'application/json' } }),
      'that is too large': () => Response.json({ issuer: flaky.issuer, more: 'x'.repeat(300 * 1024) }),
      'that is unavailable': () => new Response(null, { status: 503 }),
      'behind a redirect': () => new Response(null, { status: 302, headers: { location: issuer.issuer } }),
      'with an endpoint that is not a URL': () =>
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

  test('[OAUTH-3] a known person signs in even if the provider sends another email', async () => {
    const claims = { sub: 'mover', email: 'before@example.com', email_verified: true }
    const first = await me(server, await signInBy(server, 'corp', issuer, { claims }))
    const moved = { ...claims, email: 'token@example.com', email_verified: false }
    const then = await me(server, await signInBy(server, 'corp', issuer, { claims: moved }))
    expect(then.user).toMatchObject({ id: first.user.id, email: 'before@example.com' })
  })

  describe('GitHub and Discord', () => {
    test('[OAUTH-18] the GitHub profile combines the user and the emails endpoints', async () => {
      const before = github.requests.length
      const { user } = await me(server, await signInThrough(server, 'github'))
      expect(user).toMatchObject({
        email: 'octocat@example.com',
        emailVerified: true,
        displayName: 'octocat',
        avatarUrl: 'https://avatars.githubusercontent.com/u/583231',
      })
      const requests = github.requests.slice(before)
      expect(requests.map(({ path }) => path)).toEqual(['/token', '/user', '/user/emails'])
      const form = Object.fromEntries(new URLSearchParams(requests[0]?.body))
      expect(form).toMatchObject({ code: 'a-code', client_id: 'plinth', client_secret: 'a secret' })
      expect(form.code_verifier).toMatch(/^[\w-]{43}$/)
      for (const { headers } of requests.slice(1)) {
        expect(headers.get('authorization')).toBe('Bearer api-access-token')
        expect(headers.get('user-agent')).toBe('plinth')
      }
    })

    test('[OAUTH-18, OAUTH-8] an address that GitHub has not verified is not stored', async () => {
      const [primary] = githubEmails
      github.responses = githubResponses(2, [{ ...primary, email: 'unsure@example.com', verified: false }])
      expect((await me(server, await signInThrough(server, 'github'))).user).toMatchObject({ email: null })
      github.responses = githubResponses(583231, githubEmails)
    })

    test('[OAUTH-18] the Discord profile comes from the user endpoint', async () => {
      const { user } = await me(server, await signInThrough(server, 'discord'))
      expect(user).toMatchObject({ email: 'nelly@example.com', emailVerified: true, displayName: 'nelly' })
      discord.responses = discordResponses({ id: '2', email: 'nelly2@example.com', verified: false })
      expect((await me(server, await signInThrough(server, 'discord'))).user).toMatchObject({ email: null })
      discord.responses = discordResponses({ email: 'nelly@example.com', verified: true })
    })

    const failures: Readonly<Record<string, Parameters<typeof openOAuthApi>[0]>> = {
      // GitHub sends this with status 200.
      'a bad code': { '/token': () => Response.json({ error: 'bad_verification_code' }) },
      'a refused request for the user': {
        '/user': () => Response.json({ message: 'Bad credentials' }, { status: 401 }),
      },
      'a user without an id': { '/user': () => Response.json({ login: 'ghost' }) },
      'an id that is not a number': { '/user': () => Response.json({ id: '583231', login: 'octocat' }) },
      'a list of emails that is not an array': { '/user/emails': () => Response.json({ message: 'Not Found' }) },
      'an HTML page': { '/user': () => new Response('<html>') },
      'a response that is too large': {
        '/user/emails': () => Response.json(Array.from({ length: 10_000 }, () => githubEmails[0])),
      },
      'a redirect': { '/user': () => new Response(null, { status: 302, headers: { location: '/user/emails' } }) },
    }
    for (const [title, responses] of Object.entries(failures))
      test(`[OAUTH-6] ${title} from GitHub is a provider error`, async () => {
        const before = await allUsers(server)
        github.responses = { ...githubResponses(583231, githubEmails), ...responses }
        expect(await signInThrough(server, 'github')).toEqual(providerError)
        github.responses = githubResponses(583231, githubEmails)
        expect(await allUsers(server)).toEqual(before)
      })
  })

  test('[OAUTH-6] starting with a forbidden endpoint redirects to the app immediately', async () => {
    for (const name of ['authorize', 'token', 'user']) {
      const endpoints = { ...github.endpoints, [name]: 'http://169.254.169.254/' }
      await server.reload({ auth: { ...config.auth, providers: { github: { ...client, endpoints } } } })
      const location = (await server.anonymous.get(startPath('github'))).headers.get('location')
      expect(location).toBe(`${appUrl}#${new URLSearchParams(providerError)}`)
    }
    await server.reload(config)
  })

  test('[OAUTH-18] a Microsoft email is verified only by xms_edov', async () => {
    const claims = { sub: 'tenant-admin', email: 'ceo@example.com', email_verified: true }
    expect((await me(server, await signInBy(server, 'microsoft', issuer, { claims }))).user.email).toBeNull()
    const ownerVerified = { ...claims, sub: 'ceo', xms_edov: true }
    expect(
      (await me(server, await signInBy(server, 'microsoft', issuer, { claims: ownerVerified }))).user,
    ).toMatchObject({
      email: 'ceo@example.com',
      emailVerified: true,
    })
  })

  describe('posted callbacks', () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    let jwks: ReturnType<typeof createLocalJWKSet>
    beforeAll(async () => {
      const jwk = { ...(await exportJWK(appleKey.publicKey)), kid: 'KEY1234567' }
      jwks = createLocalJWKSet({ keys: [jwk] })
    })

    test('[OAUTH-11, OAUTH-18] a posted callback redirects to the callback with a query, and Apple gets a signed client secret', async () => {
      const browser = openBrowser(server)
      const leftFor = await browser.startSignIn(startPath('apple'))
      expect(new URL(leftFor).searchParams.get('response_mode')).toBe('form_post')
      const claims = { sub: '001.apple', email: 'relay@privaterelay.example.com', email_verified: 'true' }
      const back = new URL(scriptedReturn(issuer, leftFor, { claims }))
      const user = JSON.stringify({ name: { firstName: 'Tim', lastName: 'A' }, email: 'eve@example.com' })
      const form = new URLSearchParams([...back.searchParams, ['user', user], ['id_token', 'ignored']])
      const post = { method: 'POST', headers, body: form.toString() }
      const { status, location } = await browser.visit(callbackUrl('apple'), post)
      expect(status).toBe(303)
      expect(location?.split('?')[0]).toBe(callbackUrl('apple'))
      // Posting again from another browser does not consume the flow.
      expect((await openBrowser(server).visit(callbackUrl('apple'), post)).status).toBe(303)
      const { user: signedIn } = await me(server, await browser.openCallback(location ?? ''))
      expect(signedIn).toMatchObject({ email: claims.email, emailVerified: true, displayName: 'Tim A' })
      const secret = issuer.requests.at(-1)?.form.get('client_secret') ?? ''
      const { payload, protectedHeader } = await jwtVerify(secret, jwks, {
        issuer: 'TEAM123456',
        subject: 'plinth',
        audience: 'https://appleid.apple.com',
        currentDate: new Date(clock.now()),
      })
      expect(protectedHeader.alg).toBe('ES256')
      expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(300)
    })

    test('[OAUTH-11] a posted callback must be a form within the size limit, without repeated fields', async () => {
      const post = (raw: string, type = headers['content-type']) =>
        server.anonymous.request('POST', '/api/auth/oauth/apple/callback', { raw, headers: { 'content-type': type } })
      expectRefusal(await post('{"state":"x"}', 'application/json'), 415)
      expectRefusal(await post('state=x', 'multipart/form-data; boundary=x'), 415)
      expectRefusal(await post(`state=${'x'.repeat(17 * 1024)}`), 413)
      expectRefusal(await post(`state=${'x'.repeat(5000)}`), 400, 'state')
      expectRefusal(await post('state=x&state=y'), 400)
      expectRefusal(await post('state=%ff'), 400)
      const { status, headers: responseHeaders } = await post(
        'state=x&error=%0d%0aSet-Cookie:+a',
        `${headers['content-type']}; charset=UTF-8`,
      )
      expect(status).toBe(303)
      expect(responseHeaders.get('location')).toBe(`${callbackUrl('apple')}?state=x&error=%0D%0ASet-Cookie%3A+a`)
      expectRefusal(
        await server.anonymous.request('POST', '/api/auth/oauth/unknown/callback', { raw: '', headers }),
        404,
      )
    })
  })
})
