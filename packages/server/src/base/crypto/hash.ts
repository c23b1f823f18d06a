/** Hashes: fast fingerprints, message authentication codes, and SHA-256 where collisions would help an attacker. */
import { timingSafeEqual } from 'node:crypto'

/** A 64-bit fingerprint of a text, or of its UTF-8, as base 36: entity tags, cache keys. */
export const fingerprint = (text: string | Uint8Array): string => Bun.hash.wyhash(text).toString(36)

/** The same incrementally: each part with the result of the previous ones. */
export const fingerprintPart = (part: Uint8Array, before: bigint): bigint => Bun.hash.wyhash(part, before)

/**
 * Creates message authentication codes (HMAC-SHA-256 truncated to 64 bits, as base64url) with a key per purpose. For
 * values that clients store and may read, such as cursors; values they must not read are encrypted (`seal`).
 */
export function createMac(secret: string, purpose: string): (text: string) => string {
  const key = new Bun.CryptoHasher('sha256', secret).update(purpose).digest()
  return (text) => new Bun.CryptoHasher('sha256', key).update(text).digest().subarray(0, 8).toString('base64url')
}

/** Compares an untrusted text with the expected one in constant time. */
export function equalsSecret(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** SHA-256 as lower-case hex, for fingerprints that are stored or must not collide. */
export const sha256 = (text: string): string => new Bun.CryptoHasher('sha256').update(text).digest('hex')
