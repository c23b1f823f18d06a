/** Mailers by themselves, without a server, and the mail servers they send to. What comes of it is for the tests. */
import { afterEach } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SMTPServerOptions } from 'smtp-server'
import { manualClock } from '../../../src/base/clock.ts'
import { createLog } from '../../../src/base/log.ts'
import {
  type Mailer,
  type MailerDeps,
  type MailTiming,
  openMailer,
  type TemplatedMail,
} from '../../../src/features/users/email/mailer.ts'
import { type Mailbox, openMailbox } from './mailbox.ts'

/** Generous deadlines for slow machines, with almost no delay between attempts. */
export const patient: MailTiming = {
  connectMs: 10_000,
  silenceMs: 10_000,
  deliveryMs: 10_000,
  retryDelaysMs: [1, 1],
  drainMs: 10_000,
}

/** A mail to this address. */
export const order = (to: string, more: Partial<TemplatedMail> = {}): TemplatedMail => ({
  to,
  template: 'magic-link',
  locale: null,
  values: { email: to, link: 'https://app.example.org/go?token=t', minutes: '15' },
  ...more,
})

export type Written = NonNullable<ReturnType<MailerDeps['config']>>

/** What a test has opened is closed after it. */
const cleanups: (() => unknown)[] = []
export const closeAfter = (cleanup: () => unknown): void => void cleanups.push(cleanup)

/** To be called once by each file that opens something. */
export const closeAfterEach = (): void =>
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  })

export async function openBox(options?: SMTPServerOptions): Promise<Mailbox> {
  const box = await openMailbox(options)
  closeAfter(() => box.close())
  return box
}

/** A mailer whose configuration can be replaced, and what it has logged. */
export function open(config: Written | null, more: Partial<MailerDeps> = {}) {
  const lines: string[] = []
  const log = createLog({ level: 'debug', format: 'json', write: (text) => void lines.push(text) })
  const state = { config }
  const folder = mkdtempSync(join(tmpdir(), 'plinth-mail-'))
  const mailer: Mailer = openMailer({
    config: () => state.config,
    mode: 'release',
    outboxFolder: join(folder, 'outbox'),
    clock: manualClock(),
    log,
    timing: patient,
    ...more,
  })
  closeAfter(async () => {
    await mailer.close()
    rmSync(folder, { recursive: true })
  })
  const logged = (): string => {
    log.flush()
    return lines.join('')
  }
  return { mailer, state, logged, outbox: join(folder, 'outbox') }
}

/** The configuration that sends to a mail server on this machine. */
export const through = (port: number, smtp: object = {}, more: object = {}): Written =>
  ({
    from: 'Atlas <no-reply@atlas.example>',
    appName: 'Atlas',
    smtp: { host: '127.0.0.1', port, secure: false, user: null, password: null, ...smtp },
    ...more,
  }) as Written
