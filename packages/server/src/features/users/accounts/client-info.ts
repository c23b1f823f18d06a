/** Unverified information about the client of a request, for sessions and rate limits. */

export interface ClientInfo {
  readonly userAgent: string | null
  readonly address: string
  /** Device token of an earlier sign-in (`attempts`), not yet verified. */
  readonly deviceToken?: string | null
}
