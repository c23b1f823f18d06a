/**
 * Secrets that must be read again, at rest: sealed under a key made from the server's secret, so that a stolen database
 * gives none of them away. What need only be recognised is hashed instead.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

export interface Sealer {
  /** Encrypts a text for one place, such as a row's id: moved to another place it cannot be opened. */
  seal(text: string, place: string): string
  /** Throws when it was not sealed by this secret, for this purpose and place. */
  unseal(sealed: string, place: string): string
}

const algorithm = 'aes-256-gcm'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
/** Leads every sealed text, so that another algorithm can follow one day. */
const version = '1.'

/** A sealer under the server's secret; every purpose has a key of its own. */
export function createSealer(secret: string, purpose: string): Sealer {
  const key = Buffer.from(hkdfSync('sha256', secret, '', `plinth seal ${purpose} v1`, keyBytes))
  return {
    seal(text, place) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes }).setAAD(Buffer.from(place))
      const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return version + Buffer.concat([nonce, cipher.getAuthTag(), encrypted]).toString('base64url')
    },

    unseal(sealed, place) {
      const bytes = Buffer.from(sealed.slice(version.length), 'base64url')
      if (!sealed.startsWith(version) || bytes.length < nonceBytes + tagBytes) throw new Error('Not a sealed text')
      const nonce = bytes.subarray(0, nonceBytes)
      const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
        .setAAD(Buffer.from(place))
        .setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
      return decipher.update(bytes.subarray(nonceBytes + tagBytes), undefined, 'utf8') + decipher.final('utf8')
    },
  }
}
