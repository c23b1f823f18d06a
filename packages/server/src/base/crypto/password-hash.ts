/**
 * Password hashes: creates argon2id, verifies argon2id and imported hashes (bcrypt, PBKDF2). Runs off the event loop;
 * callers bound concurrency and accepted parameters.
 */
import { pbkdf2, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { argon2, type HashCost } from './argon2.ts'

/** Hashes that may run concurrently and leave a processor to the event loop. */
export const hashesAtOnce = Math.max(1, availableParallelism() - 1)

/** `$argon2id$v=19$m=…,t=…,p=1$salt$hash`. */
export const hashPassword = async (password: string, cost: HashCost): Promise<string> =>
  (await argon2()).hash(password, cost)

/** The parsed parameters of a hash. */
export type ParsedHash =
  | { readonly kind: 'argon2id'; readonly cost: HashCost }
  | { readonly kind: 'bcrypt'; readonly cost: number }
  | { readonly kind: 'pbkdf2'; readonly iterations: number; readonly salt: Buffer; readonly hash: Buffer }

const argonPattern = /^\$argon2id\$v=19\$m=(\d{1,8}),t=(\d{1,4}),p=1\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/
/** The cost is two digits; of the 31st and the last character only some bits are used, which every maker leaves 0. */
const bcryptPattern = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{30}[.CGKOSWaeimquy26]$/
const pbkdf2Pattern = /^pbkdf2:sha256:([1-9]\d{0,9}):([A-Za-z0-9+/]+={0,2}):([A-Za-z0-9+/]+={0,2})$/
const bcryptCostMin = 4
const pbkdf2SaltBytesMin = 8
const pbkdf2SaltBytesMax = 128
/** Systems truncate the derived key differently: 16 bytes are as infeasible to guess as 64. */
const pbkdf2HashBytesMin = 16
const pbkdf2HashBytesMax = 64

/** Null if the format is unknown. */
export function findHash(text: string): ParsedHash | null {
  const argon = argonPattern.exec(text)
  if (argon) return { kind: 'argon2id', cost: { memoryKiB: Number(argon[1]), passes: Number(argon[2]) } }
  const bcrypt = bcryptPattern.exec(text)
  if (bcrypt) return Number(bcrypt[1]) < bcryptCostMin ? null : { kind: 'bcrypt', cost: Number(bcrypt[1]) }
  const found = pbkdf2Pattern.exec(text)
  if (!found) return null
  const [salt, hash] = [bytesOf(found[2] as string), bytesOf(found[3] as string)]
  if (!salt || !hash) return null
  if (hash.length < pbkdf2HashBytesMin || hash.length > pbkdf2HashBytesMax) return null
  if (salt.length < pbkdf2SaltBytesMin || salt.length > pbkdf2SaltBytesMax) return null
  return { kind: 'pbkdf2', iterations: Number(found[1]), salt, hash }
}

/** Null unless the text is the canonical encoding of its bytes. */
function bytesOf(base64: string): Buffer | null {
  const bytes = Buffer.from(base64, 'base64')
  return bytes.toString('base64') === base64 ? bytes : null
}

/** bcrypt uses only this many bytes; the runtime would hash a longer password first, which other systems do not. */
const bcryptBytesMax = 72

const derive = promisify(pbkdf2)

/** Verifies a password. False for a hash of unknown format. */
export async function verifyPassword(password: string, text: string): Promise<boolean> {
  const parsed = findHash(text)
  switch (parsed?.kind) {
    case 'argon2id':
      return (await argon2()).verify(password, text)
    case 'bcrypt':
      return Bun.password.verify(Buffer.from(password).subarray(0, bcryptBytesMax), text, 'bcrypt')
    case 'pbkdf2': {
      const { iterations, salt, hash } = parsed
      return timingSafeEqual(await derive(password, salt, iterations, hash.length, 'sha256'), hash)
    }
    default:
      return false
  }
}
