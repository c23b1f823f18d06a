/**
 * Tokens of signed URLs: what one permits, until when, and in whose name. Encrypted, since the issuer's claims are
 * inside and whoever is given the URL is not to read them, and signed with HMAC-SHA-256, so that nobody else can make
 * one. Whether a token is used rightly is judged by those who open it.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Auth, Caller } from '../../../access/caller.ts'
import { invalidToken, tokenExpired } from '../../../errors.ts'
import { storageTokenCharsMax } from '../../../limits/storage.ts'

const issuerSchema = z.union([
  z.object({ user: z.record(z.string(), z.unknown()), session: z.string().nullable() }),
  z.object({ key: z.string() }),
])
const common = { bucket: z.string(), key: z.string(), expires: z.number(), issuer: issuerSchema }
const tokenSchema = z.discriminatedUnion('use', [
  /** Reads one version of an object, told by its size, type and entity tag. */
  z.object({ ...common, use: z.literal('read'), size: z.number(), type: z.string(), etag: z.string() }),
  /** Stores one object, once. */
  z.object({ ...common, use: z.literal('write'), id: z.string(), bytesMax: z.number().nullable() }),
])
export type StorageToken = z.infer<typeof tokenSchema>
export type ReadToken = Extract<StorageToken, { use: 'read' }>
export type WriteToken = Extract<StorageToken, { use: 'write' }>
export type Issuer = z.infer<typeof issuerSchema>

export interface Tokens {
  seal(token: StorageToken): string
  /** Throws 401 `Invalid token`, also for a token of another use, or `Token expired`. */
  open<Use extends StorageToken['use']>(use: Use, text: string): Extract<StorageToken, { use: Use }>
}

const ivBytes = 16

export function createTokens(secret: string, now: () => number): Tokens {
  const derive = (label: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', label, 32))
  const cipherKey = derive('plinth storage token cipher v1')
  const signKey = derive('plinth storage token signature v1')
  const sign = (content: string): Buffer => createHmac('sha256', signKey).update(content).digest()

  return {
    seal(token) {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-ctr', cipherKey, iv)
      const content = Buffer.concat([iv, cipher.update(JSON.stringify(token)), cipher.final()]).toString('base64url')
      return `${content}.${sign(content).toString('base64url')}`
    },
    open(use, text) {
      const [content = '', signature = '', ...rest] = text.length > storageTokenCharsMax ? [] : text.split('.')
      const expected = sign(content)
      const given = Buffer.from(signature, 'base64url')
      const isOurs =
        rest.length === 0 &&
        given.length === expected.length &&
        timingSafeEqual(given, expected) &&
        // Decoding skips foreign characters: only the one spelling is the token.
        expected.toString('base64url') === signature
      if (!isOurs) throw invalidToken()
      const bytes = Buffer.from(content, 'base64url')
      const decipher = createDecipheriv('aes-256-ctr', cipherKey, bytes.subarray(0, ivBytes))
      const json = Buffer.concat([decipher.update(bytes.subarray(ivBytes)), decipher.final()]).toString()
      const token = tokenSchema.parse(JSON.parse(json, withoutPrototype))
      if (token.use !== use) throw invalidToken()
      if (now() >= token.expires) throw tokenExpired()
      return token as Extract<StorageToken, { use: typeof use }>
    },
  }
}

/** Claims whose objects inherit nothing, as in an access token: a rule that looks up a name finds what was set. */
function withoutPrototype(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.freeze(Object.assign(Object.create(null), value))
}

/** Who signs, as the token keeps it. Anonymous callers sign nothing. */
export function issuerOf(caller: Exclude<Caller, { kind: 'anonymous' }>): Issuer {
  if (caller.kind === 'service') return { key: caller.keyName }
  return { user: { ...caller.auth }, session: caller.sessionId }
}

/** The caller a token speaks for; one of a service key has the one scope that the token was made with. */
export function callerOf(issuer: Issuer, scope: string): Exclude<Caller, { kind: 'anonymous' }> {
  if ('key' in issuer) return { kind: 'service', auth: null, keyName: issuer.key, scopes: [scope] }
  const auth = Object.freeze(issuer.user) as unknown as Auth
  // How long it may act is said by the URL itself.
  return { kind: 'user', auth, sessionId: issuer.session, expiresAtMs: Number.POSITIVE_INFINITY }
}
