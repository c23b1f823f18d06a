/**
 * Renders and queues mails, and sends them through the configured server, or in development mode to the outbox. Sending
 * is asynchronous, so that response times do not reveal whether a mail was sent.
 */
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { Mode } from '../../../config/config.ts'
import type { MailConfig, SmtpConfig } from '../../../config/sections/auth/auth.ts'
import type { MailTemplateName } from '../../../config/sections/auth/mail-templates.ts'
import {
  mailConnectTimeoutMs,
  mailDeliveryTimeoutMs,
  mailDrainTimeoutMs,
  mailRetryDelaysMs,
  mailSocketTimeoutMs,
} from '../../../limits/users.ts'
import { createOutbox } from './outbox.ts'
import { type Failure, openMailQueue } from './queue.ts'
import { isPermanentFailure, type MailTransport, openSmtpTransport, type SmtpTimeouts } from './smtp.ts'
import { type MailValues, renderMail } from './templates.ts'

/** A mail to one address: a template and its values. */
export interface TemplatedMail {
  /** Normalized. */
  readonly to: string
  readonly template: MailTemplateName
  /** Language tag; null means English. */
  readonly locale: string | null
  readonly values: MailValues
}

export interface Mailer {
  /** Whether a mail server is configured. */
  readonly isConfigured: boolean
  /** Queues a mail. If the queue is full, the mail is dropped and logged. */
  send(input: TemplatedMail): void
  /**
   * Queues the preparation of a mail together with the mail: finding the account, issuing a token. `compose` may return
   * null for no mail. If sending fails, only sending is retried.
   */
  sendLater(template: MailTemplateName, compose: () => Promise<Omit<TemplatedMail, 'template'> | null>): void
  /** Resolves when every mail has been sent or dropped. */
  idle(): Promise<void>
  /** Stops accepting mails and sends the queued ones for a few seconds. */
  close(): Promise<void>
}

export interface MailerDeps {
  /** Read for each mail, since a reload may change it. */
  readonly config: () => MailConfig | null
  readonly mode: Mode
  /** Outbox folder of development mode. */
  readonly outboxFolder: string
  readonly clock: Clock
  readonly log: Log
  /** Default `mailTiming`. */
  readonly timing?: MailTiming
}

/** Timeouts and retry delays. */
export interface MailTiming extends SmtpTimeouts {
  /** Delays before the second and later attempts. */
  readonly retryDelaysMs: readonly number[]
  /** Time to send queued mails at shutdown. */
  readonly drainMs: number
}

const mailTiming: MailTiming = {
  connectMs: mailConnectTimeoutMs,
  silenceMs: mailSocketTimeoutMs,
  deliveryMs: mailDeliveryTimeoutMs,
  retryDelaysMs: mailRetryDelaysMs,
  drainMs: mailDrainTimeoutMs,
}

const appNameDefault = 'Plinth'
const fromDefault = 'Plinth <no-reply@localhost>'

/** Must be closed. */
export function openMailer(deps: MailerDeps): Mailer {
  const { config, mode, outboxFolder, clock, log, timing = mailTiming } = deps
  const queue = openMailQueue({ retryDelaysMs: timing.retryDelaysMs, isPermanent: isPermanentFailure })
  const smtp = createCurrentTransport(timing)
  const outbox = mode === 'development' ? createOutbox({ folder: outboxFolder, clock, log }) : null

  /** Null if mails are discarded. */
  function findTransport(): MailTransport | null {
    const server = config()?.smtp
    return server ? smtp.get(server) : outbox
  }

  async function deliver({ to, template, locale, values }: TemplatedMail): Promise<void> {
    const { from = fromDefault, appName, templates = {} } = config() ?? {}
    const mail = renderMail(templates, template, locale, { appName: appName ?? appNameDefault, ...values })
    await findTransport()?.send({ from, to, ...mail })
  }

  function report(template: MailTemplateName, { error, attempts, isFinal }: Failure): void {
    const fields = { template, attempts, error: withoutSecrets(error instanceof Error ? error.message : String(error)) }
    if (isFinal) log.error('mail.dropped', fields)
    else log.warn('mail.retrying', fields)
  }

  const sendLater: Mailer['sendLater'] = (template, compose) => {
    if (!findTransport()) return
    let mail: Omit<TemplatedMail, 'template'> | null | undefined
    const work = async (): Promise<void> => {
      mail ??= await compose()
      if (mail) await deliver({ ...mail, template })
    }
    if (!queue.add(work, (failure) => report(template, failure)))
      log.error('mail.dropped', { template, error: 'The mail queue is full' })
  }

  return {
    get isConfigured() {
      return Boolean(config()?.smtp)
    },
    send: ({ template, ...mail }) => sendLater(template, async () => mail),
    sendLater,
    idle: queue.idle,
    async close() {
      const left = await queue.close(timing.drainMs)
      if (left > 0) log.error('mail.dropped_at_close', { count: left })
      smtp.close({ force: true })
    },
  }
}

/** Mail servers may quote the message in their errors. */
const withoutSecrets = (text: string): string => text.replace(/[\w-]{43,}|\b\d{6}\b/g, '[hidden]')

/** The transport of the currently configured server. */
function createCurrentTransport(timeouts: SmtpTimeouts) {
  let current: { readonly key: string; readonly transport: MailTransport } | null = null
  return {
    get(server: SmtpConfig): MailTransport {
      const key = JSON.stringify(server)
      if (current?.key === key) return current.transport
      // Deliveries in progress on the previous transport complete.
      current?.transport.close()
      current = { key, transport: openSmtpTransport(server, timeouts) }
      return current.transport
    },
    close(options: { readonly force: boolean }): void {
      current?.transport.close(options)
      current = null
    },
  }
}
