/**
 * Paths of a state that changed since its last delta, as a tree, and the delta built from them. A path has at most five
 * levels, no key that is empty or contains a dot, and never leads into an array; other changes mark the nearest
 * ancestor that has a path.
 */
import { roomPathDepthMax } from '../../../../limits/rooms.ts'
import { type JsonRecord, type JsonValue, jsonBytes, jsonText } from './json.ts'

const isPathKey = (key: string): boolean => key !== '' && !key.includes('.')

export class ChangedPaths {
  /** The value was replaced; its parts are not tracked. */
  private isReplaced = false
  private parts: Map<string, ChangedPaths> | null = null

  constructor(private readonly depth = 0) {}

  get isClean(): boolean {
    return !this.isReplaced && this.parts === null
  }

  /** Marks this value as replaced. */
  markAll(): void {
    this.isReplaced = true
    this.parts = null
  }

  /** The node that tracks a member: its own, or this one where the member has no path. */
  below(key: string): ChangedPaths {
    const parts = this.partsFor(key)
    if (!parts) return this
    let part = parts.get(key)
    if (!part) {
      part = new ChangedPaths(this.depth + 1)
      parts.set(key, part)
    }
    return part
  }

  /** Marks a member as replaced. */
  markMember(key: string): void {
    this.partsFor(key)?.set(key, replaced)
  }

  /** Null where the member has no path; this value is then marked as replaced. */
  private partsFor(key: string): Map<string, ChangedPaths> | null {
    if (this.isReplaced) return null
    if (this.depth === roomPathDepthMax || !isPathKey(key)) {
      this.markAll()
      return null
    }
    this.parts ??= new Map()
    return this.parts
  }

  /**
   * The changes as JSON: paths to new values, null for deleted keys; one entry for a parent instead of several for its
   * members where that is shorter. Null if paths cannot express the change and the complete state must be sent.
   */
  toDelta(state: JsonRecord): string | null {
    if (this.isReplaced) return null
    const entries: string[] = []
    this.collect(entries, '', state)
    return `{${entries.join(',')}}`
  }

  /** Adds the entries at and below `path`; returns their length. */
  private collect(entries: string[], path: string, value: JsonValue | undefined): number {
    if (this.isReplaced || value === undefined) return add(entries, path, value)
    if (!this.parts) return 0
    const before = entries.length
    let length = 0
    for (const [key, part] of this.parts) {
      // A deleted key may equal the name of an inherited property.
      const member = Object.hasOwn(value as JsonRecord, key) ? (value as JsonRecord)[key] : undefined
      length += part.collect(entries, path === '' ? key : `${path}.${key}`, member)
    }
    if (path === '' || entries.length - before < 2) return length
    // Measuring stops as soon as the value is not shorter.
    const most = length - path.length - 4
    if (jsonBytes(value, most) > most) return length
    entries.length = before
    return add(entries, path, value)
  }
}

/** Shared by all replaced members: a replaced value tracks no parts. */
const replaced = new ChangedPaths()
replaced.markAll()

function add(entries: string[], path: string, value: JsonValue | undefined): number {
  const entry = `${jsonText(path)}:${value === undefined ? 'null' : jsonText(value)}`
  entries.push(entry)
  return entry.length + 1
}
