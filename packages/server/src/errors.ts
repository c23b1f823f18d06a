/**
 * Errors of the API, built from the catalog in `error-codes.ts`: nothing else decides their status, slug
 * or wording. Internals of a failure (SQL, paths, stacks) belong in `cause`, which is logged and never sent.
 */
import { type ErrorSlug, httpErrors } from './error-codes.ts'

export { type ErrorSlug, httpErrors, type SocketErrorCodeOn } from './error-codes.ts'

/** Stable codes of field errors (ERR-3). */
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

/** Errors by field name or path, such as `filter[0]`. */
export type FieldErrors = Readonly<Record<string, FieldError>>

/** The JSON body of every refused request: `{code, message, slug, data?}`; `code` is the HTTP status. */
export interface ErrorBody {
  readonly code: number
  readonly message: string
  readonly slug: string
  readonly data?: FieldErrors
}

/**
 * An error whose complete content may be sent to the client. Created by the functions below; directly only for the
 * error of another server, whose slug may be unknown here.
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

/** The error of a slug, with its status from the catalog. */
export const apiError = (
  slug: ErrorSlug,
  message: string,
  data?: FieldErrors,
  headers?: Readonly<Record<string, string>>,
): ApiError => new ApiError(httpErrors[slug].status, slug, message, data, headers)

/** An error that is not of the catalog: of the application's code, or of another server. */
export const foreignError = (status: number, slug: string, message: string, data?: FieldErrors): ApiError =>
  new ApiError(status, slug, message, data)

/** The error with other details, such as the operation of a request that it concerns. */
export const withData = ({ status, slug, message, headers }: ApiError, data: FieldErrors): ApiError =>
  new ApiError(status, slug, message, data, headers)

/** The same error with further headers. */
export const withHeaders = (
  { status, slug, message, data, headers }: ApiError,
  more: Readonly<Record<string, string>>,
): ApiError => new ApiError(status, slug, message, data, { ...headers, ...more })

/** Runs `work`; the paths of its field errors are below `path` then. */
export function prefixedErrors<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof ApiError && error.data)) throw error
    throw withData(error, Object.fromEntries(Object.entries(error.data).map(([name, one]) => [`${path}.${name}`, one])))
  }
}

/** 400 without a field: a body that is not JSON, parameters that exclude each other. */
export const badRequest = (message: string): ApiError => apiError('bad-request', message)

/** 400 for a query that was ended at its time limit. */
export const queryTimeout = (message: string): ApiError => apiError('query-timeout', message)

/** 400 for a request to the endpoint of a WebSocket that is not an upgrade. */
export const requiresUpgrade = (): ApiError => badRequest('This endpoint requires a WebSocket upgrade')

/** 400 that names every invalid field. The default message is the first of them. */
export function invalid(data: FieldErrors, message?: string): ApiError {
  const first = Object.entries(data)[0]
  const text = message ?? (first ? `${first[0]}: ${first[1].message}` : 'Invalid input')
  return apiError('invalid-input', text, data)
}

/** 400 for one invalid field or parameter. */
export const invalidField = (field: string, code: FieldErrorCode, message: string): ApiError =>
  invalid({ [field]: { code, message } })

export const authenticationRequired = (data?: FieldErrors): ApiError =>
  apiError('authentication-required', 'Authentication required', data)
export const tokenExpired = (): ApiError => apiError('token-expired', 'Token expired')
export const invalidToken = (): ApiError => apiError('invalid-token', 'Invalid token')
export const invalidServiceKey = (): ApiError => apiError('invalid-service-key', 'Invalid service key')
export const accessDenied = (message = 'Access denied', data?: FieldErrors): ApiError =>
  apiError('access-denied', message, data)

/** 404; `what` is a noun of the API (`Record`, `Table`), never an id or a path. */
export const notFound = (what: string, data?: FieldErrors): ApiError => apiError('not-found', `${what} not found`, data)

/** 405; `allow` lists the methods that the path supports. */
export const methodNotAllowed = (allow: readonly string[]): ApiError =>
  apiError('method-not-allowed', 'Method not allowed', undefined, { Allow: allow.join(', ') })

export const conflict = (message: string, data?: FieldErrors): ApiError => apiError('conflict', message, data)
export const preconditionFailed = (what = 'record', data?: FieldErrors): ApiError =>
  apiError('precondition-failed', `The ${what} has changed since it was read`, data)

