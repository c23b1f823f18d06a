/**
 * The section `auth`: its schema, the checks beyond the schema, and the resolved form that the users feature runs on.
 * `define-auth` declares the types that users write it with.
 */
import { z } from 'zod'
import type { Rule } from '../../../access/definition.ts'
import type { SmtpServer } from '../../../engines/mail/transport.ts'
import { passwordCharsMin } from '../../../limits/api.ts'
import { sessionsPerUserMax } from '../../../limits/users.ts'
import type { ConfigIssue, Path } from '../../issues.ts'
import { membersOf, parsedWith, ruleShape, strictObject } from '../../shape-parts.ts'
import { checkMailTemplates } from './mail-templates.ts'

/** A provider. Its name determines which optional members apply. */
export interface ProviderConfig {
  readonly clientId: string
  readonly clientSecret?: string | undefined
  /** For `microsoft`. */
  readonly tenant?: string | undefined
  /** For `apple`, like `keyId` and `privateKey` (PEM). */
  readonly teamId?: string | undefined
  readonly keyId?: string | undefined
  readonly privateKey?: string | undefined
  /** For any OpenID Connect provider; overrides the issuer of a built-in one. */
  readonly issuer?: string | undefined
  readonly scopes?: readonly string[] | undefined
  /** Display name. */
  readonly name?: string | undefined
  /** For `github` and `discord`; overrides their endpoints. */
  readonly endpoints?: { readonly [E in 'authorize' | 'token' | 'user']?: string | undefined } | undefined
}

export interface MailTemplateConfig {
  readonly subject: string
  readonly text: string
}

export interface MailConfig {
  readonly from: string
  /** Null: mails are discarded, or in development mode written to the log and the outbox. */
  readonly smtp: SmtpServer | null
  readonly appName: string | null
  /** Pages of the app; the token is added as `?token=`. */
  readonly links: Readonly<Partial<Record<MailLink, string | undefined>>>
  /** Whether a sign-up with an email sends a verification link. */
  readonly verifiesSignups: boolean
  /** Templates by language tag and template name. */
  readonly templates: Readonly<Record<string, Readonly<Record<string, MailTemplateConfig>>>>
}

export const mailLinks = ['magicLink', 'passwordReset', 'emailVerification', 'emailChange'] as const
export type MailLink = (typeof mailLinks)[number]

export interface PasskeysConfig {
  readonly rpId: string
  readonly rpName: string | null
  readonly origins: readonly string[]
}

export interface AuthConfig {
  /** Whether users may sign up themselves. */
  readonly signup: boolean
  readonly anonymous: boolean
  /** Read rule of `_users_public`; null: the table is not served. */
  readonly publicUsers: Rule | null
  /** Allowed redirect targets for tokens: origins, exact URLs, and URLs with app schemes. */
  readonly redirectUrls: readonly string[]
  /** Whether pages on loopback hosts are allowed; true in development mode. */
  readonly allowsLocalRedirects: boolean
  readonly passwordCharsMin: number
  /** Sessions per user; one more ends the least recently used one. */
  readonly sessionsPerUserMax: number
  readonly providers: Readonly<Record<string, ProviderConfig>>
  readonly mail: MailConfig | null
  readonly passkeys: PasskeysConfig | null
}

const filled = z
  .string({
    error: (issue) => (issue.input === undefined ? 'is missing. Is its environment variable set?' : undefined),
  })
  .min(1)

const isWebPage = ({ protocol, username, password }: URL): boolean =>
  /^https?:$/.test(protocol) && username === '' && password === ''

/** An http or https URL without credentials. */
const webUrl = parsedWith((text) => {
  const url = URL.parse(text)
  if (!url || !isWebPage(url)) throw new Error('must be an http or https URL')
  return text
})

/** Schemes that execute or display their content, or read local files. */
const unsafeSchemes = /^(?:javascript|data|vbscript|file|blob|about|view-source):$/

/** The URL of a page, or of a mobile app with its own scheme. */
const redirectUrl = parsedWith((text) => {
  const url = URL.parse(text)
  const isAppUrl = url !== null && !/^https?:$/.test(url.protocol) && !unsafeSchemes.test(url.protocol)
  if (!url || (!isAppUrl && !isWebPage(url)))
    throw new Error('must be an http or https URL, or a URL with an app scheme')
  return text
})

const origin = parsedWith((text) => {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.origin !== text)
    throw new Error('must be an origin such as "https://app.example.com", without a path')
  return text
})

/** A single line, because it is used in mail headers. */
const line = filled.max(200).regex(/^[^\p{Cc}\u2028\u2029]*$/u, 'must be one line')

const providerShape = strictObject({
  clientId: filled,
  clientSecret: filled.optional(),
  tenant: filled.optional(),
  teamId: filled.optional(),
  keyId: filled.optional(),
  privateKey: filled.optional(),
  issuer: webUrl.optional(),
  scopes: z.array(filled).min(1).optional(),
  name: line.optional(),
  endpoints: strictObject({
    authorize: webUrl.optional(),
    token: webUrl.optional(),
    user: webUrl.optional(),
  }).optional(),
})

