/** The one error class of the client. Every rejected promise of the client is rejected with it. */

export interface ErrorDetails {
  /** HTTP status; 0 where there was no response. */
  readonly status?: number
  readonly slug: string
  readonly message: string
  readonly data?: unknown
  readonly requestId?: string | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** Slugs under which nothing was changed, or nothing is known, and the same request may succeed later. */
const retryableSlugs = ['network', 'timeout', 'rate-limited', 'unavailable']

/** An error of the server, or a request that had no valid response. */
export class PlinthError extends Error {
  override readonly name = 'PlinthError'
  /** HTTP status; 0 where there was no response. */
  readonly status: number
  /** The server's `slug`, or `network`, `timeout`, `aborted`, `invalid-answer`, `feature-not-loaded`. */
  readonly slug: string
  /** The server's details by field. */
  readonly data?: unknown
  /** `X-Request-Id` of the response, under which the server logs it. */
  readonly requestId?: string
  /** Whether the same request may succeed later. Repeat a write only if it is idempotent. */
  readonly retryable: boolean
  /** From `Retry-After`, in milliseconds. */
  readonly retryAfterMs?: number

  constructor({ status = 0, slug, message, data, requestId, retryAfterMs, cause }: ErrorDetails) {
    super(message, cause === undefined ? undefined : { cause })
    this.status = status
    this.slug = slug
    this.retryable = retryableSlugs.includes(slug) || (status > 501 && status < 505)
    if (data !== undefined) this.data = data
    if (requestId) this.requestId = requestId
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs
  }
}

/** Recognizes an error of the client by its name, so also of another copy of this package. */
export const isPlinthError = (error: unknown, slug?: string): error is PlinthError =>
  error instanceof Error && error.name === 'PlinthError' && (slug === undefined || (error as PlinthError).slug === slug)

export const failure = (slug: string, message: string, cause?: unknown): PlinthError =>
  new PlinthError({ slug, message, cause })
