/** Every way to sign up and to sign in. */
import { PlinthError } from '../core/error.ts'
import { queryString } from '../core/transport.ts'
import type { AuthCalls, Json } from './calls.ts'
import { parseFragment, runFlow, takeFragment } from './oauth.ts'
import { useCredential } from './passkeys.ts'
import { type Session, type SignedIn, signedOut, type User } from './session.ts'

export function createSignIn(calls: AuthCalls) {
  const { core, keeper } = calls
  return {
    /** An anonymous user keeps the account and its records. */
    async signUp({ email, password, ...data }: { email: string; password: string }): Promise<Session> {
      await keeper.ready
      const body = { email, password, data }
      return keeper.session?.user.isAnonymous
        ? keeper.start(await calls.asUser<SignedIn & Json>('POST', 'signup', body))
        : calls.start('signup', body)
    },
    signIn: async (input: { email: string; password: string }) =>
      calls.signIn('signin', { ...input, deviceToken: await keeper.deviceToken() }),
    signInAnonymously: () => calls.start('signin/anonymous', {}),
    requestMagicLink: (email: string) => calls.mail('signin/magic-link', email),
    completeMagicLink: (token: string) => calls.signIn('verify-magic-link', { token }),
    requestEmailCode: (email: string) => calls.mail('signin/email-otp', email),
    completeEmailCode: async (email: string, code: string) =>
      calls.signIn('verify-email-otp', { email, code, deviceToken: await keeper.deviceToken() }),
    async signInWithProvider(
      provider: string,
      options: { redirectUrl?: string; popup?: boolean } = {},
    ): Promise<Session> {
      const start = (redirectUrl: string) =>
        `${core.url}/api/auth/oauth/${encodeURIComponent(provider)}${queryString({ redirect_url: redirectUrl })}`
      return finishFlow(calls, await runFlow({ start, ...options }))
    },
    async completeRedirect(): Promise<Session | null> {
      const fragment = takeFragment()
      return fragment === null ? null : finishFlow(calls, fragment)
    },
    async signInWithPasskey() {
      const { options } = await calls.publicly<{ options: Json }>('passkeys/auth-options', {})
      const response = await useCredential('get', options)
      return { session: await calls.start('passkeys/authenticate', { response }) }
    },
    verifyMfa: (ticket: string, code: string) => calls.start('mfa/verify', { mfaTicket: ticket, code }),
    recoverMfa: (ticket: string, recoveryCode: string) =>
      calls.start('mfa/recovery', { mfaTicket: ticket, recoveryCode }),
  }
}

/** Starts the session of a provider's fragment, or links the provider to the signed-in user. */
async function finishFlow(calls: AuthCalls, fragment: string): Promise<Session> {
  const { core, keeper } = calls
  const { mfaTicket, linkTicket, ...tokens } = parseFragment(fragment)
  if (linkTicket) {
    await calls.link(linkTicket)
    if (!keeper.session) throw signedOut()
    return keeper.session
  }
  if (mfaTicket)
    throw new PlinthError({
      status: 401,
      slug: 'mfa-required',
      message: 'Call verifyMfa with the ticket and a code',
      data: { ticket: mfaTicket, factors: ['totp'] },
    })
  // The fragment does not contain the user.
  const headers = { Authorization: `Bearer ${tokens.accessToken}` }
  const { data } = await core.transport.send('GET', '/api/auth/me', { headers, isAnonymous: true })
  return keeper.start({ ...(tokens as SignedIn), ...(data as { user: User }) })
}
