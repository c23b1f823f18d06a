/** What the answers of requests under `/api/auth` mean for the session. */
import { asUser, publicly } from './requests.ts'
import type { Session, SessionKeeper, SignedIn, User } from './session.ts'

interface MfaRequired {
  readonly mfaRequired: true
  readonly mfaTicket: string
  readonly factors: readonly { readonly type: string }[]
}

export type SignInResult =
  | { readonly session: Session }
  | { readonly mfa: { readonly ticket: string; readonly factors: readonly string[] } }

/** The same with the device token, with which failed attempts from elsewhere do not rate-limit this device. */
export const fromDevice = async <Data = void>(keeper: SessionKeeper, path: string, body: object): Promise<Data> =>
  publicly(keeper, path, { ...body, deviceToken: await keeper.values.get('device') })

/** The result of a sign-in that may need a second factor. */
export async function finishSignIn(keeper: SessionKeeper, answer: SignedIn | MfaRequired): Promise<SignInResult> {
  return 'mfaRequired' in answer
    ? { mfa: { ticket: answer.mfaTicket, factors: answer.factors.map(({ type }) => type) } }
    : { session: await keeper.start(answer) }
}

/** A sign-in that needs nothing more. */
export const start = async (keeper: SessionKeeper, path: string, body: object): Promise<Session> =>
  keeper.start(await publicly<SignedIn>(keeper, path, body))

/** Verifies an address; with the session of its user, that session continues. */
export async function verify(keeper: SessionKeeper, path: string, token: string): Promise<void> {
  await asUser(keeper, 'POST', path, { token })
  if (keeper.session) await keeper.setUser((await asUser<{ user: User }>(keeper, 'GET', 'me')).user)
}

/** Completes the linking of a provider. */
export async function link(keeper: SessionKeeper, linkTicket: string | undefined): Promise<object> {
  type Linked = { identity: object; user: User }
  const { identity, user } = await asUser<Linked>(keeper, 'POST', 'identities', { linkTicket })
  await keeper.setUser(user)
  return identity
}
