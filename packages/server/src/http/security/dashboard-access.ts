/**
 * Access to the endpoints of the dashboard: only its own page may call them, and only the cookie of a session
 * authenticates. Other sites' pages send neither the cookie (SameSite) nor the header (CORS), and their `Origin` is
 * another; each check alone stops them.
 */
import { isDeepStrictEqual } from 'node:util'
import type { ServiceCaller, ViewedUser } from '../../access/caller.ts'
import type { TrustProxy } from '../../base/network/address.ts'
import {
  type ApiError,
  accessDenied,
  authenticationRequired,
  badRequest,
  signInAgain,
  viewingAsUser,
  withHeaders,
} from '../../errors.ts'
import { dashboardSocketCheckMs } from '../../limits/dashboard.ts'
import { recentSignInMs } from '../../limits/users.ts'
import type { Endpoint } from '../endpoint.ts'
import type { RequestContext } from '../request-context.ts'
import { readCookie } from './cookies.ts'
import type { RateLimiter } from './rate-limit.ts'

/** A session of the dashboard with its administrator. */
export interface AdministratorSession {
  readonly caller: ServiceCaller
  /** Only GET and HEAD are permitted: by the role, or while the session views as a user. */
  readonly isReadOnly: boolean
}

export interface DashboardAccess {
  /** The session of a cookie, and records its use; null if there is none, or it has ended. */
  findSession(token: string): Promise<AdministratorSession | null>
  /** The same without a use, which would keep the session of a page that was left open from ending. */
  checkSession(token: string): Promise<AdministratorSession | null>
  /** The configured public URL; null if there is none. */
  readonly publicUrl: string | null
  readonly trustProxy: TrustProxy
  now(): number
}

/** Everything of the dashboard is below this path. */
export const dashboardPath = '/dashboard'

export const isDashboardPath = (path: string): boolean => path === dashboardPath || path.startsWith(`${dashboardPath}/`)

export const isDashboardEndpoint = ({ credentials }: Endpoint): boolean =>
  credentials === 'admin' || credentials === 'page'

/** A request is sent by the page only with this header, which other origins cannot add. */
const pageHeader = 'x-plinth-dashboard'

/** The prefix makes browsers refuse the cookie unless this host has set it, over HTTPS. */
const secureCookie = '__Host-plinth-dashboard'
/** Over HTTP, where that prefix is not allowed. Only on the loopback. */
const plainCookie = 'plinth-dashboard'

/** How the page reaches this server: decides which cookie it has. */
export interface DashboardSite {
  readonly cookie: string
  readonly isSecure: boolean
}

/**
 * The site of a request that changes something, by its `Origin`, which must be this server's own. Throws 403 for any
 * other, and for HTTP beyond the loopback, where passwords and cookies could be read on the way.
 */
export function siteOf(
  headers: Headers,
  { publicUrl, trustProxy }: Pick<DashboardAccess, 'publicUrl' | 'trustProxy'>,
): DashboardSite {
  const origin = headers.get('origin')
  const host = headers.get('host') ?? ''
  const isForwarded = trustProxy.kind !== 'none' && headers.get('x-forwarded-proto') === 'https'
  const own = [
    `http://${host}`,
    ...(isForwarded ? [`https://${host}`] : []),
    ...(publicUrl === null ? [] : [new URL(publicUrl).origin]),
  ]
  if (origin === null || !own.includes(origin)) throw accessDenied('The Origin is not this server')
  const { protocol, hostname } = new URL(origin)
  if (protocol === 'https:') return { cookie: secureCookie, isSecure: true }
  if (!isLoopback(hostname))
    throw accessDenied('The dashboard needs HTTPS; over HTTP it is served only on this machine, at http://localhost')
  return { cookie: plainCookie, isSecure: false }
}

/** The session token of a request, from either cookie. The plain one counts only where it can have been set. */
function readToken({ headers }: Pick<RequestContext, 'headers'>): string | null {
  const secure = readCookie(headers, secureCookie)
  if (secure !== null) return secure
  const host = URL.parse(`http://${headers.get('host') ?? ''}`)
  return host && isLoopback(host.hostname) ? readCookie(headers, plainCookie) : null
}

const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  hostname === '[::1]' ||
  /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(hostname)

interface Parts {
  readonly dashboard: DashboardAccess
  readonly limiter: RateLimiter
}

