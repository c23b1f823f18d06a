/**
 * Which paths of a state have changed since the last delta, as a tree, and the delta that says so. Paths are as clients
 * may see them: at most five levels, no key that is empty or holds a dot, never into an array; what lies beyond is part
 * of its nearest ancestor that can be named.
 */
import { roomPathDepthMax } from '../../../limits/rooms.ts'
import { type JsonRecord, type JsonValue, jsonBytes, jsonText } from './json.ts'

const canBeNamed = (key: string): boolean => key !== '' && !key.includes('.')

export class Dirt {
  /** All of the value has changed; then there is nothing to say of its parts. */
  private isWhole = false
  private parts: Map<string, Dirt> | null = null

  constructor(private readonly depth = 0) {}

  get isClean(): boolean {
    return !this.isWhole && this.parts === null
  }

  touch(): void {
    this.isWhole = true
    this.parts = null
  }

  /** Where to mark changes of a member: its own dirt, or this when it cannot be told apart. */
  below(key: string): Dirt {
    const parts = this.partsFor(key)
    if (!parts) return this
    let part = parts.get(key)
    if (!part) {
      part = new Dirt(this.depth + 1)
      parts.set(key, part)
    }
    return part
  }

  /** All of a member has changed. */
  touchMember(key: string): void {
    this.partsFor(key)?.set(key, whole)
  }

  /** Null when the member cannot be told apart from the rest, which has then changed as a whole. */
  private partsFor(key: string): Map<string, Dirt> | null {
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
   * shorter. Null when the state cannot be told by paths and must be sent whole.
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
      // What is gone may be called as something that every object inherits.
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

/** There is nothing more to mark in it, so one is enough for all that changed as a whole. */
const whole = new Dirt()
whole.touch()

function add(entries: string[], path: string, value: JsonValue | undefined): number {
  const entry = `${jsonText(path)}:${value === undefined ? 'null' : jsonText(value)}`
  entries.push(entry)
  return entry.length + 1
}
