/**
 * One versioned state of a room (shared, the server's, a player's, the metadata): its value, its size, what has changed
 * since the last delta, and its text. Owns no history.
 */

import { ActionError } from './action-error.ts'
import { ChangedPaths } from './changed-paths.ts'
import { Draft, type Turn } from './draft.ts'
import { type JsonRecord, type JsonValue, jsonBytes } from './json.ts'

export class LiveState {
  private dirt = new ChangedPaths()
  private bytes: number
  private text: string | null = null
  /** Texts of members, so that a small change does not serialize a large state again. */
  private readonly texts = new Map<string, string>()

  constructor(
    readonly value: JsonRecord,
    private readonly bytesMax: number,
    public version = 0,
  ) {
    this.bytes = jsonBytes(value)
  }

  draft(turn: Turn): Draft {
    return new Draft(turn, this.value, this.bytesMax)
  }

  /** Validates a draft: returns the size the state would have, or throws `INVALID_STATE` or `STATE_TOO_LARGE`. */
  prepare(draft: Draft): number {
    const bytes = this.bytes + draft.prepare()
    // What a smaller limit found too large may still shrink.
    if (bytes > this.bytesMax && bytes > this.bytes)
      throw new ActionError('STATE_TOO_LARGE', `State may not be larger than ${this.bytesMax} bytes`)
    return bytes
  }

  /** Makes a prepared draft the state. Cannot fail. */
  commit(draft: Draft, bytes: number): void {
    if (!draft.isDirty) return
    this.bytes = bytes
    this.text = null
    for (const key of draft.changedKeys()) this.texts.delete(key)
    draft.apply(this.dirt)
  }

  get sizeBytes(): number {
    return this.bytes
  }

  get isChanged(): boolean {
    return !this.dirt.isClean
  }

  /** The changes since the last call as a delta, and forgets them; null where the complete state must be sent. */
  takeDelta(): string | null {
    const { dirt } = this
    this.dirt = new ChangedPaths()
    return dirt.toDelta(this.value)
  }

  /** The state as JSON; written once per change. */
  toText(): string {
    if (this.text !== null) return this.text
    const members: string[] = []
    for (const key of Object.keys(this.value)) {
      let text = this.texts.get(key)
      if (text === undefined) {
        text = `${JSON.stringify(key)}:${JSON.stringify(this.value[key] as JsonValue)}`
        this.texts.set(key, text)
      }
      members.push(text)
    }
    this.text = `{${members.join(',')}}`
    return this.text
  }

  /** Releases cached texts. */
  forgetText(): void {
    this.text = null
    this.texts.clear()
  }
}
