/** Sign-ins through real and scripted providers, for tests. */
import { expect } from 'bun:test'

import { type Client, createClient } from '../client.ts'
import type { TestServer } from '../server.ts'
import { createOAuthBrowser, type OAuthBrowser } from './oauth-browser.ts'
import type { OidcIssuer } from './oidc-issuer.ts'
import type { Script, ScriptedIssuer } from './scripted-issuer.ts'

export const publicUrl = 'https://api.example.org'
export const appUrl = 'https://app.example.org/signed-in'
export const callbackUrl = (provider: string): string => `${publicUrl}/api/auth/oauth/${provider}/callback`
export const startPath = (provider: string, redirectUrl = appUrl): string =>
  `/api/auth/oauth/${provider}?redirect_url=${encodeURIComponent(redirectUrl)}`

/** The configuration of an issuer on this machine. */
export const providerOf = ({ issuer, clientId, clientSecret }: Omit<OidcIssuer, 'close'>) => ({
  issuer,
  clientId,
  clientSecret,
})
export const scriptedProvider = ({ issuer }: ScriptedIssuer) =>
  providerOf({ issuer, clientId: 'plinth', clientSecret: 'a secret' })

export type Fragment = Readonly<Record<string, string>>

export const openBrowser = (server: TestServer): OAuthBrowser =>
  createOAuthBrowser({ publicUrl, serverUrl: () => server.url })

/** Signs in at a real provider as this person; returns the callback URL that the provider redirects to, unvisited. */
export async function signInAtProvider(
  browser: OAuthBrowser,
  providerUrl: string,
  provider: string,
  person: string,
): Promise<string> {
  return browser.follow(`${providerUrl}&login_hint=${person}`, callbackUrl(provider))
}

/** A complete sign-in at a real provider; returns the fragment that the app receives. */
export async function signInAt(server: TestServer, provider: string, person: string): Promise<Fragment> {
  const browser = openBrowser(server)
  const providerUrl = await browser.startSignIn(startPath(provider))
  return browser.openCallback(await signInAtProvider(browser, providerUrl, provider, person))
}

/** The callback URL that a scripted provider redirects to. */
export function scriptedReturn(issuer: ScriptedIssuer, providerUrl: string, script: Script = {}): string {
  const { searchParams } = new URL(providerUrl)
  const back = new URL(searchParams.get('redirect_uri') ?? '')
  back.searchParams.set('code', issuer.grant(providerUrl, script))
  back.searchParams.set('state', searchParams.get('state') ?? '')
  return back.href
}

/** A complete sign-in at a scripted provider. */
export async function signInBy(
  server: TestServer,
  provider: string,
  issuer: ScriptedIssuer,
  script: Script = {},
): Promise<Fragment> {
  const browser = openBrowser(server)
  const providerUrl = await browser.startSignIn(startPath(provider))
  return browser.openCallback(scriptedReturn(issuer, providerUrl, script))
}

/** A client with the tokens of a fragment. */
export function clientOf(server: TestServer, fragment: Fragment): Client {
  expect(Object.keys(fragment).sort()).toEqual(['accessToken', 'refreshToken'])
  return createClient(() => server.url, { authorization: `Bearer ${fragment.accessToken}` })
}

/** All users with the time of their last change, which a refused sign-in must not change. */
export async function allUsers(server: TestServer): Promise<readonly unknown[]> {
  const { status, body } = await server.service.get('/api/auth/admin/users?limit=1000')
  expect(status).toBe(200)
  return body.users
}
