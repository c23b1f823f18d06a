/** What may stand in the fields of a user, for every endpoint that takes one: profile, admin, import. */
import { z } from 'zod'
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

/** Line breaks end headers of mails, and the others are never meant. */
const controlPattern = /\p{Cc}|[\u2028\u2029]/u

const mistake = (code: 'type' | 'min' | 'max' | 'pattern', message: string) => ({ params: { code }, message })

export const displayNameField = z
  .string()
  .trim()
  .refine((text) => text !== '', mistake('min', 'must not be empty; null removes it'))
  .refine(
    (text) => codePointLength(text) <= displayNameCharsMax,
    mistake('max', `must have at most ${displayNameCharsMax} characters`),
  )
  .refine((text) => isStorableText(text) && !controlPattern.test(text), mistake('pattern', 'must be one line of text'))
  .nullable()

const isWebAddress = (text: string): boolean => {
  const url = /^https?:\/\//i.test(text) && isStorableText(text) ? URL.parse(text) : null
  return url !== null && url.username === '' && url.password === ''
}

export const avatarUrlField = z
  .string()
  .max(avatarUrlCharsMax)
  .refine(isWebAddress, mistake('pattern', 'must be an http or https URL'))
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

/** Merging code of other programs, given one of these as a name, may change what every object inherits. */
const dangerousNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

function holdsDangerousName(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(holdsDangerousName)
  return Object.entries(value).some(([name, member]) => dangerousNames.has(name) || holdsDangerousName(member))
}

/**
 * A JSON object of a bounded size, kept as it is. Names are looked at before the library, whose `record` would drop a
 * member called `__proto__` instead of refusing it.
 */
const objectField = (bytesMax: number): z.ZodType<JsonObject> =>
  z
    .unknown()
    .refine(
      (value) => !holdsDangerousName(value),
      mistake('pattern', 'must not hold members called __proto__, constructor or prototype'),
    )
    .meta({ type: 'object', additionalProperties: true })
    .pipe(
      z
        .record(z.string(), z.unknown())
        .refine((value) => jsonBytes(value) <= bytesMax, mistake('max', `must be at most ${bytesMax} bytes of JSON`))
        .refine(hasStorableTexts, mistake('type', 'must not hold NUL or broken characters')),
    ) as unknown as z.ZodType<JsonObject>

export const metadataField = objectField(metadataBytesMax)
export const customClaimsField = objectField(customClaimsBytesMax)

/** As it is sent; `normalizeEmail` judges it. */
export const emailField = z.string().min(1).max(1024)
/** As it is sent; `passwords.check` judges a new one, and one that is too long to be anybody's is simply wrong. */
export const passwordField = z.string().min(1)

/** As it is sent; one that is not ours is as good as none. */
export const deviceTokenField = z.string().max(deviceTokenCharsMax)

/** Where the link of a mail leads (`mail-links`); which URLs are allowed is judged by `parseLinkTarget`. */
export const linkTargetFields = {
  redirectUrl: z.string().max(redirectUrlCharsMax).optional().meta({
    description: 'Page that the link leads to, from the allowed list, instead of the configured one',
  }),
  state: z
    .string()
    .min(1)
    .max(mailStateCharsMax)
    .regex(/^[ -~]*$/, 'must be printable ASCII')
    .optional()
    .meta({ description: 'Handed back as `state` in the link' }),
}
