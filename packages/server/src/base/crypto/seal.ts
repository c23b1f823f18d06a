/**
 * Authenticated encryption (AES-256-GCM) with keys derived from the server's secret, for secrets at rest and tokens of
 * clients. Secrets that only need to be verified are hashed instead.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

export interface Sealer {
  /** Encrypts a text and binds it to a context, such as a row's id: in another context it cannot be opened. */
  seal(text: string, context: string): string
  /** Throws when the text was not sealed with this secret, for this purpose and context. */
  unseal(sealed: string, context: string): string
}

const algorithm = 'aes-256-gcm'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
/** The version prefix of sealed texts. */
const version = '1.'

/** Creates a sealer with a key per purpose. Encryption is randomized. */
export function createSealer(secret: string, purpose: string): Sealer {
  const key = Buffer.from(hkdfSync('sha256', secret, '', `plinth seal ${purpose} v1`, keyBytes))
  return {
    seal(text, context) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes }).setAAD(Buffer.from(context))
      const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return version + Buffer.concat([nonce, cipher.getAuthTag(), encrypted]).toString('base64url')
    },

    unseal(sealed, context) {
      const bytes = Buffer.from(sealed.slice(version.length), 'base64url')
      // The decoder ignores invalid characters: only the canonical encoding is accepted.
      const isCanonical = sealed === version + bytes.toString('base64url')
      if (!isCanonical || bytes.length < nonceBytes + tagBytes) throw new Error('Not a sealed text')
      const nonce = bytes.subarray(0, nonceBytes)
      const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
      return decipher.update(bytes.subarray(nonceBytes + tagBytes), undefined, 'utf8') + decipher.final('utf8')
    },
  }
}
