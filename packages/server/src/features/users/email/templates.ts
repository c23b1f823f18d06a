/**
 * The words of every mail: plain text, English built in, other languages and other words from the configuration. Owns
 * that values stay values: none is read as a placeholder, a header or a line of its own. Sending is `mail`'s.
 */
import type { MailConfig, MailTemplateConfig } from '../../../config/sections/auth/auth.ts'
import type { MailPlaceholder, MailTemplateName } from '../../../config/sections/auth/mail-templates.ts'
import { mailSubjectCharsMax, mailValueCharsMax } from '../../../limits/users.ts'

/** What goes into a mail, besides the name of the app. */
export type MailValues = { readonly [Name in Exclude<MailPlaceholder, 'appName'>]?: string }

/** Written templates: language tag to template name to template. */
export type WrittenTemplates = MailConfig['templates']

/** Lines with `{{name}}` where a value goes. */
const english: Readonly<Record<MailTemplateName, MailTemplateConfig>> = {
  'magic-link': {
    subject: 'Sign in to {{appName}}',
    text: `Sign in to {{appName}} as {{email}}:

{{link}}

This works once, within {{minutes}} minutes.
If you did not ask for it, ignore this mail: nobody gets in without it.
`,
  },
  'email-otp': {
    subject: '{{code}} is your code for {{appName}}',
    text: `Your code to sign in to {{appName}} as {{email}}:

{{code}}

It works once, within {{minutes}} minutes. Nobody from {{appName}} will ever ask you for it.
If you did not ask for it, ignore this mail: nobody gets in without it.
`,
  },
  'password-reset': {
    subject: 'Set a new password for {{appName}}',
    text: `Set a new password for {{email}} at {{appName}}:

{{link}}

This works once, within {{minutes}} minutes.
If you did not ask for it, ignore this mail: your password stays as it is.
`,
  },
  'password-changed': {
    subject: 'Your password for {{appName}} was changed',
    text: `The password of {{email}} at {{appName}} was just set anew, and every device was signed out.

If this was not you, ask for a new password at once: whoever did it may have access to this mailbox.
`,
  },
  'email-verification': {
    subject: 'Confirm your address for {{appName}}',
    text: `Confirm that {{email}} is the address of your account at {{appName}}:

{{link}}

This works once, within {{hours}} hours. Open it where you are signed in: elsewhere it removes the password and signs
every device out, and you sign in by mail.
If you have no such account, ignore this mail: an account with your address that you did not open stays unconfirmed.
`,
  },
  'email-change': {
    subject: 'Confirm your new address for {{appName}}',
    text: `Confirm that {{newEmail}} is the new address of your account at {{appName}}:

{{link}}

This works once, within {{minutes}} minutes. Open it where you are signed in: elsewhere it removes the password and
signs every device out, and you sign in by mail.
If you did not ask for it, ignore this mail: nothing is changed without it.
`,
  },
  'email-change-notice': {
    subject: 'The address of your account at {{appName}} is about to change',
    text: `Somebody signed in as {{email}} at {{appName}} wants to change the address of the account to {{newEmail}}.

If this was you, there is nothing to do here: a mail to the new address says how to go on.
If this was not you, set a new password now. That ends the change, and signs every device out.
`,
  },
}

/** A rendered mail: one line, and lines. */
export interface MailText {
  readonly subject: string
  readonly text: string
}

/**
 * Fills in a template: the one written for the language, for the language without its region, for English, or the one
 * built in, whichever is there first.
 */
export function renderMail(
  written: WrittenTemplates,
  name: MailTemplateName,
  locale: string | null,
  values: MailValues & { readonly appName: string },
): MailText {
  const { subject, text } = findTemplate(written, name, locale)
  return {
    subject: oneLine(fill(subject, values)).slice(0, mailSubjectCharsMax).toWellFormed(),
    text: fill(text, values),
  }
}

function findTemplate(written: WrittenTemplates, name: MailTemplateName, locale: string | null): MailTemplateConfig {
  const tags = Object.keys(written)
  // Language tags mean the same in any case.
  const wanted = locale === null ? [] : [locale.toLowerCase(), locale.toLowerCase().split('-')[0]]
  for (const tag of [...wanted, 'en']) {
    const known = tags.find((candidate) => candidate.toLowerCase() === tag)
    const own = known === undefined ? undefined : written[known]
    if (own && Object.hasOwn(own, name)) return own[name] as MailTemplateConfig
  }
  return english[name]
}

/** One pass: what a value says is never looked at again. A name nobody knows is left empty. */
const fill = (template: string, values: MailValues & { readonly appName: string }): string =>
  template.replace(/\{\{(\w{1,32})\}\}/g, (_, name: string) =>
    Object.hasOwn(values, name) ? oneLine(String(values[name as keyof MailValues])).slice(0, mailValueCharsMax) : '',
  )

/**
 * A value stays within its line and says what it shows: no control characters, no line breaks of any kind, nothing that
 * turns the direction of the text around it.
 */
const oneLine = (text: string): string =>
  text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, ' ').trim()
