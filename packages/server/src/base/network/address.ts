/**
 * IP addresses and networks: the canonical form of an address, the unit of rate limits, CIDR blocks and the
 * configuration of trusted proxies. `http/security/client-address` reads the headers.
 */
import { isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { createLru } from '../concurrency/lru.ts'

export type Address = ipaddr.IPv4 | ipaddr.IPv6

/** A block of addresses of one family. */
export interface Cidr {
  readonly network: Address
  /** Leading bits that must be equal: 0–32 or 0–128. */
  readonly bits: number
}

/** Which proxies are trusted to name the client in `X-Forwarded-For`. */
export type TrustProxy =
  | { readonly kind: 'none' }
  /** The number of proxies in front; each appends the address of its client. */
  | { readonly kind: 'hops'; readonly hops: number }
  /** Every proxy that calls from one of these networks. */
  | { readonly kind: 'networks'; readonly networks: readonly Cidr[] }

/** Far longer than any chain of proxies; a larger number is a typo. */
const hopsMax = 32

/**
 * The one spelling of an address: IPv4 dotted, IPv6 as RFC 5952 writes it, an IPv4-mapped IPv6 address as IPv4, no
 * zone. Null when the text is not an address; forms that programs read differently (`010.0.0.1`, `1.2.3`) are refused.
 */
export function canonicalAddress(text: string): string | null {
  if (isIPv4(text)) return text
  const spelling = canonicalIPv6(text)
  // Every IPv4-mapped address begins like this in its canonical spelling.
  return spelling?.startsWith('::ffff:') ? String(ipaddr.process(spelling)) : spelling
}

/**
 * The unit in which clients are counted: an IPv4 address itself, an IPv6 address's /64, which is the least that a
 * subscriber is assigned. Takes a canonical address; any other text is returned as it is.
 */
export function countedAddress(canonical: string): string {
  if (!canonical.includes(':')) return canonical
  const known = networks.get(canonical)
  if (known !== undefined) return known
  const address = findAddress(canonical)
  if (!(address instanceof ipaddr.IPv6)) return address === null ? canonical : String(address)
  const network = new ipaddr.IPv6([...address.parts.slice(0, 4), 0, 0, 0, 0]).toNormalizedString()
  const counted = `${canonicalIPv6(network)}/64`
  networks.set(canonical, counted)
  return counted
}

/** Each request reads the network of its client, and parsing an IPv6 address takes several microseconds. */
const networks = createLru<string, string>(1000)

/**
 * Reads `10.0.0.0/8`, `2001:db8::/32` or a single address. Bits beyond the prefix are ignored, as routers do. Throws an
 * `Error` that quotes the text.
 */
export function parseCidr(text: string): Cidr {
  const slash = text.indexOf('/')
  const network = findAddress(slash < 0 ? text : text.slice(0, slash))
  if (!network) throw new Error(`'${text}' is not an address or a network such as 10.0.0.0/8`)
  const widest = network.kind() === 'ipv4' ? 32 : 128
  if (slash < 0) return { network, bits: widest }
  const digits = text.slice(slash + 1)
  // A mapped block (::ffff:10.0.0.0/104) was read as IPv4, so its prefix loses the 96 bits of the mapping.
  const bits = /^\d{1,3}$/.test(digits) ? Number(digits) - (widest === 32 && text.includes(':') ? 96 : 0) : -1
  if (bits < 0 || bits > widest) throw new Error(`'${text}' has no prefix length between 0 and ${widest}`)
  return { network, bits }
}

/**
 * Whether the address lies in the block. IPv4 and IPv6 never match each other; text that is not an address matches
 * nothing.
 */
export function matchesCidr({ network, bits }: Cidr, text: string): boolean {
  const address = findAddress(text)
  return address?.kind() === network.kind() && address.match(network, bits)
}

/** Parses an address, an IPv4-mapped one as IPv4; null if malformed. */
export function findAddress(text: string): Address | null {
  const canonical = canonicalAddress(text)
  return canonical === null ? null : ipaddr.parse(canonical)
}

/** RFC 5952, as the URL standard writes hosts; `ipaddr.js` shortens another run of zeros in some addresses. */
function canonicalIPv6(text: string): string | null {
  const known = spellings.get(text)
  if (known !== undefined) return known
  const zone = text.indexOf('%')
  const address = zone < 0 ? text : text.slice(0, zone)
  if (!isIPv6(address)) return null
  const spelling = new URL(`http://[${withoutDots(address)}]`).hostname.slice(1, -1)
  if (text.length <= spellingCharsMax) spellings.set(text, spelling)
  return spelling
}

const spellings = createLru<string, string>(1000)
/** The longest address without a zone; a zone may have any length. */
const spellingCharsMax = 45

/** An IPv6 address whose last 32 bits are groups: not every URL parser accepts every dotted form. */
const withoutDots = (address: string): string =>
  address.replace(/[\d.]+$/, (tail) => (tail.includes('.') ? groupsOf(tail) : tail))

const groupsOf = (dotted: string): string => {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number)
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

/**
 * Parses `PLINTH_TRUST_PROXY`: empty, `0` or `none` trusts no proxy, an integer is the number of proxies, anything else
 * a list of networks separated by commas or spaces. Throws an `Error` that quotes the text.
 */
export function parseTrustProxy(text: string): TrustProxy {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed === '0' || trimmed === 'none') return { kind: 'none' }
  if (/^\d+$/.test(trimmed)) {
    const hops = Number(trimmed)
    if (hops > hopsMax) throw new Error(`'${text}' is more than ${hopsMax} proxies`)
    return { kind: 'hops', hops }
  }
  return {
    kind: 'networks',
    networks: trimmed
      .split(/[\s,]+/)
      .filter(Boolean)
      .map(parseCidr),
  }
}
