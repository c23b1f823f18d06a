/**
 * Which addresses are of the public internet: what a server may be sent to by strangers. Everything else is this
 * machine, its networks, or nobody's.
 */
import { matchesCidr, parseCidr } from './address.ts'

/** The blocks of IPv4 that are not anybody's on the internet (IANA's special-purpose registry, multicast, reserved). */
const closedIPv4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
].map(parseCidr)

/** All that is given out of IPv6. */
const globalIPv6 = parseCidr('2000::/3')
/** Within it: protocols, documentation, and what leads to an IPv4 address that stands inside (6to4, Teredo). */
const closedIPv6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'].map(parseCidr)

/** Whether an address is of the public internet; false for text that is no address. */
export function isPublicAddress(address: string): boolean {
  if (matchesCidr(globalIPv6, address)) return !closedIPv6.some((block) => matchesCidr(block, address))
  return matchesCidr(anyIPv4, address) && !closedIPv4.some((block) => matchesCidr(block, address))
}

const anyIPv4 = parseCidr('0.0.0.0/0')
