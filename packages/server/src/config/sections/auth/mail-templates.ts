/**
 * The mails and their placeholders, and validation of configured templates: a template must contain the link or code of
 * its mail, and use known placeholders only. The users feature has the built-in texts.
 */
import { type ConfigIssue, type Path, suggest } from '../../issues.ts'
import { membersOf } from '../../shape-parts.ts'

/** Required placeholders of each mail. */
export const mailTemplates = {
  'magic-link': ['link'],
  'email-otp': ['code'],
  invitation: ['link'],
  'password-reset': ['link'],
  'password-changed': [],
  'email-verification': ['link'],
  'email-change': ['link'],
  'email-change-notice': [],
} as const satisfies Readonly<Record<string, readonly string[]>>

export type MailTemplateName = keyof typeof mailTemplates

/** Placeholders of all templates. One that does not apply to a mail is empty. */
export const mailPlaceholders = [
  'appName',
  'email',
  // The address instead, unless the account has verified it.
  'displayName',
  // The URL of the page with the token; the bare token if no page is configured.
  'link',
  'code',
  // The requested address of a change.
  'newEmail',
  // Lifetime of the link or code in both units; templates use the more readable one.
  'minutes',
  'hours',
] as const
export type MailPlaceholder = (typeof mailPlaceholders)[number]

const languagePattern = /^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,3}$/

/** Errors of `auth.mail.templates` beyond the schema. Accepts any value. */
export function checkMailTemplates(written: unknown, path: Path): ConfigIssue[] {
  return membersOf(written).flatMap(([language, templates]) => {
    const at = [...path, language]
    if (!languagePattern.test(language)) return [{ path: at, message: 'must be a language tag such as "de"' }]
    return membersOf(templates).flatMap(([name, template]) => checkTemplate(name, template, [...at, name]))
  })
}

function checkTemplate(name: string, written: unknown, path: Path): ConfigIssue[] {
  const names = Object.keys(mailTemplates)
  if (!Object.hasOwn(mailTemplates, name)) {
    const hint = suggest(name, names) || ` Known: ${names.join(', ')}.`
    return [{ path, message: `is not a known mail template.${hint}` }]
  }
  const { subject, text } = Object.fromEntries(membersOf(written))
  if (typeof text !== 'string') return []
  const missing = mailTemplates[name as MailTemplateName].filter((need) => !text.includes(`{{${need}}}`))
  const used = [...`${typeof subject === 'string' ? subject : ''} ${text}`.matchAll(/\{\{([^{}]*)\}\}/g)]
  const unknown = used.map(([, word = '']) => word).filter((word) => !mailPlaceholders.some((known) => known === word))
  return [
    ...missing.map((need) => ({ path: [...path, 'text'], message: `must contain {{${need}}}` })),
    ...[...new Set(unknown)].map((word) => ({
      path,
      message: `{{${word}}} is not a known placeholder.${suggest(word, [...mailPlaceholders]) || ` Known: ${mailPlaceholders.join(', ')}.`}`,
    })),
  ]
}
