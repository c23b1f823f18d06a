/** Fingerprints: fast ones, keyed ones, and SHA-256 for whatever an attacker gains by colliding. */
import { timingSafeEqual } from 'node:crypto'

/** A 64-bit fingerprint of a text as base 36: entity tags, cache keys. */
export const fingerprint = (text: string): string => Bun.hash.wyhash(text).toString(36)

/** The same of bytes that come in parts: each part with what the ones before gave. */
export const fingerprintPart = (part: Uint8Array, before: bigint): bigint => Bun.hash.wyhash(part, before)

/**
 * A message authentication code (HMAC-SHA-256 truncated to 64 bits, as base64url) under a key of the purpose: without
 * the secret, no text can be given a valid one. For what clients carry and may read, such as cursors; what they must
 * not read is encrypted (`seal`).
 */
export function createMac(secret: string, purpose: string): (text: string) => string {
  const key = new Bun.CryptoHasher('sha256', secret).update(purpose).digest()
  return (text) => new Bun.CryptoHasher('sha256', key).update(text).digest().subarray(0, 8).toString('base64url')
}

/** Whether a text given by a stranger is the one expected; the time it takes says nothing of how far it fits. */
export function equalsSecret(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** SHA-256 as lower-case hex: for fingerprints that are stored or that collide at somebody's gain. */
export const sha256 = (text: string): string => new Bun.CryptoHasher('sha256').update(text).digest('hex')
