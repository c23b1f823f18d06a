/** Authenticates the caller of a request, by service key or bearer token, and counts it against the rate limit. */
import type { Caller, UserCaller } from '../../access/caller.ts'
import type { ServiceKeys } from '../../access/service-keys.ts'
import { ApiError, invalidServiceKey } from '../../errors.ts'
import type { Endpoint } from '../endpoint.ts'
import type { RequestContext } from '../request-context.ts'
import { scopesOf } from './authorization.ts'
import { type DashboardAccess, identifyAdministrator, isDashboardEndpoint } from './dashboard-access.ts'
import { isExempt, type RateLimiter } from './rate-limit.ts'

export interface IdentifyParts {
  readonly limiter: RateLimiter
  readonly serviceKeys: ServiceKeys
  /** The user of an `Authorization` header. Throws or rejects with 401. Returns a promise only where it needs I/O. */
  readonly authenticate: (authorization: string) => UserCaller | Promise<UserCaller>
  readonly dashboard: DashboardAccess
}

/**
 * Authenticates the caller. A service key is accepted or refused but never ignored, and only one that is valid for
 * this endpoint is exempt from the rate limit, so that neither keys nor tokens can be guessed faster than it allows.
 */
export function identify(parts: IdentifyParts, endpoint: Endpoint, context: RequestContext): Caller | Promise<Caller> {
  const { headers, address, params } = context
  if (isDashboardEndpoint(endpoint)) return identifyAdministrator(parts, endpoint, context)
  const key = headers.get('x-platform-service-key')
  const service = key === null ? null : parts.serviceKeys.find(key, address)
  if (endpoint.ignoresCredentials) return service ?? context.caller
  // Wrong keys count against the `auth` group also where the endpoint has no rate limit, so they cannot be guessed
  // there.
  const group = endpoint.rateLimit ?? (key === null || service ? null : 'auth')
  if (service && (group === null || isExempt(service, group, scopesOf(endpoint, params)))) return service
  const counting = group === null ? undefined : parts.limiter.count(group, address)
  const proceed = (): Caller | Promise<Caller> => service ?? identifyUser(parts, endpoint, key, context)
  return counting instanceof Promise ? counting.then(proceed) : proceed()
}

function identifyUser(
  { authenticate }: IdentifyParts,
  { allowsForeignAuthorization }: Endpoint,
  badKey: string | null,
  context: RequestContext,
): Caller | Promise<Caller> {
  if (badKey !== null) throw invalidServiceKey()
  const { headers, caller } = context
  const authorization = headers.get('authorization')
  if (authorization === null) return caller
  const refused = (error: unknown): Caller => {
    if (!isRefusal(error) || !allowsForeignAuthorization?.(context)) throw error
    return caller
  }
  try {
    const user = authenticate(authorization)
    return user instanceof Promise ? user.catch(refused) : user
  } catch (error) {
    return refused(error)
  }
}

/** Whether credentials are not valid, as opposed to not checked: an engine may be unavailable. */
const isRefusal = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 401 || error.status === 403)

/**
 * Bodies can trickle in for hours, so the user is authenticated again after reading: the session may have been revoked
 * or the token may have expired meanwhile. Throws or rejects with 401.
 */
export const authenticateAgain = (
  parts: IdentifyParts,
  endpoint: Endpoint,
  context: RequestContext,
): Caller | Promise<Caller> =>
  isDashboardEndpoint(endpoint)
    ? identifyAdministrator(parts, endpoint, context)
    : parts.authenticate(context.headers.get('authorization') ?? '')
