/** Mailers without a Plinth server, and the mail servers that they send to. */
import { afterEach } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SMTPServerOptions } from 'smtp-server'
import { manualClock } from '../../../src/base/clock.ts'
import { createLog } from '../../../src/base/log.ts'
import { type MailsDeps, openMails } from '../../../src/engines/mail/mail.ts'
import type { SmtpTimeouts } from '../../../src/engines/mail/transport.ts'
import {
  type Mailer,
  type MailerDeps,
  type MailTiming,
  openMailer,
  type TemplatedMail,
} from '../../../src/features/users/email/mailer.ts'
import { type Mailbox, openMailbox } from './mailbox.ts'

/** Generous deadlines for slow machines, with almost no delay between attempts. */
export const patientTiming: MailTiming & SmtpTimeouts = {
  connectMs: 10_000,
  silenceMs: 10_000,
  deliveryMs: 10_000,
  retryDelaysMs: [1, 1],
  drainMs: 10_000,
}

/** A magic-link mail to this address. */
export const mailTo = (to: string, more: Partial<TemplatedMail> = {}): TemplatedMail => ({
  to,
  template: 'magic-link',
  locale: null,
  values: { email: to, link: 'https://app.example.org/go?token=t', minutes: '15' },
  ...more,
})

export type MailConfig = NonNullable<ReturnType<MailerDeps['config']>>

/** What the tests have opened, closed after each test. */
const cleanups: (() => unknown)[] = []
export const closeAfter = (cleanup: () => unknown): void => void cleanups.push(cleanup)

/** Registers the cleanup; called once per test file. */
export const closeAfterEach = (): void =>
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  })

export async function openBox(options?: SMTPServerOptions): Promise<Mailbox> {
  const box = await openMailbox(options)
  closeAfter(() => box.close())
  return box
}

interface OpenOptions {
  readonly timing?: MailTiming & SmtpTimeouts
  /** Whether mails without a server go to the outbox. */
  readonly hasOutbox?: boolean
  readonly clock?: MailsDeps['clock']
}

/** A mailer whose configuration can be replaced, and what it logged. */
export function open(
  config: MailConfig | null,
  { timing = patientTiming, hasOutbox = false, clock = manualClock() }: OpenOptions = {},
) {
  const lines: string[] = []
  const log = createLog({ level: 'debug', format: 'json', write: (text) => void lines.push(text) })
  const state = { config }
  const folder = mkdtempSync(join(tmpdir(), 'plinth-mail-'))
  const outbox = join(folder, 'outbox')
  const mails = openMails({
    server: () => state.config?.smtp ?? null,
    from: () => state.config?.from ?? null,
    outboxFolder: hasOutbox ? outbox : null,
    clock,
    log,
    timeouts: timing,
  })
  const mailer: Mailer = openMailer({ config: () => state.config, mails, log, timing })
  closeAfter(async () => {
    await mailer.close()
    await mails.close()
    rmSync(folder, { recursive: true })
  })
  const logged = (): string => {
    log.flush()
    return lines.join('')
  }
  return { mailer, mails, state, logged, outbox }
}

/** The configuration that sends to a mail server on this port of the machine. */
export const smtpConfig = (port: number, smtp: object = {}, more: object = {}): MailConfig =>
  ({
    from: 'Atlas <no-reply@atlas.example>',
    appName: 'Atlas',
    smtp: { host: '127.0.0.1', port, secure: false, user: null, password: null, ...smtp },
    ...more,
  }) as MailConfig
