/** Normalization of email addresses: spellings of the same mailbox are stored and compared as one address. */
import { domainToASCII } from 'node:url'
import { EngineError } from '../../../engines/sql/error.ts'
import { type ApiError, conflict, invalidField } from '../../../errors.ts'
import { emailCharsMax, emailLocalPartCharsMax } from '../../../limits/users.ts'

/** Excludes RFC 5322 specials, spaces and invisible characters. Quoted local parts do not occur in practice. */
const localPattern = /^[^\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}@"(),:;<>[\\\]]+$/u
const domainPattern = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/

/**
 * The address, trimmed, in NFKC and lower case, with its domain in ASCII. Throws 400 naming `field` if it is not an
 * email address.
 */
export function normalizeEmail(text: string, field = 'email'): string {
  const email = findEmail(text)
  if (email === null) throw invalidField(field, 'pattern', 'must be an email address')
  return email
}

function findEmail(text: string): string | null {
  if (text.length > 2 * emailCharsMax) return null
  // Lower-casing can denormalize the text.
  const folded = text.trim().normalize('NFKC').toLowerCase().normalize('NFKC')
  const at = folded.lastIndexOf('@')
  const local = folded.slice(0, Math.max(at, 0))
  if (at < 1 || local.length > emailLocalPartCharsMax || !localPattern.test(local)) return null
  if (local.startsWith('.') || local.endsWith('.') || local.includes('..')) return null
  const domain = domainToASCII(folded.slice(at + 1))
  const email = `${local}@${domain}`
  return domainPattern.test(domain) && email.length <= emailCharsMax ? email : null
}

/** 409 for the address of another user. */
export const emailTaken = (): ApiError =>
  conflict('A user with this email address exists', { email: { code: 'unique', message: 'is taken' } })

/**
 * Runs a write that assigns an address. Of concurrent writes the unique index accepts one; the others reject with 409.
 */
export async function mapUniqueToConflict<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    throw error instanceof EngineError && error.kind === 'unique' ? emailTaken() : error
  }
}
