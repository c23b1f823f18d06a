/**
 * Upgrades requests to WebSockets. Users authenticate over the socket; a service key, or the cookie of the dashboard,
 * is sent with the request.
 */
import type { Caller } from '../access/caller.ts'
import { countedAddress } from '../base/network/address.ts'
import { invalidServiceKey, requiresUpgrade, unavailable } from '../errors.ts'
import type { Call, Reply, SocketEndpoint } from './endpoint.ts'
import { empty } from './replies/reply.ts'
import type { RequestContext } from './request-context.ts'
import { identifySocketAdministrator } from './security/dashboard-access.ts'
import type { IdentifyParts } from './security/identify.ts'
import { isExempt } from './security/rate-limit.ts'
import type { Sockets } from './sockets/sockets.ts'

export interface UpgradeParts extends Pick<IdentifyParts, 'limiter' | 'serviceKeys' | 'dashboard'> {
  readonly sockets: Sockets
  /** Whether the server is shutting down and refuses new requests. */
  readonly isDraining: () => boolean
}

export interface PreparedSocket {
  readonly endpoint: SocketEndpoint
  readonly readQuery: (queryString: string) => unknown
}

/** Marks a request that was upgraded and needs no response. */
export const upgraded = empty(101)

interface Identified {
  readonly caller: Caller
  readonly isKeyValid: () => boolean
}

async function identify(parts: UpgradeParts, endpoint: SocketEndpoint, context: RequestContext): Promise<Identified> {
  const { limiter, serviceKeys } = parts
  const { headers, address } = context
  if (endpoint.mountedAt !== undefined) {
    await limiter.count(endpoint.rateLimit, address)
    const { caller, isValid } = await identifySocketAdministrator(parts, context)
    return { caller, isKeyValid: isValid }
  }
  const key = headers.get('x-platform-service-key')
  const service = key === null ? null : serviceKeys.find(key, address)
  if (!service || !isExempt(service, endpoint.rateLimit)) await limiter.count(endpoint.rateLimit, address)
  if (key !== null && !service) throw invalidServiceKey()
  const isKeyValid = (): boolean => key !== null && serviceKeys.find(key, address) !== null
  return { caller: service ?? context.caller, isKeyValid }
}

export async function upgrade(
  parts: UpgradeParts,
  { endpoint, readQuery }: PreparedSocket,
  context: RequestContext,
): Promise<Reply> {
  const { sockets, isDraining } = parts
  const { request, runtime, address } = context
  const { caller, isKeyValid } = await identify(parts, endpoint, context)
  context.caller = caller
  context.query = readQuery(context.queryString)
  const createHandler = await endpoint.open(context)
  if (typeof createHandler !== 'function') return createHandler
  if (isDraining()) throw unavailable()
  const { kind } = endpoint
  const bound = (most: number | ((call: Call) => number)): number => (typeof most === 'number' ? most : most(context))
  const [authTimeoutMs, messageBytesMax] = [bound(endpoint.authTimeoutMs), bound(endpoint.messageBytesMax)]
  const origin = { kind, address: countedAddress(address), caller, isKeyValid, authTimeoutMs }
  const slot = sockets.reserve(origin)
  if (!slot) return endpoint.tooManyPending(context)
  if (runtime.upgrade(request, { data: { ...slot, createHandler, messageBytesMax } })) return upgraded
  slot.release()
  throw requiresUpgrade()
}
