/**
 * Network addresses as text and as networks: one canonical spelling per address, the unit that rate limits count
 * by, CIDR blocks, and which proxies are trusted to name the client. Reads no headers: `http/client-address` does.
 */

/** 16-bit groups, most significant first: 2 of an IPv4 address, 8 of an IPv6 one. */
type Groups = readonly number[]

/** A block of addresses of one family. */
export interface Cidr {
  readonly groups: Groups
  /** Leading bits that must be equal: 0–32 or 0–128. */
  readonly bits: number
}

/** Who may say, in `X-Forwarded-For`, where a request came from. */
export type TrustProxy =
  | { readonly kind: 'none' }
  /** This many proxies stand in front; each has appended the address it was called from. */
  | { readonly kind: 'hops'; readonly hops: number }
  /** Every proxy that calls from one of these networks. */
  | { readonly kind: 'networks'; readonly networks: readonly Cidr[] }

/** Far more than any chain of proxies; a larger number is a typing mistake. */
const hopsMax = 32

/**
 * The one spelling of an address: IPv4 dotted, IPv6 as RFC 5952 writes it, an IPv4-mapped IPv6 address as IPv4, no
 * zone. Null when the text is no address; forms that other programs read differently (`010.0.0.1`, `1.2.3`) are none.
 */
export function canonicalAddress(text: string): string | null {
  const groups = findGroups(text)
  return groups && formatGroups(groups)
}

/**
 * What one client is counted by: an IPv4 address itself, an IPv6 address's /64, which is the least that a subscriber is
 * given and can roam in. Takes a canonical address; any other text is counted as it is.
 */
export function countedAddress(canonical: string): string {
  if (!canonical.includes(':')) return canonical
  const groups = findGroups(canonical)
  return groups ? `${formatGroups([...groups.slice(0, 4), 0, 0, 0, 0])}/64` : canonical
}

/**
 * Reads `10.0.0.0/8`, `2001:db8::/32` or a single address. Bits beyond the prefix are ignored, as routers do. Throws an
 * `Error` that quotes the text.
 */
export function parseCidr(text: string): Cidr {
  const slash = text.indexOf('/')
  const groups = findGroups(slash < 0 ? text : text.slice(0, slash))
  if (!groups) throw new Error(`'${text}' is not an address or a network such as 10.0.0.0/8`)
  const widest = groups.length * 16
  if (slash < 0) return { groups, bits: widest }
  const digits = text.slice(slash + 1)
  // A mapped block (::ffff:10.0.0.0/104) was read as IPv4, so its prefix loses the 96 bits of the mapping.
  const bits = /^\d{1,3}$/.test(digits) ? Number(digits) - (widest === 32 && text.includes(':') ? 96 : 0) : -1
  if (bits < 0 || bits > widest) throw new Error(`'${text}' has no prefix length between 0 and ${widest}`)
  return { groups, bits }
}

/**
 * Whether the address lies in the block. IPv4 and IPv6 never match each other; text that is no address matches nothing.
 */
export function matchesCidr(cidr: Cidr, address: string): boolean {
  const groups = findGroups(address)
  if (groups?.length !== cidr.groups.length) return false
  for (let index = 0, bits = cidr.bits; bits > 0; index++, bits -= 16) {
    const shift = bits >= 16 ? 0 : 16 - bits
    if ((groups[index] ?? 0) >> shift !== (cidr.groups[index] ?? 0) >> shift) return false
  }
  return true
}

/**
 * Reads `PLINTH_TRUST_PROXY`: empty, `0` or `none` trusts nobody, a whole number is a count of proxies, anything else a
 * list of networks separated by commas or spaces. Throws an `Error` that quotes the text.
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

function findGroups(text: string): Groups | null {
  if (!text.includes(':')) return findIPv4(text)
  const zone = text.indexOf('%')
  const groups = findIPv6(zone < 0 ? text : text.slice(0, zone))
  const mapped = groups?.[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0)
  return groups && mapped ? groups.slice(6) : groups
}

/** Four decimal numbers; a leading zero is refused, since some programs read it as octal. */
function findIPv4(text: string): Groups | null {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)
  if (!match) return null
  const bytes: number[] = []
  for (const digits of match.slice(1)) {
    if (digits.length > 1 && digits.startsWith('0')) return null
    const byte = Number(digits)
    if (byte > 255) return null
    bytes.push(byte)
  }
  const [a = 0, b = 0, c = 0, d = 0] = bytes
  return [(a << 8) | b, (c << 8) | d]
}

function findIPv6(text: string): Groups | null {
  const gap = text.indexOf('::')
  if (gap < 0) {
    const groups = findParts(text)
    return groups?.length === 8 ? groups : null
  }
  // A second gap leaves an empty part on the right, which findParts refuses.
  const left = gap === 0 ? [] : findParts(text.slice(0, gap), false)
  const right = gap === text.length - 2 ? [] : findParts(text.slice(gap + 2))
  if (!left || !right || left.length + right.length > 7) return null
  return [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right]
}

/** The groups between colons; the last part may be a dotted IPv4 address where the text ends with it. */
function findParts(text: string, mayEndDotted = true): number[] | null {
  const groups: number[] = []
  const parts = text.split(':', 9)
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16))
    else {
      const dotted = mayEndDotted && index === parts.length - 1 ? findIPv4(part) : null
      if (!dotted) return null
      groups.push(...dotted)
    }
  }
  return groups
}

function formatGroups(groups: Groups): string {
  if (groups.length === 2) return groups.map((group) => `${group >> 8}.${group & 255}`).join('.')
  const { start, length } = longestZeros(groups)
  const hex = (part: Groups): string => part.map((group) => group.toString(16)).join(':')
  return length < 2 ? hex(groups) : `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`
}

/** The first of the longest runs of zero groups. */
function longestZeros(groups: Groups): { start: number; length: number } {
  let best = { start: 0, length: 0 }
  let length = 0
  for (const [index, group] of groups.entries()) {
    length = group === 0 ? length + 1 : 0
    if (length > best.length) best = { start: index - length + 1, length }
  }
  return best
}
