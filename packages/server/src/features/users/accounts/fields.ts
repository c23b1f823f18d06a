/** Schemas of user fields, shared by the profile, admin and import endpoints. */
import { z } from '../../../base/schemas/z.ts'
import { type JsonObject, jsonBytes } from '../../../base/text/json.ts'
import { codePointLength, isStorableText } from '../../../base/text/text.ts'
import {
  avatarUrlCharsMax,
  customClaimsBytesMax,
  deviceTokenCharsMax,
  displayNameCharsMax,
  mailStateCharsMax,
  metadataBytesMax,
  redirectUrlCharsMax,
  roleCharsMax,
} from '../../../limits/users.ts'

/** Line breaks would end mail headers; other control characters have no use in a name. */
const controlPattern = /\p{Cc}|[\u2028\u2029]/u

const issue = (code: 'type' | 'min' | 'max' | 'pattern', message: string) => ({ params: { code }, message })

export const displayNameField = z
  .string()
  .trim()
  .refine((text) => text !== '', issue('min', 'must not be empty; null removes it'))
  .refine(
    (text) => codePointLength(text) <= displayNameCharsMax,
    issue('max', `must have at most ${displayNameCharsMax} characters`),
  )
  .refine((text) => isStorableText(text) && !controlPattern.test(text), issue('pattern', 'must be one line of text'))
  .nullable()

const isWebAddress = (text: string): boolean => {
  const url = /^https?:\/\//i.test(text) && isStorableText(text) ? URL.parse(text) : null
  return url !== null && url.username === '' && url.password === ''
}

export const avatarUrlField = z
  .string()
  .max(avatarUrlCharsMax)
  .refine(isWebAddress, issue('pattern', 'must be an http or https URL'))
  .nullable()

export const roleField = z
  .string()
  .min(1)
  .max(roleCharsMax)
  .regex(/^[\w.:-]+$/, 'must be letters, digits or any of _ . : -')

export const emailVisibilityField = z.enum(['public', 'private'])

/** A language tag such as `de` or `pt-BR` (BCP 47). */
export const localeField = z
  .string()
  .regex(/^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,3}$/, 'must be a language tag')
  .nullable()

const hasStorableTexts = (value: unknown): boolean => {
  if (typeof value === 'string') return isStorableText(value)
  if (Array.isArray(value)) return value.every(hasStorableTexts)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([name, inner]) => isStorableText(name) && hasStorableTexts(inner))
}

/** Names that can pollute prototypes in code that merges objects. */
const dangerousNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

function containsDangerousName(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(containsDangerousName)
  return Object.entries(value).some(([name, member]) => dangerousNames.has(name) || containsDangerousName(member))
}

/**
 * A JSON object of a bounded size. Names are checked before `z.record`, which would drop a member `__proto__` instead
 * of rejecting it.
 */
const objectField = (bytesMax: number): z.ZodType<JsonObject> =>
  z
    .unknown()
    .refine(
      (value) => !containsDangerousName(value),
      issue('pattern', 'must not contain members named __proto__, constructor or prototype'),
    )
    .meta({ type: 'object', additionalProperties: true })
    .pipe(
      z
        .record(z.string(), z.unknown())
        .refine((value) => jsonBytes(value) <= bytesMax, issue('max', `must be at most ${bytesMax} bytes of JSON`))
        .refine(hasStorableTexts, issue('type', 'must not contain NUL or unpaired surrogates')),
    ) as unknown as z.ZodType<JsonObject>

export const metadataField = objectField(metadataBytesMax)
export const customClaimsField = objectField(customClaimsBytesMax)

/** As sent; `normalizeEmail` validates it. */
export const emailField = z.string().min(1).max(1024)
/** As sent; `passwords.check` validates new passwords, and an overlong one never matches. */
export const passwordField = z.string().min(1)

/** As sent; an invalid token is ignored. */
export const deviceTokenField = z.string().max(deviceTokenCharsMax)

/** Target of the link in a mail (`email/links`). `parseLinkTarget` checks it against the allowed URLs. */
export const linkTargetFields = {
  redirectUrl: z.string().max(redirectUrlCharsMax).optional().meta({
    description: 'Page that the link opens instead of the configured one; must be in `auth.redirectUrls`',
  }),
  state: z
    .string()
    .min(1)
    .max(mailStateCharsMax)
    .regex(/^[ -~]*$/, 'must be printable ASCII')
    .optional()
    .meta({ description: 'Returned in the link as `state`' }),
}
