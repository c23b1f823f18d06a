/**
 * The section `auth`: who may become a user, how, and what is public of them. Owns its shape, what of it does not fit
 * together, and the form the users feature runs on; what users write it with is `define-auth`.
 */
import { z } from 'zod'
import type { Rule } from '../../../access/definition.ts'
import { passwordCharsMin } from '../../../limits/api.ts'
import { sessionsPerUserMax } from '../../../limits/users.ts'
import type { Mistake, Path } from '../../mistakes.ts'
import { exactly, membersOf, readBy, ruleShape } from '../../shape-parts.ts'
import { checkMailTemplates } from './mail-templates.ts'

/** One provider; which of the optional members it has follows from its name. */
export interface ProviderConfig {
  readonly clientId: string
  readonly clientSecret?: string | undefined
  /** Of `microsoft`. */
  readonly tenant?: string | undefined
  /** Of `apple`, as is `keyId` and `privateKey`, which is PEM. */
  readonly teamId?: string | undefined
  readonly keyId?: string | undefined
  readonly privateKey?: string | undefined
  /** Of any OpenID Connect provider; a known one has its own unless told otherwise. */
  readonly issuer?: string | undefined
  readonly scopes?: readonly string[] | undefined
  /** For people to read. */
  readonly name?: string | undefined
  /** Of `github` and `discord`, instead of their own. */
  readonly endpoints?: { readonly [E in 'authorize' | 'token' | 'user']?: string | undefined } | undefined
}

export interface SmtpConfig {
  readonly host: string
  readonly port: number
  /** TLS from the first byte. */
  readonly secure: boolean
  readonly user: string | null
  readonly password: string | null
  /** PEM. */
  readonly ca: string | null
}

export interface MailTemplateConfig {
  readonly subject: string
  readonly text: string
}

export interface MailConfig {
  readonly from: string
  /** Null: mails go nowhere, or in development mode to the log and the outbox. */
  readonly smtp: SmtpConfig | null
  readonly appName: string | null
  /** Pages of the app, to which the token is added as `?token=`. */
  readonly links: Readonly<Partial<Record<MailLink, string | undefined>>>
  /** Whether whoever signs up with an e-mail is mailed a link that verifies it. */
  readonly verifiesSignups: boolean
  /** Language tag to template name to template. */
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
  /** Whether people may make accounts themselves. */
  readonly signup: boolean
  readonly anonymous: boolean
  /** Who may read `_users_public`; null: it is not served. */
  readonly publicUsers: Rule | null
  /** Origins, and whole URLs, that a browser may be sent to with tokens; those of apps too. */
  readonly redirectUrls: readonly string[]
  /** Development mode: this machine's own pages are as good as listed. */
  readonly allowsLocalRedirects: boolean
  readonly passwordCharsMin: number
  /** Sessions that a user may have; one more ends the one unused for longest. */
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

/** Of a page or a server; neither may carry a name and password, nor lead to something else than the web. */
const webUrl = readBy((text) => {
  const url = URL.parse(text)
  if (!url || !isWebPage(url)) throw new Error('must be an http or https URL')
  return text
})

/** Schemes that run or show what they carry instead of leading somewhere. */
const endlessSchemes = /^(?:javascript|data|vbscript|file|blob|about|view-source):$/

/** Of a page, or of an app on a telephone, which has a scheme of its own. */
const redirectUrl = readBy((text) => {
  const url = URL.parse(text)
  const isApps = url !== null && !/^https?:$/.test(url.protocol) && !endlessSchemes.test(url.protocol)
  if (!url || (!isApps && !isWebPage(url))) throw new Error('must be an http or https URL, or one of an app')
  return text
})

const origin = readBy((text) => {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.origin !== text)
    throw new Error('must be an origin such as "https://app.example.com", without a path')
  return text
})

/** One line, so that it stays the header it is put in. */
const line = filled.max(200).regex(/^[^\p{Cc}\u2028\u2029]*$/u, 'must be one line')

