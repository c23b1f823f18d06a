/** Who sends a request, as far as sessions and limits care: nothing of it is proved. */

export interface ClientInfo {
  readonly userAgent: string | null
  readonly address: string
  /** What the device was given at an earlier sign-in (`attempts`); not checked yet. */
  readonly deviceToken?: string | null
}
