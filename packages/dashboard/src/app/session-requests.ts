/** Signing in and out: password, second factor, passkey, and the session of the cookie. */
import { isPlinthError } from 'plinth-client'
import { queryClient } from './queries.ts'
import { type Session, session } from './session-store.ts'
import { api } from './transport.ts'

/** A password was right, and a code has to follow; or first an authenticator app has to be set up. */
export interface SecondFactor {
  readonly ticket: string
  readonly enrollmentRequired: boolean
}

type Answer = Session | ({ readonly mfaRequired: true } & SecondFactor)

function accept(answer: Answer): SecondFactor | null {
  if ('mfaRequired' in answer) return answer
  session.signedIn(answer)
  return null
}

/** Reads the session of the cookie, if there is one. */
export async function loadSession(): Promise<void> {
  try {
    const [before, next] = [session.current.get(), await api.get<Session>('/api/session')]
    // What is cached was read for another caller.
    if (before && before.viewing?.id !== next.viewing?.id) queryClient.clear()
    session.signedIn(next)
  } catch (error) {
    if (!isPlinthError(error) || error.status === 0 || error.status >= 500) throw error
    session.signedOut()
  }
}

export const signInByPassword = async (email: string, password: string): Promise<SecondFactor | null> =>
  accept(await api.post<Answer>('/api/session', { body: { email, password } }))

/** `code` of the authenticator app, or a recovery code. */
export async function signInByCode(
  { ticket }: SecondFactor,
  proof: { readonly code: string } | { readonly recoveryCode: string },
): Promise<void> {
  accept(await api.post<Answer>('/api/session/mfa', { body: { ticket, ...proof } }))
}

export interface Enrollment {
  readonly secret: string
  /** `otpauth://…` */
  readonly qrCodeUri: string
  readonly recoveryCodes: readonly string[]
}

/** The secret for an authenticator app. Its first code completes the sign-in. */
export const enroll = ({ ticket }: SecondFactor): Promise<Enrollment> =>
  api.post<Enrollment>('/api/session/enroll', { body: { ticket } })

export const canUsePasskeys = (): boolean =>
  typeof PublicKeyCredential === 'function' && 'parseRequestOptionsFromJSON' in PublicKeyCredential

/** Rejects with a `NotAllowedError` if the administrator cancels. */
export async function signInByPasskey(): Promise<void> {
  const { options } = await api.post<{ options: PublicKeyCredentialRequestOptionsJSON }>('/api/session/passkey-options')
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  const credential = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential
  try {
    accept(await api.post<Answer>('/api/session/passkey', { body: { response: credential.toJSON() } }))
  } catch (error) {
    throw isPlinthError(error, 'invalid-credentials') ? new Error('The passkey was not accepted.') : error
  }
}

/** From now on, records and files are those that a user sees, and nothing can be changed. */
export async function startViewing(userId: string): Promise<void> {
  await api.post(`/api/view-as/${encodeURIComponent(userId)}`)
  await loadSession()
}

export async function stopViewing(): Promise<void> {
  await api.delete('/api/view-as')
  await loadSession()
}

export async function signOut(): Promise<void> {
  await api.delete('/api/session')
  session.signedOut()
}
