/**
 * Requests to URLs that clients or operators supply (SSRF protection): to the public internet only, over HTTPS, and to
 * the very address that was checked, so that DNS cannot change between check and connection. The configuration may
 * allow private networks (`outbound.allow`). Responses are bounded as in `bounded-fetch`.
 */
import { type Cidr, matchesCidr } from '../../base/network/address.ts'
import { isPublicAddress } from '../../base/network/public-address.ts'
import { type BoundedFetch, type FetchBounds, fetchWithin } from './bounded-fetch.ts'

/** Resolves all addresses of a host name. */
export type Lookup = (host: string) => Promise<readonly string[]>

/** Which targets are allowed. */
export interface OutboundPolicy {
  /** Private networks that may be reached, at any port and also over plain HTTP. */
  readonly allow: readonly Cidr[]
  /** Whether public addresses may be reached at ports other than 443: for URLs that an operator wrote. */
  readonly anyPort: boolean
}

export interface PublicFetchOptions extends FetchBounds {
  /** Configured origins that are always allowed. */
  readonly trusted?: (origin: string) => boolean
  /** By default public addresses at port 443. */
  readonly policy?: () => OutboundPolicy
  /** The system resolver by default. */
  readonly lookup?: Lookup
}

/** The request was not sent: its address is not public. Reveals nothing about the target. */
export class NotPublicError extends Error {
  constructor() {
    super('The address is not public')
    this.name = 'NotPublicError'
  }
}

const systemLookup: Lookup = async (host) => {
  const { lookup } = await import('node:dns/promises')
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/** The host without the brackets of an IPv6 address. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

const isAddress = (host: string): boolean => host.includes(':') || /^[\d.]+$/.test(host)

const publicOnly: OutboundPolicy = { allow: [], anyPort: false }

/** Whether a name can be one of the public DNS: it has a dot and no suffix of local networks. */
const isPublicName = (host: string): boolean =>
  host.slice(0, -1).includes('.') && !/\.(?:localhost|local|internal)\.?$/.test(host)

/** Whether an address may be reached under a URL. */
const isReachable = (address: string, url: URL, { allow, anyPort }: OutboundPolicy): boolean =>
  allow.some((network) => matchesCidr(network, address)) ||
  (url.protocol === 'https:' && (anyPort || url.port === '') && isPublicAddress(address))

/** Whether a URL may be reachable, without resolving its name. It must not contain credentials. */
export function mayBePublic(url: URL, policy: OutboundPolicy = publicOnly): boolean {
  const host = hostOf(url)
  if (!/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '' || host === '') return false
  if (isAddress(host)) return isReachable(host, url, policy)
  // A private name can resolve to an address of an allowed network.
  if (policy.allow.length > 0) return true
  return url.protocol === 'https:' && (policy.anyPort || url.port === '') && isPublicName(host)
}

/** Rejects with `NotPublicError`, before anything is sent, for addresses that are not allowed. */
export function createPublicFetch(options: PublicFetchOptions): BoundedFetch {
  const { trusted = () => false, policy = () => publicOnly, lookup } = options
  return async (text, init = {}) => {
    const url = new URL(text)
    if (trusted(url.origin)) return fetchWithin(options, text, init)
    const address = await within(options.timeoutMs, resolveReachable(url, policy(), lookup))
    return fetchAt(address, url, options, init)
  }
}
/** The address to connect to for a URL. Rejects with `NotPublicError`. */
export async function resolveReachable(
  url: URL,
  policy: OutboundPolicy,
  lookup: Lookup = systemLookup,
): Promise<string> {
  if (!mayBePublic(url, policy)) throw new NotPublicError()
  const host = hostOf(url)
  const addresses = isAddress(host) ? [host] : await lookup(host)
  const [address] = addresses
  // Any private address among them is rejected: with mixed answers, an attacker could retry until it is chosen.
  if (address === undefined || !addresses.every((one) => isReachable(one, url, policy))) throw new NotPublicError()
  return address
}

/** Resolvers have no deadline. */
function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new DOMException('The name was not found in time', 'TimeoutError')),
    timeoutMs,
  )
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}

/** Requests the server at this address under the URL's host name, which its certificate must match. */
export function fetchAt(
  address: string,
  url: URL,
  bounds: FetchBounds,
  init: RequestInit & { readonly tls?: Bun.TLSOptions } = {},
): Promise<Response> {
  const headers = new Headers(init.headers)
  headers.set('Host', url.host)
  const host = hostOf(url)
  const tls = isAddress(host) ? init.tls : { ...init.tls, serverName: host }
  const at = new URL(url)
  at.hostname = address.includes(':') ? `[${address}]` : address
  return fetchWithin(bounds, at.href, { ...init, headers, ...(tls ? { tls } : {}) })
}
