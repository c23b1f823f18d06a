/**
 * What keeps a file or folder from being written, in words for an operator. Owns what is remembered of one database's
 * faults until a write has reached the disk again.
 */
import { EngineError } from '../sql/error.ts'

/** The code of the system or of SQLite that an error, or what caused it, carries. */
function codeOf(error: unknown): string | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if ('code' in cause && typeof cause.code === 'string') return cause.code
  return null
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const damage = ['SQLITE_CORRUPT', 'SQLITE_NOTADB']
const damageMessage = /malformed|not a database/

/** Whether the contents of a file are wrong, which no later attempt changes. */
export function isDamage(error: unknown): boolean {
  const code = codeOf(error)
  return code === null ? damageMessage.test(messageOf(error)) : damage.some((start) => code.startsWith(start))
}

/** One sentence: what is wrong and, where it is not obvious, what to do. `what` is such as `databases/a.sqlite`. */
export function describeDiskFault(error: unknown, what: string): string {
  const code = codeOf(error)
  if (isDamage(error))
    return `${what} is damaged; stop the server, check the folder with "plinth doctor" and restore a backup`
  switch (code) {
    case 'SQLITE_FULL':
    case 'ENOSPC':
    case 'EDQUOT':
      return `The disk is full (${what})`
    case 'EMFILE':
    case 'ENFILE':
      return `No file handles are left (${what}); raise the limit of open files`
    case 'EROFS':
      return `The disk is read-only (${what})`
    case null:
      return `${what}: ${messageOf(error)}`
    default:
      if (code.startsWith('SQLITE_READONLY')) return `The disk is read-only (${what})`
      if (code.startsWith('SQLITE_CANTOPEN'))
        return `${what} cannot be opened: it is missing, or no file handles are left`
      return `${what} cannot be written (${code})`
  }
}

export interface DiskFaults {
  /** Remembers a failure; `EngineError` `busy` and locks are none. */
  note(error: unknown): void
  /** A write has reached the disk. Damage stays. */
  clear(): void
  /** Null while nothing is known to be wrong. */
  readonly reason: string | null
  readonly isDamaged: boolean
}

export function createDiskFaults(what: string): DiskFaults {
  let reason: string | null = null
  let isDamaged = false
  return {
    note(error) {
      const isFailure = error instanceof EngineError ? error.kind === 'unavailable' : codeOf(error) !== null
      if (isDamaged || !isFailure || codeOf(error)?.startsWith('SQLITE_BUSY')) return
      isDamaged = isDamage(error)
      reason = describeDiskFault(error, what)
    },
    clear() {
      if (!isDamaged) reason = null
    },
    get reason() {
      return reason
    },
    get isDamaged() {
      return isDamaged
    },
  }
}
