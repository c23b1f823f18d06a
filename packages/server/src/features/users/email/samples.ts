/** Mails with sample values: for previews, and for a test that is sent to an administrator. */
import { randomBytes } from 'node:crypto'
import { type MailTemplateName, mailTemplates } from '../../../config/sections/auth/mail-templates.ts'
import type { MailRoute } from '../../../engines/mail/mail.ts'
import {
  emailChangeLifetimeMs,
  emailCodeLifetimeMs,
  emailVerificationLifetimeMs,
  invitationLifetimeMs,
  magicLinkLifetimeMs,
  passwordResetLifetimeMs,
} from '../../../limits/users.ts'
import type { UsersParts } from '../parts.ts'
import { renderMailHtml } from './html.ts'
import type { MailLinkTo } from './links.ts'
import { lifetimeValues } from './requests.ts'
import { languagesOf, type MailText, type MailValues, renderMail } from './templates.ts'

/** A template, and the languages that have a text of it: `en` first, which is built in. */
export interface MailTemplateView {
  readonly name: MailTemplateName
  readonly languages: readonly string[]
  /** Languages whose text is from the configuration. */
  readonly configured: readonly string[]
}

export interface MailSamples {
  readonly route: () => MailRoute
  /** The sender and the name of the application as configured. */
  readonly sender: () => { readonly from: string | null; readonly appName: string }
  readonly list: () => readonly MailTemplateView[]
  /** Null for an unknown template. */
  render(name: string, locale: string | null): (MailText & { readonly html: string }) | null
  /**
   * Sends one now, without retries: null once the mail server has taken it, otherwise its error without secrets. The
   * link and the code in it are samples that open nothing. Throws for an unknown template.
   */
  send(name: string, locale: string | null, to: string): Promise<string | null>
}

const isTemplate = (name: string): name is MailTemplateName => Object.hasOwn(mailTemplates, name)

/** `token` is a sample. */
const linksOf = (linkTo: MailLinkTo, token: string): { readonly [Name in MailTemplateName]?: string } => ({
  'magic-link': linkTo('magicLink', token),
  invitation: linkTo('passwordReset', token),
  'password-reset': linkTo('passwordReset', token),
  'email-verification': linkTo('emailVerification', token),
  'email-change': linkTo('emailChange', token),
})

const lifetimes: { readonly [Name in MailTemplateName]?: number } = {
  'magic-link': magicLinkLifetimeMs,
  'email-otp': emailCodeLifetimeMs,
  invitation: invitationLifetimeMs,
  'password-reset': passwordResetLifetimeMs,
  'email-verification': emailVerificationLifetimeMs,
  'email-change': emailChangeLifetimeMs,
}

const sampleAddress = 'ada@example.com'
const sampleCode = '123456'
const tokenBytes = 32

type Deps = Pick<UsersParts, 'config' | 'mailer'> & { readonly linkTo: MailLinkTo }

export function createMailSamples({ config, mailer, linkTo }: Deps): MailSamples {
  const templates = () => config().mail?.templates ?? {}
  const valuesOf = (name: MailTemplateName, email: string): MailValues => ({
    email,
    displayName: 'Ada Lovelace',
    newEmail: 'lovelace@example.com',
    code: sampleCode,
    link: linksOf(linkTo, randomBytes(tokenBytes).toString('base64url'))[name] ?? '',
    ...lifetimeValues(lifetimes[name] ?? 0),
  })
  return {
    route: () => mailer.route,
    sender: () => ({ from: config().mail?.from ?? null, appName: mailer.appName }),
    list: () =>
      (Object.keys(mailTemplates) as MailTemplateName[]).map((name) => {
        const configured = languagesOf(templates(), name)
        return { name, languages: [...new Set(['en', ...configured])], configured }
      }),
    render(name, locale) {
      if (!isTemplate(name)) return null
      const values = { appName: mailer.appName, ...valuesOf(name, sampleAddress) }
      const mail = renderMail(templates(), name, locale, values)
      return { ...mail, html: renderMailHtml(mail, values) }
    },
    async send(template, locale, to) {
      if (!isTemplate(template)) throw new Error(`There is no mail template ${template}`)
      return mailer.sendNow({ to, template, locale, values: valuesOf(template, to) })
    },
  }
}
