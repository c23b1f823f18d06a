/** Mail over SMTP: one configured server, a few connections to it, and which failures are worth another try. */
import type { SmtpConfig } from '../../../config/sections/auth/auth.ts'
import { mailConnectionsMax, mailIdleMs } from '../../../limits/users.ts'

/** A mail ready to be sent: one recipient, one line of subject, plain text. */
export interface OutgoingMail {
  /** As the configuration says: an address, perhaps with a name. */
  readonly from: string
  /** Normalised. */
  readonly to: string
  readonly subject: string
  readonly text: string
}

/** How long a server may take. */
export interface SmtpTimeouts {
  /** To be reached, and then to say its name. */
  readonly connectMs: number
  /** Between two of its lines. */
  readonly silenceMs: number
  /** For a mail from beginning to end. */
  readonly deliveryMs: number
}

/** A way for mails to leave. */
export interface MailTransport {
  /** Resolves once somebody else is responsible for the mail. */
  send(mail: OutgoingMail): Promise<void>
  /** Lets go of connections; with `force` also of those in the middle of a mail, which then rejects. */
  close(options?: { readonly force: boolean }): void
}

/** What every mail is, for the library: text of ours that refers to nothing, and that nobody is to answer. */
const messageOf = ({ from, to, subject, text }: OutgoingMail) => ({
  from,
  // An object is taken as it is; text would be looked through for several addresses.
  to: { name: '', address: to },
  subject,
  text,
  headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
  disableFileAccess: true,
  disableUrlAccess: true,
})

/** Whoever listens on the way to this very machine has other means. */
const isLoopback = (host: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i.test(host)

/** Connects with the first mail. Must be closed. */
export function openSmtpTransport(server: SmtpConfig, timeouts: SmtpTimeouts): MailTransport {
  let opened: ReturnType<typeof createTransport> | null = null
  return {
    async send(mail) {
      opened ??= createTransport(server, timeouts)
      const transport = await opened
      await transport.sendMail({ ...messageOf(mail), signal: AbortSignal.timeout(timeouts.deliveryMs) })
    },
    close: (options) => void opened?.then((transport) => transport.close(options)),
  }
}

async function createTransport({ host, port, secure, user, password, ca }: SmtpConfig, timeouts: SmtpTimeouts) {
  // A fifth of a second and 20 MiB, which only a server that sends mail has to spend.
  const { default: nodemailer } = await import('nodemailer')
  return nodemailer.createTransport({
    host,
    port,
    secure,
    // A server, or somebody in between, that offers no encryption does not get the password.
    requireTLS: !secure && user !== null && !isLoopback(host),
    ...(user === null ? {} : { auth: { user, pass: password ?? '' } }),
    tls: { minVersion: 'TLSv1.2', ...(ca ? { ca } : {}) },
    pool: true,
    maxConnections: mailConnectionsMax,
    // Trying again is the queue's business, which knows when to stop.
    maxRequeues: 0,
    idleTimeout: mailIdleMs,
    dnsTimeout: timeouts.connectMs,
    connectionTimeout: timeouts.connectMs,
    greetingTimeout: timeouts.connectMs,
    socketTimeout: timeouts.silenceMs,
  })
}

/** What is wrong with the mail or with the configuration, rather than with the moment. */
const permanentCodes = new Set<unknown>(['EENVELOPE', 'EMESSAGE', 'EAUTH', 'ENOAUTH', 'ECONFIG'])

/** Whether trying again can only fail again. A server's own word counts before the kind of error. */
export function isPermanentFailure(error: unknown): boolean {
  const { permanent, code } = error as { readonly permanent?: unknown; readonly code?: unknown }
  return typeof permanent === 'boolean' ? permanent : permanentCodes.has(code)
}
