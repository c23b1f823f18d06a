import { expect, test } from 'bun:test'
import type { AuthConfig, MailConfig } from '../../../config/sections/auth/auth.ts'
import { createMailLinks } from './links.ts'

const linkTo = (links: MailConfig['links'], publicUrl: string | null) => {
  const mail = { from: 'a@example.org', smtp: null, appName: null, links, templates: {} }
  return createMailLinks({ config: () => ({ mail }) as unknown as AuthConfig, publicUrl: () => publicUrl })
}
const server = 'https://api.example.org'

test('[MAIL-8] a link uses the configured page and keeps its query and fragment', () => {
  const links = { magicLink: 'https://app.example.org/in?lang=de#top' }
  expect(linkTo(links, server)('magicLink', 't-1_x')).toBe('https://app.example.org/in?lang=de&token=t-1_x#top')
  expect(linkTo(links, null)('magicLink', 't')).toBe('https://app.example.org/in?lang=de&token=t#top')
})

test('[MAIL-8] without a page a link uses a default path of the public URL, else it is the bare token', () => {
  expect(linkTo({}, server)('magicLink', 't')).toBe(`${server}/auth/magic-link?token=t`)
  expect(linkTo({}, server)('passwordReset', 't')).toBe(`${server}/auth/reset-password?token=t`)
  expect(linkTo({}, server)('emailVerification', 't')).toBe(`${server}/auth/verify-email?token=t`)
  expect(linkTo({}, server)('emailChange', 't')).toBe(`${server}/auth/verify-email-change?token=t`)
  expect(linkTo({}, null)('emailChange', 't')).toBe('t')
})
