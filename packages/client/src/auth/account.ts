/** The account of the signed-in user: profile, password, address, sessions, factors, passkeys and identities. */
import type { AuthCalls, Json } from './calls.ts'
import { parseFragment, runFlow } from './oauth.ts'
import { useCredential } from './passkeys.ts'
import type { SignedIn, User } from './session.ts'

export function createAccount(calls: AuthCalls) {
  const { keeper } = calls
  const post = async (path: string, body: object): Promise<void> => void (await calls.asUser('POST', path, body))
  const remove = async (path: string, id: string): Promise<void> =>
    void (await calls.asUser('DELETE', `${path}/${encodeURIComponent(id)}`))
  const list = async (path: string, member = path): Promise<object[]> =>
    (await calls.asUser('GET', path))[member] as object[]
  return {
    async updateProfile(patch: object): Promise<User> {
      const { user } = await calls.asUser<{ user: User }>('PATCH', 'profile', patch)
      await keeper.setUser(user)
      return user
    },
    /** Ends all other sessions of the user. */
    async changePassword(input: object): Promise<void> {
      await keeper.start(await calls.asUser<SignedIn & Json>('POST', 'change-password', input))
    },
    changeEmail: ({ email, password }: { email: string; password?: string }) =>
      post('change-email', { newEmail: email, password }),
    verifyEmailChange: (token: string) => calls.verify('verify-email-change', token),
    requestPasswordReset: (email: string) => calls.mail('request-password-reset', email),
    resetPassword: async (token: string, newPassword: string): Promise<void> =>
      void (await calls.publicly('reset-password', { token, newPassword })),
    requestEmailVerification: () => post('request-email-verification', {}),
    verifyEmail: (token: string) => calls.verify('verify-email', token),
    sessions: {
      list: () => list('sessions'),
      end: (id: string) => remove('sessions', id),
    },
    mfa: {
      enrollTotp: () => calls.asUser('POST', 'mfa/totp/enroll'),
      confirmTotp: (factorId: string, code: string) => post('mfa/totp/verify', { factorId, code }),
      removeTotp: async (code: string): Promise<void> => void (await calls.asUser('DELETE', 'mfa/totp', { code })),
      list: () => list('mfa/factors', 'factors'),
    },
    passkeys: {
      async add(name?: string) {
        const { options } = await calls.asUser<{ options: Json }>('POST', 'passkeys/register-options')
        const response = await useCredential('create', options)
        return (await calls.asUser('POST', 'passkeys/register', { response, name })).passkey
      },
      list: () => list('passkeys'),
      remove: (id: string) => remove('passkeys', id),
    },
    identities: {
      list: () => list('identities'),
      /** Links a provider in a popup; with `popup: false` the page is left, and `completeRedirect` ends the flow. */
      async link(provider: string, options: { redirectUrl?: string; popup?: boolean } = {}) {
        const path = `oauth/${encodeURIComponent(provider)}/link`
        const start = async (redirectUrl: string) =>
          (await calls.asUser<{ url: string }>('POST', path, { redirectUrl })).url
        return calls.link(parseFragment(await runFlow({ popup: true, start, ...options })).linkTicket)
      },
      unlink: (id: string) => remove('identities', id),
    },
  }
}
