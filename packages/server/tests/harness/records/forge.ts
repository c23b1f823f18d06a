/**
 * Forges tokens that the server would never sign: any header, claims and key. Derives the real signing key from the
 * secret, as an operator could.
 */
import { createPrivateKey, hkdfSync, type KeyObject, sign } from 'node:crypto'

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The Ed25519 key that follows from a server's secret (rule TOKEN-13). */
export function signingKey(secret: string): KeyObject {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', 'plinth access token ed25519 v1', 32))
  const prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
  return createPrivateKey({ key: Buffer.concat([prefix, seed]), format: 'der', type: 'pkcs8' })
}

/** A compact JWS of these parts. */
export function forge(header: unknown, payload: unknown, key: KeyObject): string {
  const content = `${encode(header)}.${encode(payload)}`
  return `${content}.${sign(null, Buffer.from(content), key).toString('base64url')}`
}

/** A token of these parts with a given signature. */
export const forgeWith = (header: unknown, payload: unknown, signature: string): string =>
  `${encode(header)}.${encode(payload)}.${signature}`

/** Header and claims of a token, unverified. */
export function readToken(token: string): { header: Record<string, unknown>; claims: Record<string, unknown> } {
  const [header = '', claims = ''] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString())
  return { header: JSON.parse(header), claims: JSON.parse(claims) }
}
