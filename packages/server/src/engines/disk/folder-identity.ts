/**
 * Checks that a path still refers to the file or folder that was opened: one that was removed or replaced can still be
 * written without an error, and the writes are lost.
 */
import { statSync } from 'node:fs'
import { EngineError } from '../sql/error.ts'

/** Throws `EngineError` `unavailable` once a path refers to another file. About 2 µs per path. */
export type CheckIdentity = () => void

/** `what` names the paths in the error. Throws the system's error if one is missing. */
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
