/**
 * Passwords: validation, hashing and verification. Hashing runs off the event loop, a few at a time, round robin over
 * callers. A password is never logged and never stored.
 */
import { createFairQueue } from '../../../base/concurrency/fair-queue.ts'
import type { HashCost } from '../../../base/crypto/argon2.ts'
import { findHash, hashesAtOnce, hashPassword, verifyPassword } from '../../../base/crypto/password-hash.ts'
import { codePointLength, isStorableText } from '../../../base/text/text.ts'
import { invalidField } from '../../../errors.ts'
import { queueRefusal } from '../../../http/replies/queue-refusal.ts'
import { passwordCharsMax } from '../../../limits/api.ts'
import { bcryptCostMax, passwordsWaiting, pbkdf2IterationsMax } from '../../../limits/users.ts'

export interface Passwords {
  /** Throws 400 naming `field` (default `password`) if the password is too short, too long or not plain text. */
  check(password: string, field?: string): void
  /**
   * argon2id. `caller` is a `callerKey`. Rejects with 429 if too many of the caller wait, and with 503 if too many wait
   * in all; bulk callers hash a few at a time.
   */
  hash(password: string, caller: string): Promise<string>
  /**
   * A `hash` of null (no account, or an account without a password) yields false, after the same time as a wrong
   * password. Rejects like `hash`.
   */
  verify(password: string, hash: string | null, caller: string): Promise<boolean>
  /** Whether a correct password should be hashed again: its algorithm is outdated or its cost too low. */
  needsRehash(hash: string): boolean
  /** Validates a hash of another system and returns it. Throws 400 naming `passwordHash`. */
  parseImported(hash: string): string
}

/** `charsMin` is a function because a reload may change it. */
export function createPasswords(charsMin: () => number, cost: HashCost): Passwords {
  /** Verified where there is no hash, to take the same time. A match means nothing. */
  const dummyHash = `$argon2id$v=19$m=${cost.memoryKiB},t=${cost.passes},p=1$${'A'.repeat(43)}$${'A'.repeat(43)}`
  const queue = createFairQueue({ running: hashesAtOnce, ...passwordsWaiting })
  async function withSlot<T>(caller: string, work: () => Promise<T>): Promise<T> {
    try {
      return await queue.enter(caller, null, work)
    } catch (error) {
      throw queueRefusal(error, 'passwords')
    }
  }

  function findIssue(password: string): { code: 'min' | 'max' | 'type'; message: string } | null {
    if (!isStorableText(password)) return { code: 'type', message: 'must not contain NUL or unpaired surrogates' }
    const length = codePointLength(password)
    if (length < charsMin()) return { code: 'min', message: `must have at least ${charsMin()} characters` }
    return length > passwordCharsMax
      ? { code: 'max', message: `must have at most ${passwordCharsMax} characters` }
      : null
  }

  return {
    check(password, field = 'password') {
      const issue = findIssue(password)
      if (issue) throw invalidField(field, issue.code, issue.message)
    },
    hash: (password, caller) => withSlot(caller, () => hashPassword(password, cost)),
    async verify(password, known, caller) {
      // An impossible password is not hashed at its full length.
      const isPossible = isStorableText(password) && password.length <= 2 * passwordCharsMax
      const compared = known !== null && isPossible ? known : dummyHash
      const matches = await withSlot(caller, () => verifyPassword(isPossible ? password : '-', compared))
      return matches && isPossible && known !== null
    },
    needsRehash(known) {
      const parsed = findHash(known)
      if (parsed?.kind !== 'argon2id') return true
      return parsed.cost.memoryKiB < cost.memoryKiB || parsed.cost.passes < cost.passes
    },
    parseImported(text) {
      const parsed = findHash(text)
      const refuse = (message: string) => invalidField('passwordHash', 'pattern', message)
      if (!parsed || parsed.kind === 'argon2id')
        throw refuse('must be a bcrypt hash ($2a$, $2b$, $2y$) or pbkdf2:sha256:<iterations>:<salt>:<hash> in base64')
      if (parsed.kind === 'bcrypt' && parsed.cost > bcryptCostMax)
        throw refuse(`must have a bcrypt cost of at most ${bcryptCostMax}`)
      if (parsed.kind === 'pbkdf2' && parsed.iterations > pbkdf2IterationsMax)
        throw refuse(`must have at most ${pbkdf2IterationsMax} iterations`)
      return text
    },
  }
}