const mailShape = strictObject({
  from: line,
  smtp: strictObject({
    host: filled,
    port: z.int().min(1).max(65_535),
    secure: z.boolean().optional(),
    user: filled.optional(),
    password: filled.optional(),
    ca: filled.optional(),
  }).optional(),
  appName: line.optional(),
  verifySignups: z.boolean().default(false),
  links: strictObject(
    Object.fromEntries(mailLinks.map((link) => [link, webUrl.optional()])) as Record<
      MailLink,
      z.ZodOptional<typeof webUrl>
    >,
  ).default({}),
  templates: z
    .record(z.string(), z.record(z.string(), strictObject({ subject: line, text: filled.max(10_000) })))
    .default({}),
})

export const authShape = strictObject({
  signup: z.boolean().default(true),
  anonymous: z.boolean().default(true),
  publicUsers: ruleShape.optional(),
  redirectUrls: z.array(redirectUrl).default([]),
  passwordMinLength: z.int().min(passwordCharsMin).max(64).default(passwordCharsMin),
  maxActiveSessions: z.int().min(1).max(sessionsPerUserMax).default(sessionsPerUserMax),
  providers: z.record(z.string(), providerShape).default({}),
  mail: mailShape.optional(),
  passkeys: strictObject({ rpId: filled, rpName: line.optional(), origins: z.array(origin).min(1) }).optional(),
})
export type WrittenAuth = z.output<typeof authShape>

/** The port of SMTP with implicit TLS. */
const smtpTlsPort = 465

/** The resolved form of a valid section. */
export function createAuth(
  written: WrittenAuth,
  { allowsLocalRedirects }: { allowsLocalRedirects: boolean },
): AuthConfig {
  const { signup, anonymous, publicUsers, redirectUrls, passwordMinLength, maxActiveSessions } = written
  const { providers, mail, passkeys } = written
  return freezeDeep({
    signup,
    anonymous,
    publicUsers: publicUsers ?? null,
    redirectUrls,
    allowsLocalRedirects,
    passwordCharsMin: passwordMinLength,
    sessionsPerUserMax: maxActiveSessions,
    providers,
    mail: mail ? createMail(mail) : null,
    passkeys: passkeys ? { ...passkeys, rpName: passkeys.rpName ?? null } : null,
  })
}

function createMail(written: NonNullable<WrittenAuth['mail']>): MailConfig {
  const { from, smtp, appName, verifySignups: verifiesSignups, links, templates } = written
  const server = smtp && {
    host: smtp.host,
    port: smtp.port,
    secure: smtp.secure ?? smtp.port === smtpTlsPort,
    user: smtp.user ?? null,
    password: smtp.password ?? null,
    ca: smtp.ca ?? null,
  }
  return { from, smtp: server ?? null, appName: appName ?? null, verifiesSignups, links, templates }
}

/** For acyclic data and functions. */
function freezeDeep<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) freezeDeep(inner)
  return Object.freeze(value)
}

/** Required members of the built-in providers; all others require `issuer`. */
const providerNeeds: Readonly<Record<string, readonly (keyof ProviderConfig)[]>> = {
  google: ['clientSecret'],
  github: ['clientSecret'],
  microsoft: ['clientSecret'],
  discord: ['clientSecret'],
  apple: ['teamId', 'keyId', 'privateKey'],
}
const providerNamePattern = /^[a-z][a-z0-9-]{0,31}$/

/** Errors beyond the schema. Accepts any value. */
export function checkAuth(written: unknown): ConfigIssue[] {
  const { providers, mail, passkeys } = Object.fromEntries(membersOf(written))
  const { templates } = Object.fromEntries(membersOf(mail))
  return [
    ...checkMailTemplates(templates, ['auth', 'mail', 'templates']),
    ...membersOf(providers).flatMap(checkProvider),
    ...checkPasskeys(passkeys),
  ]
}

function checkProvider([name, written]: [string, unknown]): ConfigIssue[] {
  const path: Path = ['auth', 'providers', name]
  if (!providerNamePattern.test(name))
    return [
      { path, message: 'must be named in lower-case letters, digits and "-", because the name is part of a URL path' },
    ]
  const given = Object.fromEntries(membersOf(written))
  return (providerNeeds[name] ?? ['issuer'])
    .filter((need) => given[need] === undefined)
    .map((need) => ({ path: [...path, need], message: 'is missing. Is its environment variable set?' }))
}

/** Browsers require that the relying party id is the host of the page or a parent domain of it. */
function checkPasskeys(written: unknown): ConfigIssue[] {
  const { rpId, origins } = Object.fromEntries(membersOf(written))
  if (typeof rpId !== 'string' || !Array.isArray(origins)) return []
  return origins.flatMap((text: unknown, at): ConfigIssue[] => {
    const host = typeof text === 'string' ? URL.parse(text)?.hostname : undefined
    if (host === undefined || host === rpId || host.endsWith(`.${rpId}`)) return []
    return [
      {
        path: ['auth', 'passkeys', 'origins', at],
        message: `must be on the domain "${rpId}" (the rpId) or a subdomain of it`,
      },
    ]
  })
}
