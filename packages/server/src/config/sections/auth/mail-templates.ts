/**
 * Which mails there are, and what a written template must hold: a mail without its link or code is of no use, and a
 * misspelt name would never be sent. The built-in words are the users feature's.
 */
import { type Mistake, type Path, suggest } from '../../mistakes.ts'
import { membersOf } from '../../shape-parts.ts'

/** Mails to what must be in them. */
export const mailTemplates = {
  'magic-link': ['link'],
  'email-otp': ['code'],
  'password-reset': ['link'],
  'password-changed': [],
  'email-verification': ['link'],
  'email-change': ['link'],
  'email-change-notice': [],
} as const satisfies Readonly<Record<string, readonly string[]>>

export type MailTemplateName = keyof typeof mailTemplates

/** What a template may name, whichever it is; what does not apply is empty. */
export const mailPlaceholders = [
  'appName',
  'email',
  // The address, for an account that is not known to be its owner's.
  'displayName',
  // The page to go to, with its token; the bare token where no page is configured.
  'link',
  'code',
  // The address that a change leads to.
  'newEmail',
  // How long the link or code works; one of the two reads well.
  'minutes',
  'hours',
] as const
export type MailPlaceholder = (typeof mailPlaceholders)[number]

const languagePattern = /^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,3}$/

/** What is wrong with `auth.mail.templates` beyond its shape; takes whatever was written. */
export function checkMailTemplates(written: unknown, path: Path): Mistake[] {
  return membersOf(written).flatMap(([language, templates]) => {
    const at = [...path, language]
    if (!languagePattern.test(language)) return [{ path: at, message: 'must be a language tag such as "de"' }]
    return membersOf(templates).flatMap(([name, template]) => checkTemplate(name, template, [...at, name]))
  })
}

function checkTemplate(name: string, written: unknown, path: Path): Mistake[] {
  const names = Object.keys(mailTemplates)
  if (!Object.hasOwn(mailTemplates, name)) {
    const hint = suggest(name, names) || ` Known: ${names.join(', ')}.`
    return [{ path, message: `is no mail.${hint}` }]
  }
  const { subject, text } = Object.fromEntries(membersOf(written))
  if (typeof text !== 'string') return []
  const missing = mailTemplates[name as MailTemplateName].filter((need) => !text.includes(`{{${need}}}`))
  const used = [...`${typeof subject === 'string' ? subject : ''} ${text}`.matchAll(/\{\{([^{}]*)\}\}/g)]
  const unknown = used.map(([, word = '']) => word).filter((word) => !mailPlaceholders.some((known) => known === word))
  return [
    ...missing.map((need) => ({ path: [...path, 'text'], message: `must say {{${need}}}` })),
    ...[...new Set(unknown)].map((word) => ({
      path,
      message: `{{${word}}} is not known here.${suggest(word, [...mailPlaceholders]) || ` Known: ${mailPlaceholders.join(', ')}.`}`,
    })),
  ]
}
