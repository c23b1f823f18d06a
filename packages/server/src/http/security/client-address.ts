/** The client address of a request. Trusts `X-Forwarded-For` only as far as trusted proxies wrote it. */
import { canonicalAddress, matchesCidr, type TrustProxy } from '../../base/network/address.ts'

/** The address of a connection that closed before its address was read. */
export const unknownAddress = 'unknown'

/** The connection of a request. */
export interface Peer {
  readonly headers: Headers
  /** The remote address of the connection, null if it has closed. Takes a system call. */
  readPeer(): string | null
}

/**
 * The client's canonical address. The remote address of the connection is not read where the headers of a trusted proxy
 * have the client's. Each proxy appends the address that called it, so the list is read from its end; entries before
 * the first one that no trusted proxy wrote can be forged by the client.
 */
export function clientAddress(request: Peer, trust: TrustProxy): string {
  if (trust.kind === 'none') return canonicalPeer(request.readPeer())
  const forwarded = request.headers.get('x-forwarded-for')
  return forwarded === null ? canonicalPeer(request.readPeer()) : forwardedAddress(forwarded, request, trust)
}

function forwardedAddress(forwarded: string, request: Peer, trust: Exclude<TrustProxy, { kind: 'none' }>): string {
  if (trust.kind === 'hops') return walk(forwarded, (_, step) => step < trust.hops) ?? canonicalPeer(request.readPeer())
  const peer = canonicalPeer(request.readPeer())
  const isTrusted = (address: string): boolean => trust.networks.some((network) => matchesCidr(network, address))
  return walk(forwarded, (address) => isTrusted(address ?? peer)) ?? peer
}

function canonicalPeer(peer: string | null): string {
  if (peer === null) return unknownAddress
  return peer.includes(':') ? (canonicalAddress(peer) ?? peer) : peer
}

/**
 * Walks from the peer towards the client while the current address is a trusted proxy and the next entry is an address.
 * Null stands for the peer.
 */
function walk(forwarded: string, isProxy: (address: string | null, step: number) => boolean): string | null {
  let address: string | null = null
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
