/** Signs access tokens like the users feature of the server, for callers without an account. */
import type { Clock } from '../../../src/base/clock.ts'
import { createFirstSigningKey } from '../../../src/features/users/sessions/signing-keys.ts'
import { type AccessTokenSubject, createTokens } from '../../../src/features/users/sessions/tokens.ts'

export type UserClaims = AccessTokenSubject

/** Signs tokens with the secret of the server. A string is a user id. */
export function createTokenSigner(secret: string, clock: Clock): (claims: UserClaims | string) => Promise<string> {
  const tokens = createTokens(createFirstSigningKey(secret), clock)
  return async (claims) => tokens.signAccess(typeof claims === 'string' ? { id: claims } : claims)
}
