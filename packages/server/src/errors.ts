/**
 * Errors that a caller can meet, built from the catalogue in `error-codes.ts`: nothing else decides their status, slug
 * or wording. Internals of a failure (SQL, paths, stacks) belong in `cause`, which is logged and never sent.
 */
import { type ErrorSlug, httpErrors } from './error-codes.ts'

export { type ErrorSlug, httpErrors, type SocketErrorCodeOn } from './error-codes.ts'

/** Stable machine words of field-level mistakes (ERR-3). */
export type FieldErrorCode =
  | 'required'
  | 'type'
  | 'min'
  | 'max'
  | 'pattern'
  | 'enum'
  | 'unique'
  | 'unknown'
  | 'reference'
  | 'operator'

export interface FieldError {
  readonly code: FieldErrorCode
  readonly message: string
}

/** Field name (or path, such as `filter[0]`) to its mistake. */
export type FieldErrors = Readonly<Record<string, FieldError>>

/** The JSON body of every refused request: `{code, message, slug, data?}`; `code` is the HTTP status. */
export interface ErrorBody {
  readonly code: number
  readonly message: string
  readonly slug: string
  readonly data?: FieldErrors
}

/**
 * A refusal whose whole content may be shown to the caller. Built by the functions below; directly only for the error
 * of
 * another server, whose slug may be unknown here.
 */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly slug: string,
    message: string,
    readonly data?: FieldErrors,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message)
    this.name = 'ApiError'
  }

  body(): ErrorBody {
    const { status: code, message, slug, data } = this
    return data === undefined ? { code, message, slug } : { code, message, slug, data }
  }
}

/** The error of a slug, with its status from the catalogue. */
export const apiError = (
  slug: ErrorSlug,
  message: string,
  data?: FieldErrors,
  headers?: Readonly<Record<string, string>>,
): ApiError => new ApiError(httpErrors[slug].status, slug, message, data, headers)

/** 400 without a field to blame: a body that is not JSON, parameters that exclude each other. */
export const badRequest = (message: string): ApiError => apiError('bad-request', message)

/** 400 that names every bad field. Without a message, the first mistake is the message. */
export function invalid(data: FieldErrors, message?: string): ApiError {
  const first = Object.entries(data)[0]
  const text = message ?? (first ? `${first[0]}: ${first[1].message}` : 'Invalid input')
  return apiError('invalid-input', text, data)
}

/** 400 for one bad field or parameter. */
export const invalidField = (field: string, code: FieldErrorCode, message: string): ApiError =>
  invalid({ [field]: { code, message } })

export const authenticationRequired = (): ApiError => apiError('authentication-required', 'Authentication required')
export const tokenExpired = (): ApiError => apiError('token-expired', 'Token expired')
export const invalidToken = (): ApiError => apiError('invalid-token', 'Invalid token')
export const invalidServiceKey = (): ApiError => apiError('invalid-service-key', 'Invalid service key')
export const accessDenied = (message = 'Access denied'): ApiError => apiError('access-denied', message)

/** 404; `what` is a noun of the API (`Record`, `Table`), never an id or a path. */
export const notFound = (what: string, data?: FieldErrors): ApiError => apiError('not-found', `${what} not found`, data)

/** 405; `allow` lists the methods the path does answer. */
export const methodNotAllowed = (allow: readonly string[]): ApiError =>
  apiError('method-not-allowed', 'Method not allowed', undefined, { Allow: allow.join(', ') })

export const conflict = (message: string, data?: FieldErrors): ApiError => apiError('conflict', message, data)
export const preconditionFailed = (what = 'record'): ApiError =>
  apiError('precondition-failed', `The ${what} has changed since it was read`)

/** 412: what a signed URL was made for is no longer what is stored. */
export const objectChanged = (): ApiError =>
  apiError('object-changed', 'The file is no longer the one this URL was made for')

/** 413; the bound is said in bytes so that a client can split its work; `what` is what is too large. */
export const payloadTooLarge = (limitBytes: number, what = 'body'): ApiError =>
  apiError('payload-too-large', `The ${what} is larger than ${limitBytes} bytes`)
/** 413: a bound on all files of a bucket or of a user; `what` is what is full. */
export const quotaExceeded = (what: string): ApiError => apiError('quota-exceeded', `${what} is full`)

/** 416; `size` is the content's in bytes. */
export const rangeNotSatisfiable = (size: number): ApiError =>
  apiError('range-not-satisfiable', 'None of these bytes are there', undefined, {
    'Content-Range': `bytes */${size}`,
    'Accept-Ranges': 'bytes',
  })
export const unsupportedMediaType = (expected: string): ApiError =>
  apiError('unsupported-media-type', `Content-Type must be ${expected}`)

/** 415 for a body under any `Content-Encoding` but `identity`; the header tells clients so (RFC 7694). */
export const unsupportedContentEncoding = (): ApiError =>
  apiError('unsupported-media-type', 'Content-Encoding must be absent or identity', undefined, {
    'Accept-Encoding': 'identity',
  })

/** 429; `retryAfterSeconds` is rounded up to whole seconds, at least 1. */
export const rateLimited = (retryAfterSeconds: number, message = 'Rate limit exceeded'): ApiError =>
  apiError('rate-limited', message, undefined, {
    'Retry-After': String(Math.max(1, Math.ceil(retryAfterSeconds))),
  })

/** 500: a bug of ours or of the configuration. The cause is logged under the request's id. */
export const internal = (): ApiError => apiError('internal', 'Internal server error')

/** 499: the client closed the connection, and its work was dropped. Only logs and counts ever see it. */
export const clientClosedRequest = (): ApiError => apiError('client-closed-request', 'The client closed the request')

/** 503: draining, or an engine is away. Safe to retry. */
export const unavailable = (retryAfterSeconds = 1, message = 'Service unavailable'): ApiError =>
  apiError('unavailable', message, undefined, {
    'Retry-After': String(Math.max(1, Math.ceil(retryAfterSeconds))),
  })

/** 412: the client speaks another version of a protocol; `headers` state the versions that the server has. */
export const unsupportedVersion = (message: string, headers: Readonly<Record<string, string>>): ApiError =>
  apiError('precondition-failed', message, undefined, headers)

/** 503: no push provider has credentials. */
export const pushNotConfigured = (): ApiError => apiError('push-not-configured', 'Push is not configured')

/** 401 for a wrong password, code or ticket; the same words whether or not there is such an account. */
export const invalidCredentials = (message = 'Invalid e-mail or password'): ApiError =>
  apiError('invalid-credentials', message)
/** 403 for what a token alone must not do: the session it is of began too long ago. */
export const signInAgain = (): ApiError => apiError('sign-in-again', 'Sign in again to do this')
/** 403, sent only to callers that have proved to own the account. */
export const accountDisabled = (): ApiError => apiError('account-disabled', 'Account is disabled')
