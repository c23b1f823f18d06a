/** The one error class of the client. Every rejected promise of the client is rejected with it. */

export interface ErrorDetails {
  /** HTTP status; 0 where there was no response. */
  readonly status?: number
  readonly slug: string
  /** The slug by default. */
  readonly message?: string | undefined
  readonly data?: unknown
  readonly requestId?: string | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** Statuses and slugs under which nothing was changed, or nothing is known, and the same request may succeed later. */
const retryable = /^(429|50[234]|network|timeout|rate-limited|unavailable)$/

/** An error of the server, or a request that had no valid response. */
export class PlinthError extends Error {
  declare readonly name: 'PlinthError'
  /** HTTP status; 0 where there was no response. */
  declare readonly status: number
  /** The server's `slug`, or `network`, `timeout`, `aborted`, `invalid-answer`, `feature-not-loaded`. */
  declare readonly slug: string
  /** The server's details by field. */
  declare readonly data?: unknown
  /** `X-Request-Id` of the response, under which the server logs it. */
  declare readonly requestId?: string
  /** Whether the same request may succeed later. Repeat a write only if it is idempotent. */
  declare readonly retryable: boolean
  /** From `Retry-After`, in milliseconds. */
  declare readonly retryAfterMs?: number

  constructor({ message, status = 0, ...details }: ErrorDetails) {
    super(message ?? details.slug)
    Object.assign(this, details, {
      name: 'PlinthError',
      status,
      retryable: retryable.test(`${status || details.slug}`),
    })
  }
}

/** Recognizes an error of the client by its name, so also of another copy of this package. */
export const isPlinthError = (error: unknown, slug?: string): error is PlinthError =>
  (error as PlinthError | null)?.name === 'PlinthError' && (!slug || (error as PlinthError).slug === slug)

export const failure = (slug: string, message?: string, cause?: unknown): PlinthError =>
  new PlinthError({ slug, message, cause })
