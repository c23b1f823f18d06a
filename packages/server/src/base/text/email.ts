/** Email addresses: spellings of the same mailbox have one normal form. */
import { domainToASCII } from 'node:url'
import { emailCharsMax, emailLocalPartCharsMax } from '../../limits/users.ts'

/** Excludes RFC 5322 specials, spaces and invisible characters. Quoted local parts do not occur in practice. */
const localPattern = /^[^\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}@"(),:;<>[\\\]]+$/u
const domainPattern = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/

/** The address, trimmed, in NFKC and lower case, with its domain in ASCII; null if the text is not an email address. */
export function findEmailAddress(text: string): string | null {
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
