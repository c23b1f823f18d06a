/** The fields of a new account that the hook of sign-ups sees and may change. */
import { z } from '../../../base/schemas/z.ts'
import { isDeeperThan } from '../../../http/input/body.ts'
import { jsonDepthMax } from '../../../limits/api.ts'
import { signUpDataCharsMax } from '../../../limits/users.ts'
import type { HookAnswer } from '../../auth-hooks.ts'
import type { Account } from '../accounts/account.ts'
import { avatarUrlField, displayNameField, localeField, metadataField, roleField } from '../accounts/fields.ts'

const shape = z.strictObject({
  displayName: displayNameField.exactOptional(),
  avatarUrl: avatarUrlField.exactOptional(),
  locale: localeField.exactOptional(),
  role: roleField.exactOptional(),
  metadata: metadataField.exactOptional(),
  appMetadata: metadataField.exactOptional(),
})

export type SignUpChanges = z.infer<typeof shape>

export const signUpDataOf = (account: Account): Required<SignUpChanges> => ({
  displayName: account.displayName,
  avatarUrl: account.avatarUrl,
  locale: account.locale,
  role: account.role,
  metadata: account.metadata,
  appMetadata: account.appMetadata,
})

/** What the hook has changed; nothing if it has returned nothing. Throws the error for the caller. */
export function parseSignUpData({ text, fail }: HookAnswer): SignUpChanges {
  if (text === null || text === 'null') return {}
  if (text.length > signUpDataCharsMax) throw fail(`returned more than ${signUpDataCharsMax} characters`)
  if (isDeeperThan(jsonDepthMax, text)) throw fail(`returned data nested deeper than ${jsonDepthMax}`)
  const { data, error } = shape.safeParse(JSON.parse(text))
  if (error) throw fail(`returned data that cannot be stored: ${issueOf(error)}`)
  return data
}

/** The first issue, with its place. */
export function issueOf({ issues: [issue] }: z.ZodError): string {
  return [issue?.path.join('.'), issue?.message].filter(Boolean).join(': ')
}
