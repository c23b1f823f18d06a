import { expect, test } from 'bun:test'
import { formatIssue } from '../../issues.ts'
import { checkMailTemplates } from './mail-templates.ts'

const check = (written: unknown): string[] =>
  checkMailTemplates(written, ['auth', 'mail', 'templates']).map(formatIssue)
const link = { subject: 'Anmelden bei {{appName}}', text: 'Hallo {{displayName}}: {{link}} ({{minutes}} Minuten)' }

test('[MAIL-11] valid templates, and values that the schema rejects, have no errors', () => {
  expect(check({ de: { 'magic-link': link, 'password-changed': { subject: 's', text: 't' } }, 'pt-BR': {} })).toEqual(
    [],
  )
  for (const odd of [undefined, null, 1, 'x', [], { de: null }, { de: { 'magic-link': 7 } }])
    expect(check(odd)).toEqual([])
})

test.each([
  [{ 'de_AT!': {} }, 'must be a language tag'],
  [{ de: { 'magic-lnk': link } }, 'magic-link'],
  [{ de: { constructor: link } }, 'is not a known mail template'],
  [{ de: { 'magic-link': { ...link, text: 'no link' } } }, 'must contain {{link}}'],
  [{ de: { 'email-otp': link } }, 'must contain {{code}}'],
  [{ de: { 'magic-link': { ...link, subject: '{{apName}}' } } }, '{{apName}} is not a known placeholder'],
  [{ de: { 'magic-link': { ...link, text: '{{link}} {{ link }}' } } }, '{{ link }} is not a known placeholder'],
])('[MAIL-11] rejects %j', (written, message) => {
  const mistakes = check(written)
  expect(mistakes).toHaveLength(1)
  expect(mistakes[0]).toStartWith('auth.mail.templates')
  expect(mistakes[0]).toContain(message)
})
