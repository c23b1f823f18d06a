/** Users: every way to sign in, the profile, sessions, second factors, passkeys and identities. */
import type { Core } from '../core/core.ts'
import { PlinthError } from '../core/error.ts'
import type { Feature } from '../core/feature.ts'
import { queryString } from '../core/transport.ts'
import { parseFragment, runFlow, takeFragment } from './oauth.ts'
import { useCredential } from './passkeys.ts'
import { type Session, SessionKeeper, type SignedIn, signedOut, type User } from './session.ts'

type Json = Record<string, unknown>
type MfaRequired = { readonly mfaRequired: true; readonly mfaTicket: string; readonly factors: { type: string }[] }
type SignInResult = { session: Session } | { mfa: { ticket: string; factors: string[] } }

function createAuth(core: Core) {
  const keeper = new SessionKeeper(core)
  if (!core.options.getToken && !core.options.serviceKey) core.transport.credentials = keeper

  /** A request under `/api/auth`; with credentials only where the endpoint needs the user. */
  async function call<Data = Json>(method: string, path: string, body?: object, isAnonymous = false): Promise<Data> {
    return (await core.transport.send(method, `/api/auth/${path}`, { body, isAnonymous })).data as Data
  }
  const publicly = <Data = Json>(path: string, body: object): Promise<Data> => call<Data>('POST', path, body, true)

  const mail = async (path: string, body: object): Promise<void> => {
    await publicly(path, { ...body, deviceToken: await keeper.deviceToken() })
  }

  const start = async (signedIn: SignedIn): Promise<{ session: Session }> => ({
    session: await keeper.start(signedIn),
  })

  async function complete(answer: SignedIn | MfaRequired): Promise<SignInResult> {
    if (!('mfaRequired' in answer)) return start(answer)
    return { mfa: { ticket: answer.mfaTicket, factors: answer.factors.map(({ type }) => type) } }
  }
  const signIn = async (path: string, body: object): Promise<SignInResult> => complete(await publicly(path, body))
  const sessionOf = async (answer: Promise<SignedIn>): Promise<Session> => keeper.start(await answer)

  async function link(linkTicket: string | undefined): Promise<unknown> {
    const { identity, user } = await call<{ identity: object; user: User }>('POST', 'identities', { linkTicket })
    await keeper.setUser(user)
    return identity
  }

  /** Verifies an address; with the session of its user, that session continues. */
  async function verify(path: string, token: string): Promise<void> {
    await keeper.ready
    await call('POST', path, { token }, !keeper.session)
    if (keeper.session) await keeper.setUser((await call<{ user: User }>('GET', 'me')).user)
  }

  async function finishProvider(fragment: string): Promise<Session> {
    const { mfaTicket, linkTicket, ...tokens } = parseFragment(fragment)
    if (linkTicket) {
      await link(linkTicket)
      return keeper.session ?? Promise.reject(signedOut())
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

  const auth = {
    get session() {
      return keeper.session
    },
    get user() {
      return keeper.session?.user ?? null
    },
    ready: keeper.ready,
    onChange: (listener: (session: Session | null) => void) => keeper.changes.add(listener),

    /** Signs up; an anonymous user keeps the account and its records. */
    signUp: async ({ email, password, ...data }: { email: string; password: string }) => {
      await keeper.ready
      return sessionOf(call('POST', 'signup', { email, password, data }, !keeper.session?.user.isAnonymous))
    },
    signIn: async (input: { email: string; password: string }) =>
      signIn('signin', { ...input, deviceToken: await keeper.deviceToken() }),
    signInAnonymously: () => sessionOf(publicly('signin/anonymous', {})),
    requestMagicLink: (email: string) => mail('signin/magic-link', { email }),
    completeMagicLink: (token: string) => signIn('verify-magic-link', { token }),
    requestEmailCode: (email: string) => mail('signin/email-otp', { email }),
    completeEmailCode: async (email: string, code: string) =>
      signIn('verify-email-otp', { email, code, deviceToken: await keeper.deviceToken() }),
    async signInWithProvider(provider: string, options: { redirectUrl?: string; popup?: boolean } = {}) {
      const start = (redirectUrl: string) =>
        `${core.url}/api/auth/oauth/${encodeURIComponent(provider)}${queryString({ redirect_url: redirectUrl })}`
      return finishProvider(await runFlow({ start, ...options }))
    },
    async completeRedirect(): Promise<Session | null> {
      const fragment = takeFragment()
      return fragment === null ? null : finishProvider(fragment)
    },
    async signInWithPasskey() {
      const { options } = await publicly<{ options: Json }>('passkeys/auth-options', {})
      return start(await publicly('passkeys/authenticate', { response: await useCredential('get', options) }))
    },
    verifyMfa: (ticket: string, code: string) => sessionOf(publicly('mfa/verify', { mfaTicket: ticket, code })),
    recoverMfa: (ticket: string, recoveryCode: string) =>
      sessionOf(publicly('mfa/recovery', { mfaTicket: ticket, recoveryCode })),

    async refresh(): Promise<Session | null> {
      await keeper.refresh()
      return keeper.session
    },
    /** Signs out of this device, also while the server is away. */
    async signOut() {
      const refreshToken = await keeper.end()
      if (refreshToken) await publicly('signout', { refreshToken }).catch(() => undefined)
    },

    async updateProfile(patch: object) {
      const { user } = await call<{ user: User }>('PATCH', 'profile', patch)
      await keeper.setUser(user)
      return user
    },
    changePassword: async (input: object) => void (await sessionOf(call('POST', 'change-password', input))),
    changeEmail: async ({ email, password }: { email: string; password?: string }) =>
      void (await call('POST', 'change-email', { newEmail: email, password })),
    verifyEmailChange: (token: string) => verify('verify-email-change', token),
    requestPasswordReset: (email: string) => mail('request-password-reset', { email }),
    resetPassword: async (token: string, newPassword: string) =>
      void (await publicly('reset-password', { token, newPassword })),
    requestEmailVerification: async () => void (await call('POST', 'request-email-verification', {})),
    verifyEmail: (token: string) => verify('verify-email', token),

    sessions: {
      list: async () => (await call<{ sessions: object[] }>('GET', 'sessions')).sessions,
      end: async (id: string) => void (await call('DELETE', `sessions/${encodeURIComponent(id)}`)),
    },
    mfa: {
      enrollTotp: () => call('POST', 'mfa/totp/enroll'),
      confirmTotp: async (factorId: string, code: string) =>
        void (await call('POST', 'mfa/totp/verify', { factorId, code })),
      removeTotp: async (code: string) => void (await call('DELETE', 'mfa/totp', { code })),
      list: async () => (await call<{ factors: object[] }>('GET', 'mfa/factors')).factors,
    },
    passkeys: {
      async add(name?: string) {
        const { options } = await call<{ options: Json }>('POST', 'passkeys/register-options')
        const response = await useCredential('create', options)
        return (await call('POST', 'passkeys/register', { response, name })).passkey
      },
      list: async () => (await call<{ passkeys: object[] }>('GET', 'passkeys')).passkeys,
      remove: async (id: string) => void (await call('DELETE', `passkeys/${encodeURIComponent(id)}`)),
    },
    identities: {
      list: async () => (await call<{ identities: object[] }>('GET', 'identities')).identities,
      /** Links a provider in a popup; with `popup: false` the page is left, and `completeRedirect` ends the flow. */
      async link(provider: string, options: { redirectUrl?: string; popup?: boolean } = {}) {
        const start = async (redirectUrl: string) =>
          (await call<{ url: string }>('POST', `oauth/${encodeURIComponent(provider)}/link`, { redirectUrl })).url
        const { linkTicket } = parseFragment(await runFlow({ popup: true, start, ...options }))
        return link(linkTicket)
      },
      unlink: async (id: string) => void (await call('DELETE', `identities/${encodeURIComponent(id)}`)),
    },
  }
  return auth
}

/** Users and sessions. */
export const auth: Feature = {
  name: 'auth',
  install: (core) => ({ auth: createAuth(core) }),
}
