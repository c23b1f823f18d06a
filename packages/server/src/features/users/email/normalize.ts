/** Normalization of email addresses: spellings of the same mailbox are stored and compared as one address. */
import { findEmailAddress } from '../../../base/text/email.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import { type ApiError, conflict, invalidField } from '../../../errors.ts'

/**
 * The address, trimmed, in NFKC and lower case, with its domain in ASCII. Throws 400 naming `field` if it is not an
 * email address.
 */
export function normalizeEmail(text: string, field = 'email'): string {
  const email = findEmailAddress(text)
  if (email === null) throw invalidField(field, 'pattern', 'must be an email address')
  return email
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
