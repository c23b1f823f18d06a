/** Every way to sign up and to sign in. */
import { queryString } from '../core/request.ts'
import { finishFlow, runFlow, takeFragment } from './oauth.ts'
import { useCredential } from './passkeys.ts'
import type { Session, SessionKeeper, SignedIn } from './session.ts'

interface MfaRequired {
  readonly mfaRequired: true
  readonly mfaTicket: string
  readonly factors: readonly { readonly type: string }[]
}

export type SignInResult =
  | { readonly session: Session }
  | { readonly mfa: { readonly ticket: string; readonly factors: readonly string[] } }

export function createSignIn(keeper: SessionKeeper) {
  /** A sign-in that needs nothing more. */
  const start = (path: string, body: object) => keeper.start(keeper.publicly(path, body))
  /** A sign-in that may need a second factor. */
  const signIn = async (path: string, body: object): Promise<SignInResult> => {
    const answer = await keeper.fromDevice<SignedIn | MfaRequired>(path, body)
    return 'mfaRequired' in answer
      ? { mfa: { ticket: answer.mfaTicket, factors: answer.factors.map(({ type }) => type) } }
      : { session: await keeper.start(answer) }
  }
  return {
    /** An anonymous user keeps the account and its records. */
    async signUp({ email, password, ...data }: { email: string; password: string }): Promise<Session> {
      await keeper.ready
      const body = { email, password, data }
      const token = keeper.session?.user.isAnonymous ? undefined : null
      return keeper.start(keeper.asUser('POST', 'signup', body, token))
    },
    signIn: (input: { email: string; password: string }) => signIn('signin', input),
    signInAnonymously: () => start('signin/anonymous', {}),
    requestMagicLink: (email: string) => keeper.fromDevice('signin/magic-link', { email }),
    completeMagicLink: (token: string) => signIn('verify-magic-link', { token }),
    requestEmailCode: (email: string) => keeper.fromDevice('signin/email-otp', { email }),
    completeEmailCode: (email: string, code: string) => signIn('verify-email-otp', { email, code }),
    async signInWithProvider(provider: string, options?: { redirectUrl?: string; popup?: boolean }): Promise<Session> {
      const path = `${keeper.core.url}/api/auth/oauth/${encodeURIComponent(provider)}`
      const startAt = (redirectUrl: string) => path + queryString({ redirect_url: redirectUrl })
      return (await finishFlow(keeper, await runFlow({ start: startAt, ...options }))) as Session
    },
    async completeRedirect(): Promise<Session | null> {
      const fragment = takeFragment()
      if (!fragment) return null
      await finishFlow(keeper, fragment)
      return keeper.session
    },
    async signInWithPasskey() {
      const { options } = await keeper.publicly<{ options: unknown }>('passkeys/auth-options', {})
      const response = await useCredential('get', 'parseRequestOptionsFromJSON', options)
      return { session: await start('passkeys/authenticate', { response }) }
    },
    verifyMfa: (mfaTicket: string, code: string) => start('mfa/verify', { mfaTicket, code }),
    recoverMfa: (mfaTicket: string, recoveryCode: string) => start('mfa/recovery', { mfaTicket, recoveryCode }),
  }
}
