/**
 * Mail templates: plain text, English built in, other languages and texts from the configuration. Escapes values, so
 * that none is interpreted as a placeholder, a header or a line of its own.
 */
import type { MailConfig, MailTemplateConfig } from '../../../config/sections/auth/auth.ts'
import type { MailPlaceholder, MailTemplateName } from '../../../config/sections/auth/mail-templates.ts'
import { mailSubjectCharsMax, mailValueCharsMax } from '../../../limits/users.ts'

/** Template values except the app name. */
export type MailValues = { readonly [Name in Exclude<MailPlaceholder, 'appName'>]?: string }

/** Configured templates by language tag and template name. */
export type ConfiguredTemplates = MailConfig['templates']

/** `{{name}}` is replaced by a value. */
const english: Readonly<Record<MailTemplateName, MailTemplateConfig>> = {
  'magic-link': {
    subject: 'Sign in to {{appName}}',
    text: `Sign in to {{appName}} as {{email}}:

{{link}}

This works once, within {{minutes}} minutes.
If you did not request it, ignore this mail: signing in needs it.
`,
  },
  'email-otp': {
    subject: '{{code}} is your code for {{appName}}',
    text: `Your code to sign in to {{appName}} as {{email}}:

{{code}}

It works once, within {{minutes}} minutes. {{appName}} will never ask you for it.
If you did not request it, ignore this mail: signing in needs it.
`,
  },
  invitation: {
    subject: 'You are invited to {{appName}}',
    text: `An account for {{email}} was created at {{appName}}. Choose a password to use it:

{{link}}

This works once, within {{hours}} hours.
If you do not know {{appName}}, ignore this mail: without a password the account cannot be used.
`,
  },
  'password-reset': {
    subject: 'Set a new password for {{appName}}',
    text: `Set a new password for {{email}} at {{appName}}:

{{link}}

This works once, within {{minutes}} minutes.
If you did not request it, ignore this mail: your password does not change.
`,
  },
  'password-changed': {
    subject: 'Your password for {{appName}} was changed',
    text: `The password of {{email}} at {{appName}} was just changed, and every device was signed out.

If this was not you, reset your password now and secure this mailbox: another person may have access to it.
`,
  },
  'email-verification': {
    subject: 'Confirm your address for {{appName}}',
    text: `Confirm that {{email}} is the address of your account at {{appName}}:

{{link}}

This works once, within {{hours}} hours. Open it where you are signed in: elsewhere it removes the password and signs \
every device out, and you sign in by mail.
If you have no such account, ignore this mail: an account with your address that you did not open stays unconfirmed.
`,
  },
  'email-change': {
    subject: 'Confirm your new address for {{appName}}',
    text: `Confirm that {{newEmail}} is the new address of your account at {{appName}}:

{{link}}

This works once, within {{minutes}} minutes. Open it where you are signed in: elsewhere it removes the password and \
signs every device out, and you sign in by mail.
If you did not request it, ignore this mail: nothing changes without it.
`,
  },
  'email-change-notice': {
    subject: 'The address of your account at {{appName}} is about to change',
    text: `A session of {{email}} at {{appName}} requested to change the address of the account to {{newEmail}}.

If this was you, follow the link in the mail to the new address.
If this was not you, set a new password now. That cancels the change and signs every device out.
`,
  },
}

/** A rendered mail. The subject is a single line. */
export interface MailText {
  readonly subject: string
  readonly text: string
}

/**
 * Renders a template. Looks it up in the configuration for the locale, for its language without the region and for
 * English, and then among the built-in ones.
 */
export function renderMail(
  configured: ConfiguredTemplates,
  name: MailTemplateName,
  locale: string | null,
  values: MailValues & { readonly appName: string },
): MailText {
  const { subject, text } = findTemplate(configured, name, locale)
  return {
    subject: oneLine(fill(subject, values)).slice(0, mailSubjectCharsMax).toWellFormed(),
    text: fill(text, values),
  }
}

/** The languages whose texts of a template are configured, as the configuration writes them. */
export const languagesOf = (configured: ConfiguredTemplates, name: MailTemplateName): readonly string[] =>
  Object.entries(configured).flatMap(([language, templates]) => (Object.hasOwn(templates, name) ? [language] : []))

function findTemplate(
  configured: ConfiguredTemplates,
  name: MailTemplateName,
  locale: string | null,
): MailTemplateConfig {
  const tags = Object.keys(configured)
  // Language tags are case-insensitive.
  const wanted = locale === null ? [] : [locale.toLowerCase(), locale.toLowerCase().split('-')[0]]
  for (const tag of [...wanted, 'en']) {
    const known = tags.find((candidate) => candidate.toLowerCase() === tag)
    const own = known === undefined ? undefined : configured[known]
    if (own && Object.hasOwn(own, name)) return own[name] as MailTemplateConfig
  }
  return english[name]
}

/** Single pass: placeholders within values are not expanded. Unknown names are replaced by nothing. */
const fill = (template: string, values: MailValues & { readonly appName: string }): string =>
  template.replace(/\{\{(\w{1,32})\}\}/g, (_, name: string) =>
    Object.hasOwn(values, name) ? oneLine(String(values[name as keyof MailValues])).slice(0, mailValueCharsMax) : '',
  )

/**
 * A value as a single line: without control characters, line breaks of any kind, and characters that change the
 * direction of the surrounding text.
 */
const oneLine = (text: string): string =>
  text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, ' ').trim()
