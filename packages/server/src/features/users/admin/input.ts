/**
 * What the service key may say about a user: the form and bounds of each field, as the admin endpoints and the import
 * take them. Which of it may be done is `admin`'s and `import`'s matter; e-mails and passwords have files of their own.
 */
import { z } from 'zod'
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

/** Ids that an import may choose: those of records, since a user has a public one, but for the name of an endpoint. */
const userIdPattern = /^(?!import$)[A-Za-z0-9_-]{1,64}$/

export const userId = z.string().refine((id) => userIdPattern.test(id), {
  params: { code: 'pattern' },
  error: 'must be 1 to 64 letters, digits, underscores or hyphens',
})

/** Whether any user could have this id; what could not is not worth asking the database for. */
export const isUserId = (text: string): boolean => userIdPattern.test(text)

/** `PUT /api/auth/admin/users/{id}/claims`: the claims themselves. */
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

/** `PATCH /api/auth/admin/users/{id}`: what is left out stays; null empties a field that may be empty. */
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

/** One user of an import. Null says the same as leaving out: exports of other systems are full of it. */
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
