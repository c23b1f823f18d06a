/** Schemas of the admin endpoints and the import. Emails and passwords are validated separately. */
import { z } from '../../../base/schemas/z.ts'
import {
  avatarUrlField,
  customClaimsField,
  displayNameField,
  emailField,
  emailVisibilityField,
  metadataField,
  passwordField,
  roleField,
} from '../accounts/fields.ts'

/** Ids that an import may set: record ids, because each user has a public record, except the name of an endpoint. */
const userIdPattern = /^(?!import$)[A-Za-z0-9_-]{1,64}$/

export const userId = z.string().refine((id) => userIdPattern.test(id), {
  params: { code: 'pattern' },
  error: 'must be 1 to 64 letters, digits, underscores or hyphens',
})

/** Whether the id is well-formed; a malformed one needs no query. */
export const isUserId = (text: string): boolean => userIdPattern.test(text)

/** `PUT /api/auth/admin/users/{id}/claims`: the body is the claims object. */
export const claimsBody = customClaimsField

/** `POST /api/auth/admin/users`. */
export const createBody = z.strictObject({
  email: emailField,
  password: passwordField,
  displayName: displayNameField.optional(),
  role: roleField.optional(),
  emailVerified: z.boolean().optional().meta({ description: 'Default true' }),
})
export type CreateInput = z.infer<typeof createBody>

/** `PATCH /api/auth/admin/users/{id}`: omitted fields keep their values; null clears a nullable field. */
export const updateBody = z.strictObject({
  email: emailField.exactOptional(),
  emailVerified: z.boolean().exactOptional().meta({ description: 'With `email`, default true' }),
  password: passwordField.exactOptional(),
  displayName: displayNameField.exactOptional(),
  avatarUrl: avatarUrlField.exactOptional(),
  role: roleField.exactOptional(),
  emailVisibility: emailVisibilityField.exactOptional(),
  disabled: z.boolean().exactOptional(),
  metadata: metadataField.exactOptional(),
  appMetadata: metadataField.exactOptional(),
})
export type UpdateInput = z.infer<typeof updateBody>

/** One user of an import. Null means omitted, as exports of other systems often contain it. */
export const importEntry = z.strictObject({
  id: userId.nullish(),
  email: emailField,
  password: passwordField.nullish(),
  passwordHash: z.string().nullish(),
  displayName: displayNameField.nullish(),
  avatarUrl: avatarUrlField.nullish(),
  role: roleField.nullish(),
  verified: z.boolean().nullish(),
  metadata: metadataField.nullish(),
  appMetadata: metadataField.nullish(),
})
export type ImportEntry = z.infer<typeof importEntry>
