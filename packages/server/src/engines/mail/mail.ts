/**
 * Port: hands mails to the configured mail server, or in development mode without one to the outbox. One attempt;
 * callers queue and retry.
 */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { mailConnectTimeoutMs, mailDeliveryTimeoutMs, mailSocketTimeoutMs } from '../../limits/users.ts'
import { createOutbox } from './outbox.ts'
import { openSmtpTransport } from './smtp.ts'
import type { MailTransport, OutgoingMail, SmtpServer, SmtpTimeouts } from './transport.ts'

export interface MailsDeps {
  /** Read for each mail, since a reload may change it. */
  readonly server: () => SmtpServer | null
  /** The sender; null for a default. */
  readonly from: () => string | null
  /** The folder of the outbox; null discards mails without a server. */
  readonly outboxFolder: string | null
  readonly clock: Clock
  readonly log: Log
  readonly timeouts?: SmtpTimeouts
}

/** Where mails go: to a mail server, into the outbox of development, or nowhere. */
export type MailRoute = 'smtp' | 'outbox' | 'none'

export interface Mails {
  readonly route: MailRoute
  /** Resolves once the mail has been handed over, or discarded. */
  send(mail: Omit<OutgoingMail, 'from'>): Promise<void>
  /** Aborts deliveries in progress. */
  close(): Promise<void>
}

const defaultTimeouts: SmtpTimeouts = {
  connectMs: mailConnectTimeoutMs,
  silenceMs: mailSocketTimeoutMs,
  deliveryMs: mailDeliveryTimeoutMs,
}

const fromDefault = 'Plinth <no-reply@localhost>'

/** Must be closed. */
export function openMails({ server, from, outboxFolder, clock, log, timeouts = defaultTimeouts }: MailsDeps): Mails {
  const smtp = createCurrentTransport(timeouts)
  const outbox = outboxFolder === null ? null : createOutbox({ folder: outboxFolder, clock, log })

  function findTransport(): MailTransport | null {
    const current = server()
    return current ? smtp.get(current) : outbox
  }

  return {
    get route() {
      if (server()) return 'smtp'
      return outbox ? 'outbox' : 'none'
    },
    send: async (mail) => findTransport()?.send({ from: from() ?? fromDefault, ...mail }),
    close: async () => smtp.close({ force: true }),
  }
}

/** The transport of the currently configured server. */
function createCurrentTransport(timeouts: SmtpTimeouts) {
  let current: { readonly key: string; readonly transport: MailTransport } | null = null
  return {
    get(server: SmtpServer): MailTransport {
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