const providerShape = exactly({
  clientId: filled,
  clientSecret: filled.optional(),
  tenant: filled.optional(),
  teamId: filled.optional(),
  keyId: filled.optional(),
  privateKey: filled.optional(),
  issuer: webUrl.optional(),
  scopes: z.array(filled).min(1).optional(),
  name: line.optional(),
  endpoints: exactly({ authorize: webUrl.optional(), token: webUrl.optional(), user: webUrl.optional() }).optional(),
})

const mailShape = exactly({
  from: line,
  smtp: exactly({
    host: filled,
    port: z.int().min(1).max(65_535),
    secure: z.boolean().optional(),
    user: filled.optional(),
    password: filled.optional(),
    ca: filled.optional(),
  }).optional(),
  appName: line.optional(),
  verifySignups: z.boolean().default(false),
  links: exactly(
    Object.fromEntries(mailLinks.map((link) => [link, webUrl.optional()])) as Record<
      MailLink,
      z.ZodOptional<typeof webUrl>
    >,
  ).default({}),
  templates: z
    .record(z.string(), z.record(z.string(), exactly({ subject: line, text: filled.max(10_000) })))
    .default({}),
})

export const authShape = exactly({
  signup: z.boolean().default(true),
  anonymous: z.boolean().default(true),
  publicUsers: ruleShape.optional(),
  redirectUrls: z.array(redirectUrl).default([]),
  passwordMinLength: z.int().min(passwordCharsMin).max(64).default(passwordCharsMin),
  maxActiveSessions: z.int().min(1).max(sessionsPerUserMax).default(sessionsPerUserMax),
  providers: z.record(z.string(), providerShape).default({}),
  mail: mailShape.optional(),
  passkeys: exactly({ rpId: filled, rpName: line.optional(), origins: z.array(origin).min(1) }).optional(),
})
export type WrittenAuth = z.output<typeof authShape>

/** TLS from the first byte is what this port is for. */
const smtpTlsPort = 465

/** The form the program runs on, of a section in which nothing was found wrong. */
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

/** Plain data and functions only, which cannot refer to themselves. */
function freezeDeep<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) freezeDeep(inner)
  return Object.freeze(value)
}

/** What a provider of a known name needs; any other needs an issuer. */
const providerNeeds: Readonly<Record<string, readonly (keyof ProviderConfig)[]>> = {
  google: ['clientSecret'],
  github: ['clientSecret'],
  microsoft: ['clientSecret'],
  discord: ['clientSecret'],
  apple: ['teamId', 'keyId', 'privateKey'],
}
const providerNamePattern = /^[a-z][a-z0-9-]{0,31}$/

/** What is wrong beyond the shape; takes whatever was written. */
export function checkAuth(written: unknown): Mistake[] {
  const { providers, mail, passkeys } = Object.fromEntries(membersOf(written))
  const { templates } = Object.fromEntries(membersOf(mail))
  return [
    ...checkMailTemplates(templates, ['auth', 'mail', 'templates']),
    ...membersOf(providers).flatMap(checkProvider),
    ...checkPasskeys(passkeys),
  ]
}

function checkProvider([name, written]: [string, unknown]): Mistake[] {
  const path: Path = ['auth', 'providers', name]
  if (!providerNamePattern.test(name))
    return [{ path, message: 'must be named in lower-case letters, digits and "-": the name is part of a path' }]
  const given = Object.fromEntries(membersOf(written))
  return (providerNeeds[name] ?? ['issuer'])
    .filter((need) => given[need] === undefined)
    .map((need) => ({ path: [...path, need], message: 'is missing. Is its environment variable set?' }))
}

/** A browser refuses a relying party that is not the page's own host or above it. */
function checkPasskeys(written: unknown): Mistake[] {
  const { rpId, origins } = Object.fromEntries(membersOf(written))
  if (typeof rpId !== 'string' || !Array.isArray(origins)) return []
  return origins.flatMap((text: unknown, at): Mistake[] => {
    const host = typeof text === 'string' ? URL.parse(text)?.hostname : undefined
    if (host === undefined || host === rpId || host.endsWith(`.${rpId}`)) return []
    return [{ path: ['auth', 'passkeys', 'origins', at], message: `is not "${rpId}" or below it, which is the rpId` }]
  })
}
