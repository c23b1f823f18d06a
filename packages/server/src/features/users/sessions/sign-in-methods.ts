/** The ways to sign in to something other than the API, with the same checks: password, second factor, passkey. */
import type { z } from '../../../base/schemas/z.ts'
import type { Counters } from '../../../engines/cluster/cluster.ts'
import type { Call } from '../../../http/endpoint.ts'
import { createPasswordSignIn } from '../accounts/password-sign-in.ts'
import { createMfa, type MfaProof, type TotpEnrollment } from '../mfa/mfa.ts'
import type { UsersParts } from '../parts.ts'
import { type AuthenticationResponse, authenticationResponse } from '../passkeys/ceremony.ts'
import { createPasskeys } from '../passkeys/passkeys.ts'
import { clientOf, createCompleteSignIn, type MfaRequired, type SignInTarget } from './complete-sign-in.ts'

/** A request that signs in. */
type SignInCall = Pick<Call, 'headers' | 'address' | 'caller' | 'requestId' | 'signal'>

/** Each function rejects as the sign-in to the API does, and as the target's `admit`. */
export interface SignInMethods<Result> {
  byPassword(email: string, password: string, call: SignInCall): Promise<Result | MfaRequired>
  byFactor(ticket: string, proof: MfaProof, call: SignInCall): Promise<Result | MfaRequired>
  /** Enrolls an authenticator app with the ticket of a sign-in that requires one. */
  enroll(ticket: string): Promise<TotpEnrollment>
  passkeyOptions(): Promise<object>
  byPasskey(response: AuthenticationResponse, call: SignInCall): Promise<Result | MfaRequired>
  /** Schema of `response`. */
  readonly passkeyResponse: z.ZodType<AuthenticationResponse>
}

export function createSignInMethods<Result>(
  parts: UsersParts,
  counters: Counters,
  target: SignInTarget<Result>,
): SignInMethods<Result> {
  const { database, oneTimeTokens } = parts
  const completeSignIn = createCompleteSignIn({ dialect: database.dialect, oneTimeTokens, target })
  const ours = { ...parts, completeSignIn, target: target.name }
  const signIn = createPasswordSignIn(ours)
  const mfa = createMfa({ ...ours, counters })
  const passkeys = createPasskeys(ours)
  return {
    byPassword: (email, password, call) => signIn(email, password, clientOf(call), false),
    byFactor: (ticket, proof, call) => mfa.verify(ticket, proof, clientOf(call)),
    enroll: mfa.enrollAtSignIn,
    passkeyOptions: () => passkeys.authOptions(null),
    byPasskey: (response, call) => passkeys.authenticate(response, clientOf(call)),
    passkeyResponse: authenticationResponse,
  }
}
