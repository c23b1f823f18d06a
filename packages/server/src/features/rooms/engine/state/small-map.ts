/**
 * A map from strings that is cheap for few entries, in the order of insertion. A handler that changes one member of a
 * state uses several of one or two entries, and the built-in map allocates far more for these.
 */

/** Entries that are searched one by one; more are indexed. */
const scannedMax = 8

export class SmallMap<Value> {
  private readonly keys: string[] = []
  private readonly values: Value[] = []
  /** Positions by key; null as long as there are few entries. */
  private positions: Map<string, number> | null = null

  get(key: string): Value | undefined {
    return this.values[this.find(key)]
  }

  /** Adds an entry, or replaces the value of an existing one. */
  set(key: string, value: Value): void {
    const at = this.find(key)
    if (at >= 0) {
      this.values[at] = value
      return
    }
    this.positions?.set(key, this.keys.length)
    this.keys.push(key)
    this.values.push(value)
    if (this.keys.length === scannedMax + 1) this.positions = new Map(this.keys.map((name, index) => [name, index]))
  }

  forEach(visit: (value: Value, key: string) => void): void {
    for (let at = 0; at < this.keys.length; at++) visit(this.values[at] as Value, this.keys[at] as string)
  }

  /** The position of an entry; -1 without one. */
  private find(key: string): number {
    return this.positions ? (this.positions.get(key) ?? -1) : this.keys.indexOf(key)
  }
}
