/** Access tokens as the server's own users feature signs them, for callers that tests make up. */
import type { Clock } from '../../../src/base/clock.ts'
import { createFirstSigningKey } from '../../../src/features/users/sessions/signing-keys.ts'
import { type AccessTokenSubject, createTokens } from '../../../src/features/users/sessions/tokens.ts'

export type UserClaims = AccessTokenSubject

/** Signs tokens under the same secret the server has. A bare string is a user's id. */
export function createTokenSigner(secret: string, clock: Clock): (claims: UserClaims | string) => Promise<string> {
  const tokens = createTokens(createFirstSigningKey(secret), clock)
  return async (claims) => tokens.signAccess(typeof claims === 'string' ? { id: claims } : claims)
}
