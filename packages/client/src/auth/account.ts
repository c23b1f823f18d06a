/** The account of the signed-in user: profile, password, address, sessions, factors, passkeys and identities. */
import { finishFlow, runFlow } from './oauth.ts'
import { useCredential } from './passkeys.ts'
import type { SessionKeeper, User } from './session.ts'

export function createAccount(keeper: SessionKeeper) {
  const post = <Data = void>(path: string, body?: object) => keeper.asUser<Data>('POST', path, body)
  /** The list at a path, and a method that removes one of its members. */
  const collection = (path: string, remove: string) => ({
    list: async () => (await keeper.asUser<Record<string, object[]>>('GET', path))[path],
    [remove]: (id: string) => keeper.asUser('DELETE', `${path}/${encodeURIComponent(id)}`),
  })
  return {
    updateProfile: async (patch: object) => (await keeper.asUser<{ user: User }>('PATCH', 'profile', patch)).user,
    /** Ends all other sessions of the user. */
    changePassword: (input: object) => keeper.start(post('change-password', input)),
    changeEmail: ({ email, password }: { email: string; password?: string }) =>
      post('change-email', { newEmail: email, password }),
    verifyEmailChange: (token: string) => post('verify-email-change', { token }),
    requestPasswordReset: (email: string) => keeper.fromDevice('request-password-reset', { email }),
    resetPassword: (token: string, newPassword: string) => keeper.publicly('reset-password', { token, newPassword }),
    requestEmailVerification: () => post('request-email-verification', {}),
    verifyEmail: (token: string) => post('verify-email', { token }),
    sessions: collection('sessions', 'end'),
    mfa: {
      enrollTotp: () => post('mfa/totp/enroll'),
      confirmTotp: (factorId: string, code: string) => post('mfa/totp/verify', { factorId, code }),
      removeTotp: (code: string) => keeper.asUser('DELETE', 'mfa/totp', { code }),
      list: async () => (await keeper.asUser<{ factors: object[] }>('GET', 'mfa/factors')).factors,
    },
    passkeys: {
      ...collection('passkeys', 'remove'),
      async add(name?: string) {
        const { options } = await post<{ options: unknown }>('passkeys/register-options')
        const response = await useCredential('create', 'parseCreationOptionsFromJSON', options)
        return (await post<{ passkey: object }>('passkeys/register', { response, name })).passkey
      },
    },
    identities: {
      ...collection('identities', 'unlink'),
      /** Links a provider in a popup; with `popup: false` the page is left, and `completeRedirect` ends the flow. */
      async link(provider: string, options: { redirectUrl?: string; popup?: boolean } = {}) {
        const path = `oauth/${encodeURIComponent(provider)}/link`
        const start = async (redirectUrl: string) => (await post<{ url: string }>(path, { redirectUrl })).url
        return finishFlow(keeper, await runFlow({ popup: true, start, ...options }))
      },
    },
  }
}
