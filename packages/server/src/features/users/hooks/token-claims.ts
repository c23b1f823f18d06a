/** The claims that the application computes for the tokens of a user, beside those that an administrator has set. */
import { type JsonObject, jsonBytes } from '../../../base/text/json.ts'
import { isDeeperThan } from '../../../http/input/body.ts'
import { jsonDepthMax } from '../../../limits/api.ts'
import { customClaimsBytesMax } from '../../../limits/users.ts'
import type { HookAnswer } from '../../auth-hooks.ts'
import { customClaimsField } from '../accounts/fields.ts'
import { issueOf } from './sign-up-data.ts'

export type TokenClaims = JsonObject

/** Claims of tokens that the server sets. A function that returns one expects it to replace that of the token. */
const reserved: ReadonlySet<string> = new Set([
  'sub',
  'email',
  'emailVerified',
  'displayName',
  'role',
  'isAnonymous',
  'custom',
  'jti',
  'sid',
  'iss',
  'aud',
  'iat',
  'nbf',
  'exp',
  'type',
])

/** Where both have a claim, that of the application is in force, which has seen the other one. */
export const combineClaims = (custom: JsonObject, computed: TokenClaims | null): TokenClaims =>
  computed === null ? custom : { ...custom, ...computed }

/** Throws the error for the caller. `custom` are the claims that an administrator has set. */
export function parseTokenClaims({ text, fail }: HookAnswer, custom: JsonObject): TokenClaims {
  if (text === null) throw fail('returned no claims')
  // No character takes less than a byte.
  if (text.length > customClaimsBytesMax) throw fail(`returned more than ${customClaimsBytesMax} bytes of claims`)
  if (isDeeperThan(jsonDepthMax, text)) throw fail(`returned claims nested deeper than ${jsonDepthMax}`)
  const { data, error } = customClaimsField.safeParse(JSON.parse(text))
  if (error) throw fail(`returned what cannot be claims: ${issueOf(error)}`)
  const name = Object.keys(data).find((one) => reserved.has(one))
  if (name !== undefined) throw fail(`returned the claim "${name}", which is reserved`)
  if (jsonBytes(combineClaims(custom, data)) > customClaimsBytesMax)
    throw fail(`the claims of the user and those that it returned have more than ${customClaimsBytesMax} bytes`)
  return data
}
