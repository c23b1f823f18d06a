/** Server configurations that send mail to a mailbox of the tests. */
import type { Mailbox } from './mailbox.ts'

interface MailAuthOptions {
  readonly verifySignups?: boolean
  readonly [section: string]: unknown
}

/** The page that links of a purpose open. */
export const page = (name: string): string => `https://app.example.org/${name}`

/** The section `auth` with mail delivered to this mailbox. */
export const mailAuth = ({ port }: Mailbox, { verifySignups, ...more }: MailAuthOptions = {}) => ({
  mail: {
    from: 'Atlas <no-reply@atlas.example>',
    appName: 'Atlas',
    verifySignups,
    smtp: { host: '127.0.0.1', port },
    links: {
      magicLink: page('magic'),
      passwordReset: page('reset?lang=en'),
      emailVerification: page('verify'),
      emailChange: page('change'),
    },
  },
  ...more,
})
