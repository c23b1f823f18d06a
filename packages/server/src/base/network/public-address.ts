/**
 * Protection against SSRF: whether an address belongs to the public internet and may be called on behalf of a client.
 * Based on the classification that `ipaddr.js` maintains from IANA's special-purpose registries.
 */
import { findAddress, matchesCidr, parseCidr } from './address.ts'

/** The assigned part of IPv6; the library classifies unassigned blocks as unicast, too. */
const globalIPv6 = parseCidr('2000::/3')

/** Whether an address belongs to the public internet; false for malformed addresses. */
export function isPublicAddress(text: string): boolean {
  const address = findAddress(text)
  if (address === null || String(address.range()) !== 'unicast') return false
  return address.kind() === 'ipv4' || matchesCidr(globalIPv6, text)
}
