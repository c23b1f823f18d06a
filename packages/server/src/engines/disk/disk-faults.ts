/**
 * Describes disk faults for operators, and remembers one database's faults until a write has reached the disk again.
 */
import { EngineError } from '../sql/error.ts'

/** The system's or SQLite's code of an error or its causes. */
function codeOf(error: unknown): string | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if ('code' in cause && typeof cause.code === 'string') return cause.code
  return null
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const damage = ['SQLITE_CORRUPT', 'SQLITE_NOTADB']
const damageMessage = /malformed|not a database/

/** Whether a file is corrupt, which no retry changes. */
export function isDamage(error: unknown): boolean {
  const code = codeOf(error)
  return code === null ? damageMessage.test(messageOf(error)) : damage.some((start) => code.startsWith(start))
}

/** One sentence: the fault and, if it is not obvious, the remedy. `what` is e.g. `databases/a.sqlite`. */
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
  /** Records a failure; `EngineError` `busy` and locks do not count. */
  note(error: unknown): void
  /** A write has reached the disk: clears the fault. Corruption stays. */
  clear(): void
  /** Null while no fault is known. */
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
