/** Ids of jobs that functions add. */
import type { Clock } from '../../../base/clock.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'

/** Returns the id for a key, always the same, so that repeated attempts add one job; a new id without a key. */
export function createJobIds(clock: Clock): (key: string | undefined) => string {
  const newId = createUuid7(clock)
  return (key) => (key === undefined ? newId() : sha256(key).slice(0, 32))
}
