/**
 * Requests to URLs from untrusted callers (SSRF protection): to the public internet only, over HTTPS at its default
 * port, and to the very address that was checked, so that DNS cannot change between check and connection. Responses are
 * bounded as in `bounded-fetch`.
 */
import { lookup as lookUpAddresses } from 'node:dns/promises'
import { isPublicAddress } from '../../base/network/public-address.ts'
import { type BoundedFetch, type FetchBounds, fetchWithin } from './bounded-fetch.ts'

/** Resolves all addresses of a host name. */
export type Lookup = (host: string) => Promise<readonly string[]>

export interface PublicFetchOptions extends FetchBounds {
  /** Configured origins that are always allowed. */
  readonly trusted: (origin: string) => boolean
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

const systemLookup: Lookup = async (host) => (await lookUpAddresses(host, { all: true })).map(({ address }) => address)

/** The host without the brackets of an IPv6 address. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

const isAddress = (host: string): boolean => host.includes(':') || /^[\d.]+$/.test(host)

/**
 * Whether a URL may be public, without resolving it: HTTPS at the default port, without credentials, and not a
 * special-purpose address.
 */
export function mayBePublic(url: URL): boolean {
  const isPlain = url.protocol === 'https:' && url.port === '' && url.username === '' && url.password === ''
  const host = hostOf(url)
  if (!isPlain || host === '') return false
  return isAddress(host)
    ? isPublicAddress(host)
    : host.slice(0, -1).includes('.') && !/\.(?:localhost|local|internal)\.?$/.test(host)
}

/** Rejects with `NotPublicError`, before anything is sent, for addresses that are not public. */
export function createPublicFetch(options: PublicFetchOptions): BoundedFetch {
  const { trusted, lookup = systemLookup } = options
  return async (text, init = {}) => {
    const url = new URL(text)
    if (trusted(url.origin)) return fetchWithin(options, text, init)
    if (!mayBePublic(url)) throw new NotPublicError()
    const host = hostOf(url)
    const addresses = isAddress(host) ? [host] : await within(options.timeoutMs, lookup(host))
    const [address] = addresses
    // Any private address among them is rejected: with mixed answers, an attacker could retry until it is chosen.
    if (address === undefined || !addresses.every(isPublicAddress)) throw new NotPublicError()
    return fetchAt(address, url, options, init)
  }
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
