/** What tests of sign-ins through providers share: a server that knows some, and the ways through them. */
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

/** An issuer of this machine as the configuration names one. */
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

/** Where a browser arrives that goes through a real provider as this person, short of the page it was sent from. */
export async function passThrough(
  browser: OAuthBrowser,
  leftFor: string,
  provider: string,
  person: string,
): Promise<string> {
  return browser.follow(`${leftFor}&login_hint=${person}`, callbackUrl(provider))
}

/** A whole sign-in at a real provider; gives what the app is told. */
export async function signInAt(server: TestServer, provider: string, person: string): Promise<Fragment> {
  const browser = openBrowser(server)
  const leftFor = await browser.leave(startPath(provider))
  return browser.comeBack(await passThrough(browser, leftFor, provider, person))
}

/** The callback that a scripted provider sends the browser back to. */
export function scriptedReturn(issuer: ScriptedIssuer, leftFor: string, script: Script = {}): string {
  const { searchParams } = new URL(leftFor)
  const back = new URL(searchParams.get('redirect_uri') ?? '')
  back.searchParams.set('code', issuer.grant(leftFor, script))
  back.searchParams.set('state', searchParams.get('state') ?? '')
  return back.href
}

/** A whole sign-in at a scripted provider. */
export async function signInBy(
  server: TestServer,
  provider: string,
  issuer: ScriptedIssuer,
  script: Script = {},
): Promise<Fragment> {
  const browser = openBrowser(server)
  const leftFor = await browser.leave(startPath(provider))
  return browser.comeBack(scriptedReturn(issuer, leftFor, script))
}

/** The caller that a fragment's tokens make. */
export function clientOf(server: TestServer, fragment: Fragment): Client {
  expect(Object.keys(fragment).sort()).toEqual(['accessToken', 'refreshToken'])
  return createClient(() => server.url, { authorization: `Bearer ${fragment.accessToken}` })
}

/** Everybody there is, with the time of their last change: what a refused sign-in must leave alone. */
export async function everybody(server: TestServer): Promise<readonly unknown[]> {
  const { status, body } = await server.service.get('/api/auth/admin/users?limit=1000')
  expect(status).toBe(200)
  return body.users
}
