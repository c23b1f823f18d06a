/**
 * Passwords: which are taken, and how they are hashed and checked beside the event loop, a few at once. Whose they are
 * is not known here. A password is never logged and never stored.
 */
import { createGate } from '../../../base/concurrency/gate.ts'
import { findHash, hashesAtOnce, hashPassword, verifyPassword } from '../../../base/crypto/password-hash.ts'
import { codePointLength, isStorableText } from '../../../base/text/text.ts'
import { invalidField, unavailable } from '../../../errors.ts'
import { passwordCharsMax } from '../../../limits/api.ts'
import {
  bcryptCostMax,
  passwordMemoryKiB,
  passwordPasses,
  passwordsWaitingMax,
  pbkdf2IterationsMax,
} from '../../../limits/users.ts'

export interface Passwords {
  /** Throws 400 naming `field` (default `password`) for a password that is too short, too long or no plain text. */
  check(password: string, field?: string): void
  /** argon2id. Rejects with 503 when too many wait; whoever hashes many does a few at a time. */
  hash(password: string): Promise<string>
  /**
   * Null stands for an account without a password, or none at all: false, after the same time as a wrong password.
   * Rejects with 503 like `hash`.
   */
  verify(password: string, hash: string | null): Promise<boolean>
  /** Whether a password that was found right should be hashed anew: by another algorithm, or for less than today. */
  needsRehash(hash: string): boolean
  /** A hash of another system, checked and given back. Throws 400 naming `passwordHash`. */
  parseImported(hash: string): string
}

const cost = { memoryKiB: passwordMemoryKiB, passes: passwordPasses }
/** Compared with where there is no hash, for the time it takes; that a password fits it would mean nothing. */
const nobodys = `$argon2id$v=19$m=${cost.memoryKiB},t=${cost.passes},p=1$${'A'.repeat(43)}$${'A'.repeat(43)}`

/** `charsMin` is asked for each time, since a reload may change it. */
export function createPasswords(charsMin: () => number): Passwords {
  const gate = createGate({ running: hashesAtOnce, waiting: passwordsWaitingMax })
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const entered = gate.enter(work)
    if (entered === null) throw unavailable()
    return entered
  }

  const hash = async (password: string): Promise<string> => inTurn(() => hashPassword(password, cost))

  function findMistake(password: string): { code: 'min' | 'max' | 'type'; message: string } | null {
    if (!isStorableText(password)) return { code: 'type', message: 'must be text without NUL or broken characters' }
    const length = codePointLength(password)
    if (length < charsMin()) return { code: 'min', message: `must have at least ${charsMin()} characters` }
    return length > passwordCharsMax
      ? { code: 'max', message: `must have at most ${passwordCharsMax} characters` }
      : null
  }

  return {
    check(password, field = 'password') {
      const mistake = findMistake(password)
      if (mistake) throw invalidField(field, mistake.code, mistake.message)
    },
    hash,
    async verify(password, known) {
      // What nobody can have as a password is not hashed at full length.
      const isPossible = isStorableText(password) && password.length <= 2 * passwordCharsMax
      const compared = known !== null && isPossible ? known : nobodys
      const matches = await inTurn(() => verifyPassword(isPossible ? password : '-', compared))
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
        throw refuse(`must not be of a bcrypt cost above ${bcryptCostMax}`)
      if (parsed.kind === 'pbkdf2' && parsed.iterations > pbkdf2IterationsMax)
        throw refuse(`must not have more than ${pbkdf2IterationsMax} iterations`)
      return text
    },
  }
}
