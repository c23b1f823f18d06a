/** One way of sending mails, `smtp` or `outbox`: what a mail is, and the settings of a server. */

/** A rendered mail: one recipient, a one-line subject, plain text and optionally HTML. */
export interface OutgoingMail {
  /** As configured: an address, optionally with a display name. */
  readonly from: string
  /** Normalized. */
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html?: string
  /** A header `Message-ID` of its own, the same for every attempt, by which mail servers recognize a repetition. */
  readonly messageId?: string
}

/** A mail server. */
export interface SmtpServer {
  readonly host: string
  readonly port: number
  /** Implicit TLS. */
  readonly secure: boolean
  readonly user: string | null
  readonly password: string | null
  /** PEM. */
  readonly ca: string | null
}

/** Timeouts of the mail server. */
export interface SmtpTimeouts {
  /** For the connection, and again for the greeting. */
  readonly connectMs: number
  /** Idle time during a conversation. */
  readonly silenceMs: number
  /** Total time of a delivery. */
  readonly deliveryMs: number
}

/** Sends mails. */
export interface MailTransport {
  /** Resolves once the mail has been handed over. */
  send(mail: OutgoingMail): Promise<void>
  /** Closes the connections. `force` also aborts deliveries in progress, which then reject. */
  close(options?: { readonly force: boolean }): void
}
