/**
 * What a provider says of a person, in one form for all of them. Whether the saying can be believed is checked where it
 * is received (`oauth-connection`); what is made of it, in `identities`.
 */
import { z } from 'zod'
import { ApiError } from '../../../errors.ts'
import { avatarUrlCharsMax, displayNameCharsMax, oauthSubjectCharsMax } from '../../../limits/users.ts'
import { normalizeEmail } from '../email/normalize.ts'

export interface OAuthProfile {
  /** The person at that provider, forever; never an e-mail, which can change hands. */
  readonly subject: string
  /** Normalised; null where the provider told none, or what it told is no address. */
  readonly email: string | null
  /** Whether the provider has made sure that the address is this person's. */
  readonly isEmailVerified: boolean
  readonly displayName: string | null
  /** Stored and shown, never fetched. */
  readonly avatarUrl: string | null
}

/** Anything a provider may send where text is expected, or nothing. */
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
 * The claim by which an issuer says that the e-mail is the person's. Microsoft lets every tenant write any address into
 * `email`, and marks with `xms_edov` those whose domain the tenant has proved to own.
 */
export type VerifiedClaim = 'email_verified' | 'xms_edov'

/** Verified claims of an ID token, with those of the user-info endpoint where the token had no e-mail. Throws. */
export function parseOidcProfile(told: unknown, verifiedClaim: VerifiedClaim = 'email_verified'): OAuthProfile {
  const claims = claimsShape.parse(told)
  const { iss, sub, email, name, picture } = claims
  // A subject is unique only at its issuer: another issuer under the same name must not inherit anybody.
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

/**
 * Answers of GitHub's `/user` and `/user/emails`. The profile's public address is not used: nothing says whose it is.
 */
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

/** The answer of Discord's `/users/@me`. */
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

/** The name in the `user` field that Apple posts back the first time, by way of the browser; null for none. */
export function findAppleName(user: string | undefined): string | null {
  try {
    const { name } = appleNameShape.parse(JSON.parse(user ?? ''))
    return findName([name.firstName, name.lastName].filter((part) => typeof part === 'string').join(' '))
  } catch {
    return null
  }
}

type Told = { readonly [Name in Exclude<keyof OAuthProfile, 'subject' | 'isEmailVerified'>]: unknown } & Pick<
  OAuthProfile,
  'subject' | 'isEmailVerified'
>

function profileOf(told: Told): OAuthProfile {
  const { subject } = told
  if (subject.length > oauthSubjectCharsMax || !/^[\x20-\x7e]+$/.test(subject))
    throw new Error('The subject is no subject')
  const email = findEmail(told.email)
  return {
    subject,
    email,
    isEmailVerified: email !== null && told.isEmailVerified,
    displayName: findName(told.displayName),
    avatarUrl: findAvatarUrl(told.avatarUrl),
  }
}

/** Apple says it as text, Microsoft as a number too. */
const isTrue = (claim: unknown): boolean => [true, 'true', 1, '1'].includes(claim as string)

function findEmail(told: unknown): string | null {
  try {
    return typeof told === 'string' ? normalizeEmail(told) : null
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}

/** A name without control characters, as much of it as is kept. */
function findName(told: unknown): string | null {
  if (typeof told !== 'string') return null
  const name = told
    .slice(0, 4 * displayNameCharsMax)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028\u2029]/gu, '')
    .trim()
  return [...name].slice(0, displayNameCharsMax).join('') || null
}

function findAvatarUrl(told: unknown): string | null {
  const url = typeof told === 'string' && told.length <= avatarUrlCharsMax ? URL.parse(told) : null
  const isWebAddress = url?.protocol === 'https:' && url.username === '' && url.password === ''
  return isWebAddress && url.href.length <= avatarUrlCharsMax ? url.href : null
}
