/** The request of a client that signs in or up, with unverified information for sessions and rate limits. */
import type { HookedRequest } from '../hooks/hooked-request.ts'

export interface ClientInfo {
  readonly userAgent: string | null
  readonly address: string
  /** Device token of an earlier sign-in (`attempts`), not yet verified. */
  readonly deviceToken?: string | null
  readonly request: HookedRequest
}
