/**
 * Renders and queues the mails about accounts. Sending is asynchronous, so that response times do not reveal whether a
 * mail was sent.
 */
import type { Log } from '../../../base/log.ts'
import type { MailConfig } from '../../../config/sections/auth/auth.ts'
import type { MailTemplateName } from '../../../config/sections/auth/mail-templates.ts'
import type { MailRoute, Mails } from '../../../engines/mail/mail.ts'
import { isPermanentFailure } from '../../../engines/mail/smtp.ts'
import { mailDrainTimeoutMs, mailRetryDelaysMs } from '../../../limits/users.ts'
import { renderMailHtml } from './html.ts'
import { type Failure, openMailQueue } from './queue.ts'
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
  readonly route: MailRoute
  /** The name of the application in mails. */
  readonly appName: string
  /** Queues a mail. If the queue is full, the mail is dropped and logged. */
  send(input: TemplatedMail): void
  /**
   * Queues the preparation of a mail together with the mail: finding the account, issuing a token. `compose` may return
   * null for no mail. If sending fails, only sending is retried.
   */
  sendLater(template: MailTemplateName, compose: () => Promise<Omit<TemplatedMail, 'template'> | null>): void
  /** Sends a mail now, without the queue and without retries: null, or the error without secrets. */
  sendNow(input: TemplatedMail): Promise<string | null>
  /** Resolves when every mail has been sent or dropped. */
  idle(): Promise<void>
  /** Stops accepting mails and sends the queued ones for a few seconds. */
  close(): Promise<void>
}

export interface MailerDeps {
  /** Read for each mail, since a reload may change it. */
  readonly config: () => MailConfig | null
  readonly mails: Mails
  readonly log: Log
  /** Default `mailTiming`. */
  readonly timing?: MailTiming
}

/** Retry delays and the deadline of the shutdown. */
export interface MailTiming {
  /** Delays before the second and later attempts. */
  readonly retryDelaysMs: readonly number[]
  /** Time to send queued mails at shutdown. */
  readonly drainMs: number
}

const mailTiming: MailTiming = {
  retryDelaysMs: mailRetryDelaysMs,
  drainMs: mailDrainTimeoutMs,
}

const appNameDefault = 'Plinth'

/** Must be closed. */
export function openMailer(deps: MailerDeps): Mailer {
  const { config, mails, log, timing = mailTiming } = deps
  const queue = openMailQueue({ retryDelaysMs: timing.retryDelaysMs, isPermanent: isPermanentFailure })

  const appNameOf = (): string => config()?.appName ?? appNameDefault

  async function deliver({ to, template, locale, values }: TemplatedMail): Promise<void> {
    const filled = { appName: appNameOf(), ...values }
    const mail = renderMail(config()?.templates ?? {}, template, locale, filled)
    await mails.send({ to, ...mail, html: renderMailHtml(mail, filled) })
  }

  function report(template: MailTemplateName, { error, attempts, isFinal }: Failure): void {
    const fields = { template, attempts, error: messageOf(error) }
    if (isFinal) log.error('mail.dropped', fields)
    else log.warn('mail.retrying', fields)
  }

  const sendLater: Mailer['sendLater'] = (template, compose) => {
    if (mails.route === 'none') return
    let mail: Omit<TemplatedMail, 'template'> | null | undefined
    const work = async (): Promise<void> => {
      mail ??= await compose()
      if (mail) await deliver({ ...mail, template })
    }
    if (!queue.add(work, (failure) => report(template, failure)))
      log.error('mail.dropped', { template, error: 'The mail queue is full' })
  }

  return {
    get route() {
      return mails.route
    },
    get appName() {
      return appNameOf()
    },
    async sendNow(mail) {
      try {
        await deliver(mail)
        return null
      } catch (error) {
        return messageOf(error)
      }
    },
    send: ({ template, ...mail }) => sendLater(template, async () => mail),
    sendLater,
    idle: queue.idle,
    async close() {
      const left = await queue.close(timing.drainMs)
      if (left > 0) log.error('mail.dropped_at_close', { count: left })
    },
  }
}

/** Mail servers may quote the message in their errors, with its tokens and codes. */
const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/[\w-]{43,}|\b\d{6}\b/g, '[hidden]')
