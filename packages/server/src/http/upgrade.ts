/** Upgrades requests to WebSockets. Users authenticate over the socket; only a service key is sent with the request. */
import { countedAddress } from '../base/network/address.ts'
import { invalidServiceKey, requiresUpgrade, unavailable } from '../errors.ts'
import type { Call, Reply, SocketEndpoint } from './endpoint.ts'
import { empty } from './replies/reply.ts'
import type { RequestContext } from './request-context.ts'
import type { IdentifyParts } from './security/identify.ts'
import { isExempt } from './security/rate-limit.ts'
import type { Sockets } from './sockets/sockets.ts'

export interface UpgradeParts extends Pick<IdentifyParts, 'limiter' | 'serviceKeys'> {
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

export async function upgrade(
  { limiter, serviceKeys, sockets, isDraining }: UpgradeParts,
  { endpoint, readQuery }: PreparedSocket,
  context: RequestContext,
): Promise<Reply> {
  const { request, runtime, headers, address } = context
  const key = headers.get('x-platform-service-key')
  const service = key === null ? null : serviceKeys.find(key, address)
  if (!service || !isExempt(service, endpoint.rateLimit)) await limiter.count(endpoint.rateLimit, address)
  if (key !== null && !service) throw invalidServiceKey()
  if (service) context.caller = service
  context.query = readQuery(context.queryString)
  const createHandler = await endpoint.open(context)
  if (typeof createHandler !== 'function') return createHandler
  if (isDraining()) throw unavailable()
  const { kind } = endpoint
  const bound = (most: number | ((call: Call) => number)): number => (typeof most === 'number' ? most : most(context))
  const [authTimeoutMs, messageBytesMax] = [bound(endpoint.authTimeoutMs), bound(endpoint.messageBytesMax)]
  const isKeyValid = (): boolean => key !== null && serviceKeys.find(key, address) !== null
  const origin = { kind, address: countedAddress(address), caller: context.caller, isKeyValid, authTimeoutMs }
  const slot = sockets.reserve(origin)
  if (!slot) return endpoint.tooManyPending(context)
  if (runtime.upgrade(request, { data: { slot, createHandler, messageBytesMax } })) return upgraded
  slot.release()
  throw requiresUpgrade()
}
