/**
 * The dirty paths of a state since its last delta, as a tree, and the delta built from them. A path has at most five
 * levels, no key that is empty or contains a dot, and never leads into an array; deeper changes mark the nearest
 * ancestor that has a path.
 */
import { roomPathDepthMax } from '../../../limits/rooms.ts'
import { type JsonRecord, type JsonValue, jsonBytes, jsonText } from './json.ts'

const canBeNamed = (key: string): boolean => key !== '' && !key.includes('.')

export class ChangedPaths {
  /** The complete value has changed; its parts are not tracked. */
  private isWhole = false
  private parts: Map<string, ChangedPaths> | null = null

  constructor(private readonly depth = 0) {}

  get isClean(): boolean {
    return !this.isWhole && this.parts === null
  }

  touch(): void {
    this.isWhole = true
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
  touchMember(key: string): void {
    this.partsFor(key)?.set(key, whole)
  }

  /** Null where the member has no path; this value is then marked as replaced. */
  private partsFor(key: string): Map<string, ChangedPaths> | null {
    if (this.isWhole) return null
    if (this.depth === roomPathDepthMax || !canBeNamed(key)) {
      this.touch()
      return null
    }
    this.parts ??= new Map()
    return this.parts
  }

  /**
   * The changes as JSON: paths to values, null for what is gone; a parent takes the place of its members when that is
   * shorter. Null where paths cannot express the change and the complete state must be sent.
   */
  toDelta(state: JsonRecord): string | null {
    if (this.isWhole) return null
    const entries: string[] = []
    this.collect(entries, '', state)
    return `{${entries.join(',')}}`
  }

  /** Adds the entries at and below `path`, and gives their length. */
  private collect(entries: string[], path: string, value: JsonValue | undefined): number {
    if (this.isWhole || value === undefined) return add(entries, path, value)
    if (!this.parts) return 0
    const before = entries.length
    let length = 0
    for (const [key, part] of this.parts) {
      // A deleted key may equal the name of an inherited property.
      const member = Object.hasOwn(value as JsonRecord, key) ? (value as JsonRecord)[key] : undefined
      length += part.collect(entries, path === '' ? key : `${path}.${key}`, member)
    }
    if (path === '' || entries.length - before < 2) return length
    // The value is walked only as far as it is shorter.
    const most = length - path.length - 4
    if (jsonBytes(value, most) > most) return length
    entries.length = before
    return add(entries, path, value)
  }
}

/** Shared by all replaced members: a replaced value tracks no parts. */
const whole = new ChangedPaths()
whole.touch()

function add(entries: string[], path: string, value: JsonValue | undefined): number {
  const entry = `${jsonText(path)}:${value === undefined ? 'null' : jsonText(value)}`
  entries.push(entry)
  return entry.length + 1
}