/** 412: the file has changed since the signed URL was issued. */
export const objectChanged = (): ApiError =>
  apiError('object-changed', 'The file is no longer the one this URL was made for')

/** 413; the message states the limit in bytes so that a client can split its work. */
export const payloadTooLarge = (limitBytes: number, what = 'body'): ApiError =>
  apiError('payload-too-large', `The ${what} is larger than ${limitBytes} bytes`)
/** 413: a bound on all files of a bucket or of a user; `what` is what is full. */
export const quotaExceeded = (what: string): ApiError => apiError('quota-exceeded', `${what} is full`)

/** 416; `size` is the content's in bytes. */
export const rangeNotSatisfiable = (size: number): ApiError =>
  apiError('range-not-satisfiable', `The range is not satisfiable: the content has ${size} bytes`, undefined, {
    'Content-Range': `bytes */${size}`,
    'Accept-Ranges': 'bytes',
  })
export const unsupportedMediaType = (expected: string): ApiError =>
  apiError('unsupported-media-type', `Content-Type must be ${expected}`)

/** 415 for a body under any `Content-Encoding` but `identity`; `Accept-Encoding` lists what is accepted (RFC 7694). */
export const unsupportedContentEncoding = (): ApiError =>
  apiError('unsupported-media-type', 'Content-Encoding must be absent or identity', undefined, {
    'Accept-Encoding': 'identity',
  })

/** 429; `retryAfterSeconds` is rounded up to whole seconds, at least 1. */
export const rateLimited = (retryAfterSeconds: number, message = 'Rate limit exceeded'): ApiError =>
  apiError('rate-limited', message, undefined, {
    'Retry-After': String(Math.max(1, Math.ceil(retryAfterSeconds))),
  })

/** 500: a bug in the server or the configuration. The cause is logged with the request id. */
export const internal = (): ApiError => apiError('internal', 'Internal server error')

/** 500: a hook of the application failed. The cause is logged with its location and the request id. */
export const hookFailed = (): ApiError => apiError('hook-failed', 'A hook of the application failed')

/** 499: the client closed the connection and its work was canceled. Appears only in logs and metrics. */
export const clientClosedRequest = (): ApiError => apiError('client-closed-request', 'The client closed the request')

/** 503: shutting down, or an engine is unavailable. Safe to retry. */
export const unavailable = (retryAfterSeconds = 1, message = 'Service unavailable'): ApiError =>
  apiError('unavailable', message, undefined, {
    'Retry-After': String(Math.max(1, Math.ceil(retryAfterSeconds))),
  })

/** 504: a function exceeded its time limit. */
export const functionTimeout = (): ApiError => apiError('function-timeout', 'The function did not end in time')

/** 503: the process of a function ended. */
export const functionCrashed = (): ApiError =>
  apiError('function-crashed', 'The process of the function ended', undefined, { 'Retry-After': '1' })

/** 412: the client uses an unsupported protocol version; `headers` state the supported ones. */
export const unsupportedVersion = (message: string, headers: Readonly<Record<string, string>>): ApiError =>
  apiError('precondition-failed', message, undefined, headers)

/** 503: no push provider has credentials. */
export const pushNotConfigured = (): ApiError => apiError('push-not-configured', 'Push is not configured')

/** 401 for a wrong password, code or ticket; the same words whether or not there is such an account. */
export const invalidCredentials = (message = 'Invalid email or password'): ApiError =>
  apiError('invalid-credentials', message)
/** 403 for operations that require a recent sign-in. */
export const viewingAsUser = (): ApiError =>
  apiError('viewing-as-user', 'While viewing as a user the dashboard only reads; stop viewing to change something')
export const signInAgain = (): ApiError => apiError('sign-in-again', 'Sign in again to do this')
/** 403 for a user without a dashboard role; sent only after the password or the passkey was right. */
export const noDashboardRole = (): ApiError =>
  apiError('no-dashboard-role', 'This user may not open the dashboard; an owner, or `plinth users`, gives a role')
/** 403; sent only after the caller has proved ownership of the account. */
export const accountDisabled = (): ApiError => apiError('account-disabled', 'Account is disabled')
