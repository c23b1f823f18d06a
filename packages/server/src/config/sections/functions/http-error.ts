/** `HttpError`: what a function throws to refuse a request with an error that the caller sees. */

/** Recognizes errors also where the application has a copy of this module of its own. */
const brand = Symbol.for('plinth.HttpError')

/** Ends the request with this status and the error body `{code, message, slug, data?}`. */
export class HttpError extends Error {
  readonly [brand] = true

  constructor(
    /** From 400 to 599. */
    readonly status: number,
    /** A stable identifier for programs, in lower case with hyphens: `out-of-stock`. */
    readonly slug: string,
    message = slug,
    /** Details for the caller, as JSON. */
    readonly data?: unknown,
  ) {
    super(message)
    this.name = 'HttpError'
    if (!Number.isInteger(status) || status < 400 || status > 599)
      throw new RangeError(`The status of an HttpError must be from 400 to 599, not ${status}`)
    if (!/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(slug))
      throw new RangeError(`The slug of an HttpError must be in lower case with hyphens, not "${slug}"`)
  }
}

/** Whether a function refused with an `HttpError`. */
export const isHttpError = (error: unknown): error is HttpError =>
  typeof error === 'object' && error !== null && brand in error
