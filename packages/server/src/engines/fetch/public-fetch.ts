/**
 * Requests to addresses that a stranger named: to the public internet alone, over HTTPS at its usual port, and to the
 * very address that was looked at, so that a name cannot lead elsewhere between the look and the connection. Answers
 * are bounded as in `bounded-fetch`.
 */
import { lookup as lookUpAddresses } from 'node:dns/promises'
import { isPublicAddress } from '../../base/network/public-address.ts'
import { type BoundedFetch, type FetchBounds, fetchWithin } from './bounded-fetch.ts'

/** All addresses of a host's name. */
export type Lookup = (host: string) => Promise<readonly string[]>

export interface PublicFetchOptions extends FetchBounds {
  /** Origins that may be asked whatever they are; those of the configuration. */
  readonly trusted: (origin: string) => boolean
  /** Default: the machine's resolver. */
  readonly lookup?: Lookup
}

/** Why a request was not made: it would have left the public internet. Says nothing of what is there. */
export class NotPublicError extends Error {
  constructor() {
    super('The address is not a public one')
    this.name = 'NotPublicError'
  }
}

const systemLookup: Lookup = async (host) => (await lookUpAddresses(host, { all: true })).map(({ address }) => address)

/** The host without the brackets of an IPv6 address. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

const isAddress = (host: string): boolean => host.includes(':') || /^[\d.]+$/.test(host)

/**
 * Whether a URL can be of the public internet, as far as can be told without asking: HTTPS at the usual port, without a
 * name and password, and not an address that is nobody's.
 */
export function mayBePublic(url: URL): boolean {
  const isPlain = url.protocol === 'https:' && url.port === '' && url.username === '' && url.password === ''
  const host = hostOf(url)
  if (!isPlain || host === '') return false
  return isAddress(host)
    ? isPublicAddress(host)
    : host.slice(0, -1).includes('.') && !/\.(?:localhost|local|internal)\.?$/.test(host)
}

/** Rejects with `NotPublicError` for where it may not go, before anything is sent. */
export function createPublicFetch(options: PublicFetchOptions): BoundedFetch {
  const { trusted, lookup = systemLookup } = options
  return async (text, init = {}) => {
    const url = new URL(text)
    if (trusted(url.origin)) return fetchWithin(options, text, init)
    if (!mayBePublic(url)) throw new NotPublicError()
    const host = hostOf(url)
    const addresses = isAddress(host) ? [host] : await within(options.timeoutMs, lookup(host))
    const [address] = addresses
    // One that is not public among others would be a way to try often enough.
    if (address === undefined || !addresses.every(isPublicAddress)) throw new NotPublicError()
    return fetchAt(address, url, options, init)
  }
}

/** Resolvers have no deadline of their own. */
function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new DOMException('The name was not found in time', 'TimeoutError')),
    timeoutMs,
  )
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}

/** Asks the server at this address, by the name in the URL: its certificate must be of that name. */
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
