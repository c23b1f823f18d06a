/** Signing in and out: password, second factor, passkey, and the session of the cookie. */
import { isPlinthError } from 'plinth-client'
import { type Session, session } from './session-store.ts'
import { api } from './transport.ts'

/** A password was right, and a code has to follow. */
export interface SecondFactor {
  readonly ticket: string
}

type Answer = Session | { readonly mfaRequired: true; readonly ticket: string }

function accept(answer: Answer): SecondFactor | null {
  if ('mfaRequired' in answer) return { ticket: answer.ticket }
  session.signedIn(answer)
  return null
}

/** Reads the session of the cookie, if there is one. */
export async function loadSession(): Promise<void> {
  try {
    session.signedIn(await api.get<Session>('/api/session'))
  } catch (error) {
    if (!isPlinthError(error) || error.status === 0 || error.status >= 500) throw error
    session.signedOut()
  }
}

export const signInByPassword = async (email: string, password: string): Promise<SecondFactor | null> =>
  accept(await api.post<Answer>('/api/session', { body: { email, password } }))

export const signInByCode = async ({ ticket }: SecondFactor, code: string): Promise<void> =>
  void accept(await api.post<Answer>('/api/session/mfa', { body: { ticket, code: code.trim() } }))

export const canUsePasskeys = (): boolean =>
  typeof PublicKeyCredential === 'function' && 'parseRequestOptionsFromJSON' in PublicKeyCredential

/** Rejects with a `NotAllowedError` if the administrator cancels. */
export async function signInByPasskey(): Promise<void> {
  const options = await api.post<PublicKeyCredentialRequestOptionsJSON>('/api/session/passkey-options', { body: {} })
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  const credential = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential
  accept(await api.post<Answer>('/api/session/passkey', { body: credential.toJSON() }))
}

export async function signOut(): Promise<void> {
  await api.delete('/api/session')
  session.signedOut()
}