/** Throws 400 where the request has other credentials than a cookie. */
function refuseOtherCredentials({ headers }: Pick<RequestContext, 'headers'>): void {
  if (headers.has('x-platform-service-key') || headers.has('authorization'))
    throw badRequest('The dashboard accepts no service keys and no access tokens')
}

/** Rejects a cookie without a session with 401; cookies cannot be guessed faster than passwords. */
async function requireSession(
  { dashboard, limiter }: Parts,
  token: string,
  { address }: Pick<RequestContext, 'address'>,
): Promise<AdministratorSession> {
  const session = await dashboard.findSession(token)
  if (session) return session
  await limiter.count('auth', address)
  throw authenticationRequired()
}

/** Authenticates a request to an endpoint of the dashboard. Rejects with 400, 401, 403 and 429. */
export async function identifyAdministrator(
  { dashboard, limiter }: Parts,
  endpoint: Endpoint,
  context: RequestContext,
): Promise<RequestContext['caller'] | ServiceCaller> {
  const { headers, method, address, caller } = context
  refuseOtherCredentials(context)
  const isRead = method === 'GET' || method === 'HEAD'
  const token = endpoint.credentials === 'admin' ? readToken(context) : null
  if (endpoint.credentials === 'admin' && token === null) throw authenticationRequired()
  if (headers.get(pageHeader) !== '1') throw accessDenied('The header X-Plinth-Dashboard: 1 is required')
  if (!isRead) siteOf(headers, dashboard)
  if (token === null) {
    if (endpoint.rateLimit !== null) await limiter.count(endpoint.rateLimit, address)
    return caller
  }
  const session = await requireSession({ dashboard, limiter }, token, context)
  if (session.isReadOnly && !isRead && !endpoint.isForReaders) throw refusalToChange(session.caller)
  // Exports are reads that answer as the administrator.
  if (session.caller.admin?.viewedAs && endpoint.requiresRecentSignIn) throw refusalToChange(session.caller)
  if (endpoint.requiresRecentSignIn === true) requireRecentAdministrator(session.caller, dashboard.now())
  return session.caller
}

/** Names the user as whom the session views data, so that no page shows a response under another name. */
export const viewedHeaders = ({ userId }: ViewedUser): Readonly<Record<string, string>> => ({
  'x-plinth-viewing-as': userId,
})

function refusalToChange({ admin }: ServiceCaller): ApiError {
  if (!admin?.viewedAs) return accessDenied('The role may only read')
  return withHeaders(viewingAsUser(), viewedHeaders(admin.viewedAs))
}

export interface SocketAdministrator {
  readonly caller: ServiceCaller
  /** Whether the session has not ended and the role is the same, as of some seconds ago. */
  readonly isValid: () => boolean
}

/**
 * Authenticates the upgrade of a socket of the page. Browsers send no header of the page with it, so it needs the
 * `Origin` of the server itself, whatever its method. Rejects with 400, 401, 403 and 429.
 */
export async function identifySocketAdministrator(parts: Parts, context: RequestContext): Promise<SocketAdministrator> {
  const { dashboard } = parts
  refuseOtherCredentials(context)
  const token = readToken(context)
  if (token === null) throw authenticationRequired()
  siteOf(context.headers, dashboard)
  const { caller } = await requireSession(parts, token, context)
  // Subscriptions would answer as the administrator.
  if (caller.admin?.viewedAs) throw refusalToChange(caller)
  let [isOpen, isChecking, checkedAtMs] = [true, false, dashboard.now()]
  const check = async (): Promise<void> => {
    isChecking = true
    try {
      const session = await dashboard.checkSession(token)
      isOpen = session !== null && isDeepStrictEqual(session.caller, caller)
      checkedAtMs = dashboard.now()
    } catch {
      // An engine is away: the next tick tries again.
    } finally {
      isChecking = false
    }
  }
  return {
    caller,
    isValid() {
      if (isOpen && !isChecking && dashboard.now() - checkedAtMs >= dashboardSocketCheckMs) void check()
      return isOpen
    },
  }
}

/** Rejects an administrator who signed in more than ten minutes ago with 403; other callers are not concerned. */
export function requireRecentAdministrator(caller: RequestContext['caller'], nowMs: number): void {
  const signedInAtMs = caller.kind === 'service' ? caller.admin?.signedInAtMs : undefined
  if (signedInAtMs !== undefined && nowMs - signedInAtMs > recentSignInMs) throw signInAgain()
}

/** The session token of a request that signs out or in again. */
export const sessionTokenOf = (headers: Headers): string | null => readToken({ headers })
