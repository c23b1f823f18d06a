/** Errors of invocations as callers see them, and what operators need to know of them. */
import { type CodeLocation, HostError } from '../../../engines/hosts/hosts.ts'
import {
  type ApiError,
  clientClosedRequest,
  type FieldErrors,
  foreignError,
  functionCrashed,
  functionTimeout,
  hookFailed,
  internal,
  unavailable,
} from '../../../errors.ts'

/** The error for the caller. What a function throws is opaque, unless it is an `HttpError`. */
export function apiErrorOf({ failure }: HostError): ApiError {
  switch (failure.kind) {
    case 'refused':
      return foreignError(failure.status, failure.slug, failure.message, failure.data as FieldErrors | undefined)
    case 'timeout':
      return functionTimeout()
    case 'crashed':
      return functionCrashed()
    case 'overloaded':
      return unavailable()
    case 'aborted':
      return clientClosedRequest()
    case 'failed':
      return internal()
  }
}

/** Any error of an invocation as the caller sees it. */
export const toApiError = (error: unknown): unknown => (error instanceof HostError ? apiErrorOf(error) : error)

/** The error of a hook as the caller of the hooked request sees it: a refusal, or opaque. Any other error as it is. */
export function hookErrorOf(error: unknown): unknown {
  if (!(error instanceof HostError)) return error
  if (error.kind === 'timeout' || error.kind === 'failed') return hookFailed()
  // Nothing was stored, so the request may be repeated.
  return error.kind === 'crashed' ? unavailable(1, 'A process that runs functions has ended') : apiErrorOf(error)
}

export interface Fault {
  readonly reason: 'failed' | 'timeout' | 'crashed'
  readonly message: string
  readonly location: CodeLocation | null
  readonly stack?: string
  /** Of several that ran together. */
  readonly function?: string
}

/** What an operator must know of an error; null for refusals and callers that have left. */
export function faultOf(error: unknown): Fault | null {
  if (!(error instanceof HostError)) return { reason: 'failed', message: String(error), location: null }
  const { failure } = error
  if (failure.kind === 'timeout' || failure.kind === 'crashed')
    return { reason: failure.kind, message: failure.message, location: null, function: failure.function }
  if (failure.kind !== 'failed') return null
  const { message, location, stack } = failure
  return { reason: 'failed', message, location, ...(stack === undefined ? {} : { stack }) }
}
