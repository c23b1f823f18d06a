/** Requests under `/api/auth`, and what their answers mean for the session. */
import type { Core } from '../core/core.ts'
import { type Session, SessionKeeper, type SignedIn, type User } from './session.ts'

export type Json = Record<string, unknown>

export interface MfaRequired {
  readonly mfaRequired: true
  readonly mfaTicket: string
  readonly factors: readonly { readonly type: string }[]
}

export type SignInResult =
  | { readonly session: Session }
  | { readonly mfa: { readonly ticket: string; readonly factors: readonly string[] } }

export class AuthCalls {
  readonly core: Core
  readonly keeper: SessionKeeper

  constructor(core: Core) {
    this.core = core
    this.keeper = new SessionKeeper(core)
    if (!core.options.getToken && !core.options.serviceKey) core.transport.credentials = this.keeper
  }

  /** A request as the signed-in user. */
  async asUser<Data = Json>(method: string, path: string, body?: object): Promise<Data> {
    return (await this.core.transport.send(method, `/api/auth/${path}`, { body })).data as Data
  }

  /** A request without credentials. */
  async publicly<Data = Json>(path: string, body: object): Promise<Data> {
    return (await this.core.transport.send('POST', `/api/auth/${path}`, { body, isAnonymous: true })).data as Data
  }

  /** Requests a mail. With the device token, failed attempts from elsewhere do not rate-limit this device. */
  async mail(path: string, email: string): Promise<void> {
    await this.publicly(path, { email, deviceToken: await this.keeper.deviceToken() })
  }

  /** A sign-in that may need a second factor. */
  async signIn(path: string, body: object): Promise<SignInResult> {
    const answer = await this.publicly<SignedIn | MfaRequired>(path, body)
    if ('mfaRequired' in answer)
      return { mfa: { ticket: answer.mfaTicket, factors: answer.factors.map(({ type }) => type) } }
    return { session: await this.keeper.start(answer) }
  }

  /** A sign-in that needs nothing more. */
  async start(path: string, body: object): Promise<Session> {
    return this.keeper.start(await this.publicly<SignedIn>(path, body))
  }

  /** Verifies an address; with the session of its user, that session continues. */
  async verify(path: string, token: string): Promise<void> {
    await this.keeper.ready
    if (!this.keeper.session) return void (await this.publicly(path, { token }))
    await this.asUser('POST', path, { token })
    await this.keeper.setUser((await this.asUser<{ user: User }>('GET', 'me')).user)
  }

  /** Completes the linking of a provider. */
  async link(linkTicket: string | undefined): Promise<object> {
    const { identity, user } = await this.asUser<{ identity: object; user: User }>('POST', 'identities', { linkTicket })
    await this.keeper.setUser(user)
    return identity
  }
}
