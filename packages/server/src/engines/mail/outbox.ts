/**
 * Mail transport of development mode without a mail server: logs each mail and saves it as an `.eml` file in a folder
 * of the data folder.
 */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { createUuid7 } from '../../base/crypto/ids.ts'
import type { Log } from '../../base/log.ts'
import { outboxMailsMax } from '../../limits/users.ts'
import type { MailTransport, OutgoingMail } from './transport.ts'

/** The first mail creates the folder; only the newest `outboxMailsMax` mails are kept. */
export function createOutbox(deps: {
  readonly folder: string
  readonly clock: Clock
  readonly log: Log
}): MailTransport {
  const { folder, clock, log } = deps
  // Ordered by time, so that the oldest file sorts first.
  const newName = createUuid7(clock)

  async function trim(): Promise<void> {
    const names = (await readdir(folder)).filter((name) => name.endsWith('.eml')).sort()
    for (const name of names.slice(0, -outboxMailsMax)) await rm(join(folder, name), { force: true })
  }

  return {
    async send(mail) {
      // The mails contain sign-in links and codes.
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await writeFile(join(folder, `${newName()}.eml`), formatMail(mail, new Date(clock.now())), { mode: 0o600 })
      await trim()
      log.info('mail.saved', { to: mail.to, subject: mail.subject, text: mail.text })
    },
    close() {},
  }
}

/** RFC 5322 with an unencoded body, so that links can be copied. Header values are single lines already. */
const formatMail = ({ from, to, subject, text }: OutgoingMail, date: Date): string =>
  [
    `From: ${from}`,
    `To: ${to}`,
    `Subject: ${subject}`,
    `Date: ${date.toUTCString().replace('GMT', '+0000')}`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: 8bit',
    '',
    text,
  ].join('\n')
