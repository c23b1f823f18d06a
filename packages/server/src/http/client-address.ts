/**
 * Which address a request counts as coming from. Believes `X-Forwarded-For` only as far as the trusted proxies wrote
 * it.
 */
import { canonicalAddress, matchesCidr, type TrustProxy } from '../base/network/address.ts'

/** Stands for a connection that is gone before it was looked at. */
export const unknownAddress = 'unknown'

/**
 * The client's canonical address. `peer` is the other end of the connection; `headers` are asked only when a proxy is
 * trusted. Each proxy appends the address it was called from, so the list is read from its end, and everything before
 * the first entry that no trusted proxy vouches for is the client's own invention.
 */
export function clientAddress(headers: Headers, peer: string | null, trust: TrustProxy): string {
  const peerAddress = peer === null ? unknownAddress : peer.includes(':') ? (canonicalAddress(peer) ?? peer) : peer
  if (trust.kind === 'none') return peerAddress
  const forwarded = headers.get('x-forwarded-for')
  if (forwarded === null) return peerAddress
  return trust.kind === 'hops'
    ? walk(forwarded, peerAddress, (_, step) => step < trust.hops)
    : walk(forwarded, peerAddress, (address) => trust.networks.some((network) => matchesCidr(network, address)))
}

/**
 * Goes from the peer towards the client for as long as the address reached is a trusted proxy and the next entry is
 * an address.
 */
function walk(forwarded: string, peer: string, isProxy: (address: string, step: number) => boolean): string {
  let address = peer
  let end = forwarded.length
  for (let step = 0; end >= 0 && isProxy(address, step); step++) {
    const comma = end === 0 ? -1 : forwarded.lastIndexOf(',', end - 1)
    const next = entryAddress(forwarded.slice(comma + 1, end).trim())
    if (next === null) return address
    address = next
    end = comma
  }
  return address
}

/** An entry's address; some proxies append a port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function entryAddress(entry: string): string | null {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(entry)
  if (bracketed?.[1] !== undefined) return canonicalAddress(bracketed[1])
  const dotted = /^([\d.]+):\d{1,5}$/.exec(entry)
  return canonicalAddress(dotted?.[1] ?? entry)
}
