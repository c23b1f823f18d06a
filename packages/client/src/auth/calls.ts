/** Requests under `/api/auth`, and what their answers mean for the session. */
import type { Core } from '../core/core.ts'
import { type Session, SessionKeeper, type SignedIn, type User } from './session.ts'

export interface MfaRequired {
  readonly mfaRequired: true
  readonly mfaTicket: string
  readonly factors: readonly { readonly type: string }[]
}

export type SignInResult =
  | { readonly session: Session }
  | { readonly mfa: { readonly ticket: string; readonly factors: readonly string[] } }

export type AuthCalls = ReturnType<typeof createCalls>

export function createCalls(core: Core) {
  const keeper = new SessionKeeper(core)
  if (!core.options.getToken && !core.options.serviceKey) core.credentials = keeper

  /** A request as the signed-in user. */
  const asUser = <Data = void>(method: string, path: string, body?: object): Promise<Data> =>
    core.json(method, `/api/auth/${path}`, { body })

  /** A request without credentials. */
  const publicly = <Data = void>(path: string, body: object): Promise<Data> =>
    core.json('POST', `/api/auth/${path}`, { body, isAnonymous: true })

  return {
    core,
    keeper,
    asUser,
    publicly,

    /** A body with the device token, with which failed attempts from elsewhere do not rate-limit this device. */
    withDevice: async <Body extends object>(body: Body) => ({ ...body, deviceToken: await keeper.deviceToken() }),

    /** A sign-in that may need a second factor. */
    async signIn(path: string, body: object): Promise<SignInResult> {
      const answer = await publicly<SignedIn | MfaRequired>(path, body)
      if ('mfaRequired' in answer)
        return { mfa: { ticket: answer.mfaTicket, factors: answer.factors.map(({ type }) => type) } }
      return { session: await keeper.start(answer) }
    },

    /** A sign-in that needs nothing more. */
    start: async (path: string, body: object): Promise<Session> => keeper.start(await publicly<SignedIn>(path, body)),

    /** Verifies an address; with the session of its user, that session continues. */
    async verify(path: string, token: string): Promise<void> {
      await keeper.ready
      if (!keeper.session) return publicly(path, { token })
      await asUser('POST', path, { token })
      await keeper.setUser((await asUser<{ user: User }>('GET', 'me')).user)
    },

    /** Completes the linking of a provider. */
    async link(linkTicket: string | undefined): Promise<object> {
      const { identity, user } = await asUser<{ identity: object; user: User }>('POST', 'identities', { linkTicket })
      await keeper.setUser(user)
      return identity
    },
  }
}
