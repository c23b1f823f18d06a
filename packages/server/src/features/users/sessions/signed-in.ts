/** Result of a completed sign-in: the user, an access token and a refresh token. */
import type { JsonObject } from '../../../base/text/json.ts'
import { accessTokenLifetimeMs } from '../../../limits/api.ts'
import type { Account } from '../accounts/account.ts'
import { type UserView, userView } from '../accounts/user-view.ts'
import type { Tokens } from './tokens.ts'

export interface SignedIn {
  readonly user: UserView
  readonly accessToken: string
  readonly refreshToken: string
  /** How long the access token is valid, in seconds. */
  readonly expiresIn: number
  /** Present for users with an address; gives the device its own rate limit at later sign-ins (`attempts`). */
  readonly deviceToken?: string
}

/** Signs the access token that goes with a refresh token; `custom` is what `claimsForToken` returns. */
export const signedIn = (
  tokens: Tokens,
  account: Account,
  { custom, sessionId, refreshToken }: { custom: JsonObject; sessionId: string; refreshToken: string },
): SignedIn => ({
  user: userView(account),
  accessToken: tokens.signAccess({
    id: account.id,
    email: account.email,
    emailVerified: account.emailVerifiedAtMs !== null,
    displayName: account.displayName,
    role: account.role,
    isAnonymous: account.isAnonymous,
    custom,
    sessionId,
  }),
  refreshToken,
  expiresIn: accessTokenLifetimeMs / 1000,
})
