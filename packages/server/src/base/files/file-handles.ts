/** File handles of the process: the limit, and the errors that mean there are none left. */
import { readFileSync } from 'node:fs'

/** Error codes of the system and of SQLite when the process or the machine has no handle left. */
const refusals: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'SQLITE_CANTOPEN'])

/** Whether an error or one of its causes is a lack of file handles. */
export function isOutOfHandles(error: unknown): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const code = 'code' in at ? at.code : undefined
    if (refusals.has(code) || (typeof code === 'string' && code.startsWith('SQLITE_CANTOPEN'))) return true
  }
  return false
}

/** Assumed if the limit is unknown: the lowest default in use. */
const handlesAssumed = 256

/** The most handles this process may have (`RLIMIT_NOFILE`). */
export function readHandleLimit(): number {
  return parseLimit(readText('/proc/self/limits')) ?? parseLimit(readShellLimit()) ?? handlesAssumed
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** For systems without `/proc`: a shell has the same limit as the process that starts it. */
function readShellLimit(): string {
  const { stdout } = Bun.spawnSync(['sh', '-c', 'ulimit -n'], { stdout: 'pipe' })
  return `Max open files ${stdout.toString()}`
}

/** Null if the text has no limit; infinity for `unlimited`. */
export function parseLimit(text: string): number | null {
  const value = /^Max open files\s+(\d+|unlimited)/m.exec(text)?.[1]
  if (value === undefined) return null
  return value === 'unlimited' ? Number.POSITIVE_INFINITY : Number(value)
}
