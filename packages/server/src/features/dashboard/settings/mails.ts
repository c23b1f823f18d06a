/**
 * Endpoints of the mails about accounts: the templates, a preview with sample values, and a test to the administrator's
 * own address. A preview is a document of its own, whose policy runs no script and loads nothing; the page shows it in
 * a frame, which cannot send the page's header, so a sealed ticket in its address admits it.
 */

import type { Clock } from '../../../base/clock.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import { createSealer } from '../../../base/crypto/seal.ts'
import { z } from '../../../base/schemas/z.ts'
import { accessDenied, conflict, notFound } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { textParam } from '../../../http/input/query-schema.ts'
import { json } from '../../../http/replies/reply.ts'
import { dashboardPath } from '../../../http/security/dashboard-access.ts'
import type { RateLimiter } from '../../../http/security/rate-limit.ts'
import { mailPreviewMs } from '../../../limits/dashboard.ts'
import { localeCharsMax, mailDeliveryTimeoutMs } from '../../../limits/users.ts'

interface SampleMail {
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** The mails of accounts, which the users feature provides. */
export interface SampleMails {
  readonly route: () => 'smtp' | 'outbox' | 'none'
  readonly sender: () => { readonly from: string | null; readonly appName: string }
  readonly list: () => readonly {
    readonly name: string
    readonly languages: readonly string[]
    readonly configured: readonly string[]
  }[]
  /** Null for an unknown template. */
  render(name: string, locale: string | null): SampleMail | null
  /** Null once it is sent, otherwise the error without secrets. */
  send(name: string, locale: string | null, to: string): Promise<string | null>
}

export interface MailEndpointsDeps {
  readonly mails: SampleMails
  readonly limiter: RateLimiter
  /** Seals tickets. */
  readonly secret: string
  readonly clock: Clock
}

const templates = z.object({
  route: z.enum(['smtp', 'outbox', 'none']).meta({ description: 'Where mails go' }),
  from: z.string().nullable(),
  appName: z.string(),
  templates: z.array(
    z.object({
      name: z.string(),
      languages: z.array(z.string()).meta({ description: 'Those that have a text of it, `en` first' }),
      configured: z.array(z.string()).meta({ description: 'Of them, those with a text in the configuration' }),
    }),
  ),
})
const preview = z.object({
  subject: z.string(),
  text: z.string(),
  url: z.string().meta({ description: 'Of the HTML part, for five minutes' }),
})
const sent = z.object({
  to: z.string(),
  route: z.enum(['smtp', 'outbox']),
  error: z.string().nullable().meta({ description: 'Of the mail server; null if it has taken the mail' }),
})

const ticketPath = `${dashboardPath}/mail-preview/:ticket`
const ticketContext = 'mail preview'
const ticketSchema = z.tuple([z.string(), z.string().nullable(), z.int()])

/** Nothing runs, nothing is loaded, and links of the preview lead nowhere. */
const previewHeaders = {
  'Content-Security-Policy':
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

const localeParam = z.string().min(1).max(localeCharsMax)
const common = { tag: 'Dashboard', credentials: 'admin', rateLimit: 'global', isSecret: true } as const
const path = `${dashboardPath}/api/mails`

export function createMailEndpoints({ mails, limiter, secret, clock }: MailEndpointsDeps): readonly Endpoint[] {
  const sealer = createSealer(secret, 'mail previews')

  function readTicket(ticket: string): { name: string; locale: string | null } | null {
    try {
      const [name, locale, endsAtMs] = ticketSchema.parse(JSON.parse(sealer.unseal(ticket, ticketContext)))
      return clock.now() < endsAtMs ? { name, locale } : null
    } catch {
      return null
    }
  }

  return [
    endpoint({
      ...common,
      name: 'dashboard.listMails',
      method: 'GET',
      paths: [path],
      summary: 'List the templates of mails with their languages',
      scope: () => 'dashboard:settings:*:read',
      replies: { 200: { description: 'The templates', schema: templates } },
      handle: () => json({ route: mails.route(), ...mails.sender(), templates: mails.list() }),
    }),
    endpoint({
      ...common,
      name: 'dashboard.previewMail',
      method: 'GET',
      paths: [`${path}/:name`],
      summary: 'Render a mail with sample values',
      scope: () => 'dashboard:settings:*:read',
      query: z.object({ locale: textParam('A language; by default English').pipe(localeParam.optional()) }),
      replies: { 200: { description: 'The mail', schema: preview } },
      errors: [404],
      handle({ params: { name = '' }, query: { locale = null } }) {
        const mail = mails.render(name, locale)
        if (!mail) throw notFound('Mail template')
        const ticket = sealer.seal(JSON.stringify([name, locale, clock.now() + mailPreviewMs]), ticketContext)
        return json({ subject: mail.subject, text: mail.text, url: ticketPath.replace(':ticket', ticket) })
      },
    }),
    endpoint({
      name: 'dashboard.showMailPreview',
      tag: 'Dashboard',
      credentials: 'public',
      rateLimit: 'global',
      method: 'GET',
      paths: [ticketPath],
      summary: 'Get the HTML part of a rendered mail',
      replies: { 200: { description: 'An HTML page' } },
      errors: [404],
      handle({ params }) {
        const found = readTicket(params.ticket ?? '')
        const mail = found && mails.render(found.name, found.locale)
        if (!mail) throw notFound('Mail preview')
        return { status: 200, text: mail.html, contentType: 'text/html; charset=utf-8', headers: previewHeaders }
      },
    }),
    endpoint({
      ...common,
      name: 'dashboard.sendTestMail',
      method: 'POST',
      paths: [`${path}/:name/test`],
      summary: 'Send a mail with sample values to the own address',
      description:
        'One attempt through the configured mail server, or into the outbox of development. Counts against the rate limit `mail` of the administrator.',
      scope: () => 'dashboard:settings:*:write',
      body: z.strictObject({ locale: localeParam.optional() }),
      isBodyOptional: true,
      answerSeconds: Math.ceil(mailDeliveryTimeoutMs / 1000) + 10,
      replies: { 200: { description: 'What the mail server has answered', schema: sent } },
      errors: [404, 409, 429],
      async handle({ params: { name = '' }, body: { locale = null }, caller, audit }) {
        const admin = caller.kind === 'service' ? caller.admin : undefined
        if (!admin) throw accessDenied()
        const route = mails.route()
        if (!mails.render(name, locale)) throw notFound('Mail template')
        if (route === 'none') throw conflict('No mail server is configured; set auth.mail.smtp')
        if (admin.email === null) throw conflict('Your account has no email address')
        await limiter.count('mail', sha256(`administrator ${admin.userId}`))
        const error = await mails.send(name, locale, admin.email)
        audit?.({ before: null, after: { template: name, locale, to: admin.email, route, error } })
        return json({ to: admin.email, route, error })
      },
    }),
  ]
}
