/** The latest deltas of one state, so that a client that reconnects receives the missed deltas only. */
import type { RoomText } from '../messages/messages.ts'

export interface HistoryBounds {
  readonly entriesMax: number
  readonly bytesMax: number
  readonly ageMs: number
}

interface Entry {
  readonly version: number
  /** The serialized message. */
  readonly text: RoomText
  readonly atMs: number
}

export class History {
  /** Versions are consecutive. */
  private readonly entries: Entry[] = []
  private first = 0
  private bytes = 0

  constructor(private readonly bounds: HistoryBounds) {}

  add(version: number, text: RoomText, atMs: number): void {
    this.entries.push({ version, text, atMs })
    this.bytes += text.length
    while (this.first < this.entries.length && this.isOverBounds(atMs)) {
      this.bytes -= (this.entries[this.first] as Entry).text.length
      this.first += 1
    }
    if (this.first * 2 > this.entries.length) {
      this.entries.splice(0, this.first)
      this.first = 0
    }
  }

  /** Drops all deltas: a complete state was sent, and no client can resume from before it. */
  clear(): void {
    this.entries.length = 0
    this.first = 0
    this.bytes = 0
  }

  /** The messages after `version` up to `current`; null if some are not kept any more. */
  since(version: number, current: number): RoomText[] | null {
    if (version === current) return []
    const oldest = this.entries[this.first]
    if (!oldest || version > current || version < oldest.version - 1) return null
    return this.entries.slice(this.first + version - oldest.version + 1).map(({ text }) => text)
  }

  private isOverBounds(nowMs: number): boolean {
    const { entriesMax, bytesMax, ageMs } = this.bounds
    const oldest = this.entries[this.first] as Entry
    return this.entries.length - this.first > entriesMax || this.bytes > bytesMax || nowMs - oldest.atMs > ageMs
  }
}
