/** SMTP transport: a small connection pool to the configured server, and the classification of its errors. */
import { mailConnectionsMax, mailIdleMs } from '../../limits/users.ts'
import type { MailTransport, OutgoingMail, SmtpServer, SmtpTimeouts } from './transport.ts'

/** The message for nodemailer: no external references, marked as automatic. */
const messageOf = ({ from, to, subject, text, html, messageId }: OutgoingMail) => ({
  from,
  // A string would be parsed as a list of addresses; an object is used as is.
  to: { name: '', address: to },
  subject,
  text,
  ...(html === undefined ? {} : { html }),
  ...(messageId === undefined ? {} : { messageId }),
  headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
  disableFileAccess: true,
  disableUrlAccess: true,
})

/** Traffic to the loopback interface needs no encryption. */
const isLoopback = (host: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i.test(host)

/** Connects at the first mail. Must be closed. */
export function openSmtpTransport(server: SmtpServer, timeouts: SmtpTimeouts): MailTransport {
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

async function createTransport({ host, port, secure, user, password, ca }: SmtpServer, timeouts: SmtpTimeouts) {
  // Loaded lazily: the library takes 0.2 s and 20 MiB.
  const { default: nodemailer } = await import('nodemailer')
  return nodemailer.createTransport({
    host,
    port,
    secure,
    // Never sends the password unencrypted, even if the server (or an attacker in between) offers no TLS.
    requireTLS: !secure && user !== null && !isLoopback(host),
    ...(user === null ? {} : { auth: { user, pass: password ?? '' } }),
    tls: { minVersion: 'TLSv1.2', ...(ca ? { ca } : {}) },
    pool: true,
    maxConnections: mailConnectionsMax,
    // The queue retries.
    maxRequeues: 0,
    idleTimeout: mailIdleMs,
    dnsTimeout: timeouts.connectMs,
    connectionTimeout: timeouts.connectMs,
    greetingTimeout: timeouts.connectMs,
    socketTimeout: timeouts.silenceMs,
  })
}

/** Errors of the mail or the configuration, which a retry does not fix. */
const permanentCodes = new Set<unknown>(['EENVELOPE', 'EMESSAGE', 'EAUTH', 'ENOAUTH', 'ECONFIG'])

/** Whether a retry cannot succeed. The classification of the server takes precedence over the error code. */
export function isPermanentFailure(error: unknown): boolean {
  const { permanent, code } = error as { readonly permanent?: unknown; readonly code?: unknown }
  return typeof permanent === 'boolean' ? permanent : permanentCodes.has(code)
}
