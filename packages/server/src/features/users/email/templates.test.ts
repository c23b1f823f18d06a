import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type MailTemplateName, mailTemplates } from '../../../config/sections/auth/mail-templates.ts'
import { mailSubjectCharsMax } from '../../../limits/users.ts'
import { type MailValues, renderMail } from './templates.ts'

const values: Required<MailValues> & { appName: string } = {
  appName: 'Atlas',
  email: 'ada@example.org',
  displayName: 'Ada',
  link: 'https://app.example.org/go?token=t0ken',
  code: '012345',
  newEmail: 'countess@example.org',
  minutes: '15',
  hours: '24',
}

const templateNames = Object.keys(mailTemplates) as MailTemplateName[]

describe('the built-in templates', () => {
  test.each(templateNames)('[MAIL-11] %s names the account and has no unfilled placeholder', (name) => {
    const { subject, text } = renderMail({}, name, null, values)
    expect(subject).toContain('Atlas')
    expect(`${subject}${text}`).not.toMatch(/[{}]/)
    expect(text).toMatch(/ada@example\.org|countess@example\.org/)
    // Recipients who did not request the mail need to know what to do.
    if (name !== 'password-changed' && name !== 'email-change-notice') expect(text).toContain('ignore this mail')
  })

  test('[MAIL-11] links and codes are on a line of their own', () => {
    for (const name of ['magic-link', 'password-reset', 'email-verification', 'email-change'] as const)
      expect(renderMail({}, name, null, values).text).toContain(`\n${values.link}\n`)
    expect(renderMail({}, 'email-otp', null, values).text).toContain('\n012345\n')
  })
})

describe('configured templates', () => {
  const template = (language: string) => ({ subject: language, text: `${language}: {{link}}` })
  const configured = {
    de: { 'magic-link': template('de') },
    'de-AT': { 'magic-link': template('de-AT') },
    en: { 'email-otp': template('en') },
  }

  test.each([
    ['magic-link', 'de', 'de'],
    ['magic-link', 'de-AT', 'de-AT'],
    ['magic-link', 'DE-at', 'de-AT'],
    ['magic-link', 'de-CH', 'de'],
    ['magic-link', 'fr', 'Sign in to Atlas'],
    ['magic-link', null, 'Sign in to Atlas'],
    ['email-otp', 'de', 'en'],
    ['email-otp', '__proto__', 'en'],
    ['email-otp', null, 'en'],
  ] as const)('[MAIL-11] %s for the locale %p uses the template of %s', (name, locale, subject) => {
    expect(renderMail(configured, name, locale, values).subject).toBe(subject)
  })

  test('[MAIL-11] unknown placeholders are replaced by nothing, including names of Object members', () => {
    const odd = { en: { 'magic-link': { subject: 's', text: '<{{unknown}}|{{constructor}}|{{ link }}>' } } }
    expect(renderMail(odd, 'magic-link', null, values).text).toBe('<||{{ link }}>')
  })
})

describe('values', () => {
  const echo = { en: { 'magic-link': { subject: 'S {{displayName}}', text: '<{{displayName}}>{{link}}' } } }
  const render = (displayName: string) => renderMail(echo, 'magic-link', null, { ...values, displayName })

  test.each([
    ['{{link}}', '{{link}}'],
    ['$&$1', '$&$1'],
    ['a\r\nBcc: eve@example.org', 'a Bcc: eve@example.org'],
    ['a\u2028b\u2029c\u0085d\u0000e', 'a b c d e'],
    ['\u202egpj.exe', 'gpj.exe'],
    ['<b>&amp;</b>', '<b>&amp;</b>'],
  ])('[MAIL-10] the value %j is inserted as text', (displayName, shown) => {
    const { subject, text } = render(displayName)
    expect(text).toBe(`<${shown}>${values.link}`)
    expect(subject).toBe(`S ${shown}`)
  })

  test('[MAIL-10] no value adds a line, and the subject is bounded', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (displayName) => {
        const { subject, text } = render(displayName)
        expect(`${subject}${text}`).not.toMatch(/[\r\n\u2028\u2029\0]/)
        expect(subject.length).toBeLessThanOrEqual(mailSubjectCharsMax)
        expect(subject.isWellFormed()).toBe(true)
      }),
    )
  })
})
