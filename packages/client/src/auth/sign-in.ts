/** Every way to sign up and to sign in. */
import { PlinthError } from '../core/error.ts'
import { queryString } from '../core/request.ts'
import type { AuthCalls } from './calls.ts'
import { parseFragment, runFlow, takeFragment } from './oauth.ts'
import { useCredential } from './passkeys.ts'
import type { Session, SignedIn, User } from './session.ts'

export function createSignIn(calls: AuthCalls) {
  const { core, keeper, asUser, publicly, withDevice, signIn, start } = calls
  return {
    /** An anonymous user keeps the account and its records. */
    async signUp({ email, password, ...data }: { email: string; password: string }): Promise<Session> {
      await keeper.ready
      const body = { email, password, data }
      return keeper.session?.user.isAnonymous
        ? keeper.start(await asUser<SignedIn>('POST', 'signup', body))
        : start('signup', body)
    },
    signIn: async (input: { email: string; password: string }) => signIn('signin', await withDevice(input)),
    signInAnonymously: () => start('signin/anonymous', {}),
    requestMagicLink: async (email: string) => publicly('signin/magic-link', await withDevice({ email })),
    completeMagicLink: (token: string) => signIn('verify-magic-link', { token }),
    requestEmailCode: async (email: string) => publicly('signin/email-otp', await withDevice({ email })),
    completeEmailCode: async (email: string, code: string) =>
      signIn('verify-email-otp', await withDevice({ email, code })),
    async signInWithProvider(provider: string, options?: { redirectUrl?: string; popup?: boolean }): Promise<Session> {
      const path = `${core.url}/api/auth/oauth/${encodeURIComponent(provider)}`
      const startAt = (redirectUrl: string) => path + queryString({ redirect_url: redirectUrl })
      return finishFlow(calls, await runFlow({ start: startAt, ...options }))
    },
    async completeRedirect(): Promise<Session | null> {
      const fragment = takeFragment()
      return fragment === null ? null : finishFlow(calls, fragment)
    },
    async signInWithPasskey() {
      const { options } = await publicly<{ options: unknown }>('passkeys/auth-options', {})
      const response = await useCredential('get', options)
      return { session: await start('passkeys/authenticate', { response }) }
    },
    verifyMfa: (mfaTicket: string, code: string) => start('mfa/verify', { mfaTicket, code }),
    recoverMfa: (mfaTicket: string, recoveryCode: string) => start('mfa/recovery', { mfaTicket, recoveryCode }),
  }
}

/** Starts the session of a provider's fragment, or links the provider to the signed-in user. */
async function finishFlow({ core, keeper, link }: AuthCalls, fragment: string): Promise<Session> {
  const { mfaTicket, linkTicket, ...tokens } = parseFragment(fragment)
  if (linkTicket) {
    await link(linkTicket)
    return keeper.session as Session
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
  const { user } = await core.json<{ user: User }>('GET', '/api/auth/me', { headers, isAnonymous: true })
  return keeper.start({ ...(tokens as SignedIn), user })
}
