/**
 * Applies deltas as clients do; the engine uses it to replay a journal. A delta maps dot paths to new values; null
 * deletes.
 */
import { type JsonRecord, type JsonValue, setMember } from './json.ts'

export type Delta = Readonly<Record<string, JsonValue>>

/** Changes `state` in place. Throws if a path does not exist in it. */
export function applyDelta(state: JsonRecord, delta: Delta): void {
  for (const [path, value] of Object.entries(delta)) {
    const keys = path.split('.')
    const last = keys.pop() as string
    let at: JsonValue | undefined = state
    for (const key of keys) {
      at = isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined
    }
    if (!isRecord(at)) throw new TypeError(`The delta's path ${path} does not exist`)
    setMember(at, last, value === null ? undefined : value)
  }
}

const isRecord = (value: JsonValue | undefined): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
