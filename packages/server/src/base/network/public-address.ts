/**
 * Which addresses are of the public internet, and so may be called on behalf of a client (SSRF). The classification is
 * the one `ipaddr.js` maintains from IANA's special-purpose registries.
 */
import { findAddress, matchesCidr, parseCidr } from './address.ts'

/** All that is assigned of IPv6; the library calls unassigned blocks beyond it unicast, too. */
const globalIPv6 = parseCidr('2000::/3')

/** Whether an address is of the public internet; false for text that is not an address. */
export function isPublicAddress(text: string): boolean {
  const address = findAddress(text)
  if (address === null || String(address.range()) !== 'unicast') return false
  return address.kind() === 'ipv4' || matchesCidr(globalIPv6, text)
}
