/** The account of the signed-in user: profile, password, address, sessions, factors, passkeys and identities. */
import { fromDevice, link, verify } from './calls.ts'
import { parseFragment, runFlow } from './oauth.ts'
import { useCredential } from './passkeys.ts'
import { asUser, publicly } from './requests.ts'
import type { SessionKeeper, SignedIn, User } from './session.ts'

export function createAccount(keeper: SessionKeeper) {
  const post = <Data = void>(path: string, body?: object) => asUser<Data>(keeper, 'POST', path, body)
  /** The list at a path, and a method that removes one of its members. */
  const collection = (path: string, remove: string) => ({
    list: async () => (await asUser<Record<string, object[]>>(keeper, 'GET', path))[path],
    [remove]: (id: string) => asUser(keeper, 'DELETE', `${path}/${encodeURIComponent(id)}`),
  })
  return {
    async updateProfile(patch: object): Promise<User> {
      const { user } = await asUser<{ user: User }>(keeper, 'PATCH', 'profile', patch)
      await keeper.setUser(user)
      return user
    },
    /** Ends all other sessions of the user. */
    changePassword: async (input: object) => keeper.start(await post<SignedIn>('change-password', input)),
    changeEmail: ({ email, password }: { email: string; password?: string }) =>
      post('change-email', { newEmail: email, password }),
    verifyEmailChange: (token: string) => verify(keeper, 'verify-email-change', token),
    requestPasswordReset: (email: string) => fromDevice(keeper, 'request-password-reset', { email }),
    resetPassword: (token: string, newPassword: string) => publicly(keeper, 'reset-password', { token, newPassword }),
    requestEmailVerification: () => post('request-email-verification', {}),
    verifyEmail: (token: string) => verify(keeper, 'verify-email', token),
    sessions: collection('sessions', 'end'),
    mfa: {
      enrollTotp: () => post('mfa/totp/enroll'),
      confirmTotp: (factorId: string, code: string) => post('mfa/totp/verify', { factorId, code }),
      removeTotp: (code: string) => asUser(keeper, 'DELETE', 'mfa/totp', { code }),
      list: async () => (await asUser<{ factors: object[] }>(keeper, 'GET', 'mfa/factors')).factors,
    },
    passkeys: {
      ...collection('passkeys', 'remove'),
      async add(name?: string) {
        const { options } = await post<{ options: unknown }>('passkeys/register-options')
        const response = await useCredential('create', options)
        return (await post<{ passkey: object }>('passkeys/register', { response, name })).passkey
      },
    },
    identities: {
      ...collection('identities', 'unlink'),
      /** Links a provider in a popup; with `popup: false` the page is left, and `completeRedirect` ends the flow. */
      async link(provider: string, options: { redirectUrl?: string; popup?: boolean } = {}) {
        const path = `oauth/${encodeURIComponent(provider)}/link`
        const start = async (redirectUrl: string) => (await post<{ url: string }>(path, { redirectUrl })).url
        return link(keeper, parseFragment(await runFlow({ popup: true, start, ...options })).linkTicket)
      },
    },
  }
}
