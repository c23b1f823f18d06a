/**
 * The one way out for mails: filled in, queued, and sent to the configured server, or in development mode to the
 * outbox. No request ever waits for one, so that no answer's time tells whether one was sent. What is worth a mail is
 * for the flows.
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
import { createMailQueue, type Failure } from './queue.ts'
import { isPermanentFailure, type MailTransport, openSmtpTransport, type SmtpTimeouts } from './smtp.ts'
import { type MailValues, renderMail } from './templates.ts'

/** A mail to one address, as its template and what goes into it. */
export interface TemplatedMail {
  /** Normalised. */
  readonly to: string
  readonly template: MailTemplateName
  /** Language tag; null for English. */
  readonly locale: string | null
  readonly values: MailValues
}

export interface Mailer {
  /** Whether mails leave this machine. */
  readonly isConfigured: boolean
  /** Queues a mail. When there is no room it is lost, and the log says so. */
  send(input: TemplatedMail): void
  /**
   * Queues what comes before a mail with it: looking for the account, making a token. Null is no mail after all. Should
   * sending fail, only that is tried again.
   */
  sendLater(template: MailTemplateName, compose: () => Promise<Omit<TemplatedMail, 'template'> | null>): void
  /** Resolves when every mail has been sent or given up. */
  idle(): Promise<void>
  /** Takes no more mails and sends the queued ones, for a few seconds. */
  close(): Promise<void>
}

export interface MailerDeps {
  /** Asked at each mail, since a reload may change it. */
  readonly config: () => MailConfig | null
  readonly mode: Mode
  /** Where the outbox of development mode is. */
  readonly outboxFolder: string
  readonly clock: Clock
  readonly log: Log
  /** Default `mailTiming`. */
  readonly timing?: MailTiming
}

/** How long things may take. */
export interface MailTiming extends SmtpTimeouts {
  /** Pauses before the second and later attempts. */
  readonly retryDelaysMs: readonly number[]
  /** What is queued at the end gets this long. */
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
  const queue = createMailQueue({ retryDelaysMs: timing.retryDelaysMs, isPermanent: isPermanentFailure })
  const smtp = createSmtpHolder(timing)
  const outbox = mode === 'development' ? createOutbox({ folder: outboxFolder, clock, log }) : null

  /** Null where mails go nowhere. */
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
      log.error('mail.dropped', { template, error: 'no room' })
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

/** Servers like to quote what they refuse. */
const withoutSecrets = (text: string): string => text.replace(/[\w-]{43,}|\b\d{6}\b/g, '[hidden]')

/** Connections to the server that the configuration names now. */
function createSmtpHolder(timeouts: SmtpTimeouts) {
  let held: { readonly key: string; readonly transport: MailTransport } | null = null
  return {
    get(server: SmtpConfig): MailTransport {
      const key = JSON.stringify(server)
      if (held?.key === key) return held.transport
      // What is on its way to the server before gets there.
      held?.transport.close()
      held = { key, transport: openSmtpTransport(server, timeouts) }
      return held.transport
    },
    close(options: { readonly force: boolean }): void {
      held?.transport.close(options)
      held = null
    },
  }
}
