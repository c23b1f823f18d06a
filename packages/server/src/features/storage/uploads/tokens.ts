/**
 * Tokens of signed URLs: what they permit, until when, and for which issuer. They are authenticated and encrypted
 * (AEAD), since they contain the issuer's claims, which the recipient of a URL must not read. `admission` checks that a
 * token matches the request.
 */

import { type Auth, type Caller, userCallerOf } from '../../../access/caller.ts'
import { createSealer } from '../../../base/crypto/seal.ts'
import { z } from '../../../base/schemas/z.ts'
import { invalidToken, tokenExpired } from '../../../errors.ts'
import { storageTokenCharsMax } from '../../../limits/storage.ts'

const issuerSchema = z.union([
  z.object({ user: z.record(z.string(), z.unknown()), session: z.string().nullable() }),
  z.object({ key: z.string() }),
])
const common = { bucket: z.string(), key: z.string(), expires: z.number(), issuer: issuerSchema }
const tokenSchema = z.discriminatedUnion('use', [
  /** Permits reading one version of an object, identified by size, type and entity tag. */
  z.object({ ...common, use: z.literal('read'), size: z.number(), type: z.string(), etag: z.string() }),
  /** Permits one upload of one object. */
  z.object({ ...common, use: z.literal('write'), id: z.string(), bytesMax: z.number().nullable() }),
])
export type StorageToken = z.infer<typeof tokenSchema>
export type DownloadTicket = Extract<StorageToken, { use: 'read' }>
export type UploadTicket = Extract<StorageToken, { use: 'write' }>
export type Issuer = z.infer<typeof issuerSchema>

export interface Tokens {
  seal(token: StorageToken): string
  /** Throws 401 `Invalid token`, also for a token for another use, or `Token expired`. */
  open<Use extends StorageToken['use']>(use: Use, text: string): Extract<StorageToken, { use: Use }>
}

export function createTokens(secret: string, now: () => number): Tokens {
  const sealer = createSealer(secret, 'storage token')

  function unseal(text: string, use: StorageToken['use']): string {
    if (text.length > storageTokenCharsMax) throw invalidToken()
    try {
      return sealer.unseal(text, use)
    } catch {
      throw invalidToken()
    }
  }

  return {
    seal: (token) => sealer.seal(JSON.stringify(token), token.use),
    open(use, text) {
      const token = tokenSchema.parse(JSON.parse(unseal(text, use), withoutPrototype))
      if (now() >= token.expires) throw tokenExpired()
      return token as Extract<StorageToken, { use: typeof use }>
    },
  }
}

/** Claims are objects without a prototype, as in access tokens: rules that read a name find only what was set. */
function withoutPrototype(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.freeze(Object.assign(Object.create(null), value))
}

/** The issuer as stored in a token. Anonymous callers cannot issue signed URLs. */
export function issuerOf(caller: Exclude<Caller, { kind: 'anonymous' }>): Issuer {
  if (caller.kind === 'service') return { key: caller.keyName }
  return { user: { ...caller.auth }, session: caller.sessionId }
}

/** The caller that a token represents; for a service key with only the scope that the token was issued for. */
export function callerOf(issuer: Issuer, scope: string): Exclude<Caller, { kind: 'anonymous' }> {
  if ('key' in issuer) return { kind: 'service', auth: null, keyName: issuer.key, scopes: [scope] }
  const auth = Object.freeze(issuer.user) as unknown as Auth
  // The URL has its own expiry.
  return userCallerOf(auth, issuer.session)
}
