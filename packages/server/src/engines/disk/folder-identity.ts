/**
 * Whether a path still leads to the file or folder that was opened: one that is removed or replaced while it is open
 * can be written without an error, and what is written is lost.
 */
import { statSync } from 'node:fs'
import { EngineError } from '../sql/error.ts'

/** Throws `EngineError` `unavailable` once a path leads elsewhere. About 2 µs for each path. */
export type CheckIdentity = () => void

/** `what` names them in the error. Throws what the system does where one is missing now. */
export function rememberIdentity(what: string, paths: readonly string[]): CheckIdentity {
  const known = paths.map((path) => {
    const { dev, ino } = statSync(path)
    return { path, dev, ino }
  })
  return () => {
    for (const { path, dev, ino } of known) {
      const found = statSync(path, { throwIfNoEntry: false })
      if (found?.ino === ino && found.dev === dev) continue
      const change = found ? 'replaced' : 'removed'
      throw new EngineError('unavailable', `${what} was ${change} while the server runs; nothing is written to it`)
    }
  }
}
