/** E-mail addresses in the one form in which they are stored and compared: two spellings of one box are one address. */
import { domainToASCII } from 'node:url'
import { EngineError } from '../../../engines/sql/error.ts'
import { type ApiError, conflict, invalidField } from '../../../errors.ts'
import { emailCharsMax, emailLocalPartCharsMax } from '../../../limits/users.ts'

/** RFC 5322's specials, spaces and whatever is not seen; quoted local parts are nobody's address in practice. */
const localPattern = /^[^\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}@"(),:;<>[\\\]]+$/u
const domainPattern = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/

/**
 * The address trimmed, in Unicode form NFKC, in lower case, with its domain in ASCII. Throws 400 naming `field` for
 * what is no address.
 */
export function normalizeEmail(text: string, field = 'email'): string {
  const email = findEmail(text)
  if (email === null) throw invalidField(field, 'pattern', 'must be an e-mail address')
  return email
}

function findEmail(text: string): string | null {
  if (text.length > 2 * emailCharsMax) return null
  // Lower case can take a text out of the form it was in.
  const folded = text.trim().normalize('NFKC').toLowerCase().normalize('NFKC')
  const at = folded.lastIndexOf('@')
  const local = folded.slice(0, Math.max(at, 0))
  if (at < 1 || local.length > emailLocalPartCharsMax || !localPattern.test(local)) return null
  if (local.startsWith('.') || local.endsWith('.') || local.includes('..')) return null
  const domain = domainToASCII(folded.slice(at + 1))
  const email = `${local}@${domain}`
  return domainPattern.test(domain) && email.length <= emailCharsMax ? email : null
}

/** 409 for an address that another user has. */
export const emailTaken = (): ApiError =>
  conflict('A user with this e-mail address exists', { email: { code: 'unique', message: 'is taken' } })

/** Runs a write that gives a user an address. Of several at once the index lets one through; the others get the 409. */
export async function mapUniqueToConflict<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    throw error instanceof EngineError && error.kind === 'unique' ? emailTaken() : error
  }
}
