/**
 * Encryption with a passphrase, for the secrets in a backup. Each guess costs 128 MiB and some tenths of a second
 * (scrypt).
 */
import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from 'node:crypto'

const algorithm = 'aes-256-gcm'
const version = '1.'
const [saltBytes, nonceBytes, tagBytes, keyBytes] = [16, 12, 16, 32]
const cost = { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1024 * 1024 }

/** Encrypts with a random salt. */
export function sealUnderPassphrase(text: string, passphrase: string): string {
  const [salt, nonce] = [randomBytes(saltBytes), randomBytes(nonceBytes)]
  const cipher = createCipheriv(algorithm, keyOf(passphrase, salt), nonce, { authTagLength: tagBytes })
  const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return version + Buffer.concat([salt, nonce, cipher.getAuthTag(), encrypted]).toString('base64url')
}

/** Decrypts; null for a wrong passphrase or a text that was tampered with. */
export function unsealUnderPassphrase(sealed: string, passphrase: string): string | null {
  const bytes = Buffer.from(sealed.slice(version.length), 'base64url')
  const at = [saltBytes, saltBytes + nonceBytes, saltBytes + nonceBytes + tagBytes] as const
  if (!sealed.startsWith(version) || bytes.length < at[2]) return null
  const key = keyOf(passphrase, bytes.subarray(0, at[0]))
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(at[0], at[1]), { authTagLength: tagBytes })
  decipher.setAuthTag(bytes.subarray(at[1], at[2]))
  try {
    return decipher.update(bytes.subarray(at[2]), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    return null
  }
}

const keyOf = (passphrase: string, salt: Buffer): Buffer =>
  scryptSync(passphrase.normalize('NFKC'), salt, keyBytes, cost)
