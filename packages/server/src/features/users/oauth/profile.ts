/**
 * Profiles of OAuth providers in one normalized form. `connection` verifies the responses that they are parsed from;
 * `identities` maps them to accounts.
 */
import { z } from '../../../base/schemas/z.ts'
import { ApiError } from '../../../errors.ts'
import { avatarUrlCharsMax, displayNameCharsMax, oauthSubjectCharsMax } from '../../../limits/users.ts'
import { normalizeEmail } from '../email/normalize.ts'

export interface OAuthProfile {
  /** Permanent id of the person at the provider; never an email, which can be reassigned. */
  readonly subject: string
  /** Normalized; null if the provider sent no valid address. */
  readonly email: string | null
  /** Whether the provider verified that the person owns the address. */
  readonly isEmailVerified: boolean
  readonly displayName: string | null
  /** Stored and returned, never fetched. */
  readonly avatarUrl: string | null
}

/** Providers may send any type where text is expected, or nothing. */
const loose = z.unknown().optional()
const claimsShape = z.object({
  iss: z.string().min(1),
  sub: z.string().min(1),
  email: loose,
  email_verified: loose,
  xms_edov: loose,
  name: loose,
  picture: loose,
})

/**
 * The claim that marks the email as verified. Microsoft lets tenants set any address as `email`, and sets `xms_edov`
 * if the tenant has proved ownership of its domain.
 */
export type VerifiedClaim = 'email_verified' | 'xms_edov'

/** Parses ID token claims, merged with those of the userinfo endpoint if the token has no email. Throws if invalid. */
export function parseOidcProfile(raw: unknown, verifiedClaim: VerifiedClaim = 'email_verified'): OAuthProfile {
  const claims = claimsShape.parse(raw)
  const { iss, sub, email, name, picture } = claims
  // A subject is unique only per issuer: a new issuer under the same provider name must not inherit identities.
  return profileOf({
    subject: `${iss} ${sub}`,
    email,
    isEmailVerified: isTrue(claims[verifiedClaim]),
    displayName: name,
    avatarUrl: picture,
  })
}

const githubUserShape = z.object({ id: z.int().positive(), login: loose, name: loose, avatar_url: loose })
const githubEmailsShape = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }))

/** Parses GitHub's `/user` and `/user/emails`. Ignores the public address of the profile, which may be unverified. */
export function parseGithubProfile(user: unknown, emails: unknown): OAuthProfile {
  const { id, login, name, avatar_url } = githubUserShape.parse(user)
  const primary = githubEmailsShape.parse(emails).find((entry) => entry.primary)
  return profileOf({
    subject: String(id),
    email: primary?.email,
    isEmailVerified: primary?.verified === true,
    displayName: findName(name) ?? login,
    avatarUrl: avatar_url,
  })
}

const discordUserShape = z.object({
  id: z.string().regex(/^\d{1,20}$/),
  username: loose,
  global_name: loose,
  avatar: loose,
  email: loose,
  verified: loose,
})

/** Parses Discord's `/users/@me`. */
export function parseDiscordProfile(user: unknown): OAuthProfile {
  const { id, username, global_name, avatar, email, verified } = discordUserShape.parse(user)
  const hasAvatar = typeof avatar === 'string' && /^\w{1,64}$/.test(avatar)
  return profileOf({
    subject: id,
    email,
    isEmailVerified: verified === true,
    displayName: findName(global_name) ?? username,
    avatarUrl: hasAvatar ? `https://cdn.discordapp.com/avatars/${id}/${avatar}.png` : null,
  })
}

const appleNameShape = z.object({ name: z.object({ firstName: loose, lastName: loose }) })

/** The name in the `user` field that Apple posts through the browser at the first sign-in; null if there is none. */
export function findAppleName(user: string | undefined): string | null {
  try {
    const { name } = appleNameShape.parse(JSON.parse(user ?? ''))
    return findName([name.firstName, name.lastName].filter((part) => typeof part === 'string').join(' '))
  } catch {
    return null
  }
}

type RawProfile = { readonly [Name in Exclude<keyof OAuthProfile, 'subject' | 'isEmailVerified'>]: unknown } & Pick<
  OAuthProfile,
  'subject' | 'isEmailVerified'
>

function profileOf(raw: RawProfile): OAuthProfile {
  const { subject } = raw
  if (subject.length > oauthSubjectCharsMax || !/^[\x20-\x7e]+$/.test(subject))
    throw new Error('The subject is too long or not printable ASCII')
  const email = findEmail(raw.email)
  return {
    subject,
    email,
    isEmailVerified: email !== null && raw.isEmailVerified,
    displayName: findName(raw.displayName),
    avatarUrl: findAvatarUrl(raw.avatarUrl),
  }
}

/** Apple sends a string, Microsoft also a number. */
const isTrue = (claim: unknown): boolean => [true, 'true', 1, '1'].includes(claim as string)

function findEmail(value: unknown): string | null {
  try {
    return typeof value === 'string' ? normalizeEmail(value) : null
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}

/** The name without control characters, cut to `displayNameCharsMax`. */
function findName(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const name = value
    .slice(0, 4 * displayNameCharsMax)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028\u2029]/gu, '')
    .trim()
  return [...name].slice(0, displayNameCharsMax).join('') || null
}

function findAvatarUrl(value: unknown): string | null {
  const url = typeof value === 'string' && value.length <= avatarUrlCharsMax ? URL.parse(value) : null
  const isWebAddress = url?.protocol === 'https:' && url.username === '' && url.password === ''
  return isWebAddress && url.href.length <= avatarUrlCharsMax ? url.href : null
}
