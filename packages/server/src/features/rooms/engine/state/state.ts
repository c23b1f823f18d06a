/**
 * One versioned state of a room (shared, server, metadata, or a player's): its value, its size, the changes since the
 * last delta, and its JSON text.
 */
import { ActionError } from '../handlers/action-error.ts'
import { ChangedPaths } from './changed-paths.ts'
import { Draft, type DraftOwner } from './draft.ts'
import { type JsonRecord, type JsonValue, jsonBytes } from './json.ts'

export class LiveState {
  private changes = new ChangedPaths()
  private bytes: number
  private text: string | null = null
  /** JSON of each member, so that a small change does not serialize a large state again. */
  private readonly texts = new Map<string, string>()

  constructor(
    readonly value: JsonRecord,
    private readonly bytesMax: number,
    public version = 0,
  ) {
    this.bytes = jsonBytes(value)
  }

  draft(owner: DraftOwner): Draft {
    return new Draft(owner, this.value, this.bytesMax)
  }

  /** Validates a draft: returns the size the state would have, or throws `INVALID_STATE` or `STATE_TOO_LARGE`. */
  prepare(draft: Draft): number {
    const bytes = this.bytes + draft.prepare()
    // A state that exceeds a lowered limit may still shrink.
    if (bytes > this.bytesMax && bytes > this.bytes)
      throw new ActionError('STATE_TOO_LARGE', `A state must be at most ${this.bytesMax} bytes of JSON`)
    return bytes
  }

  /** Applies a prepared draft; must not throw. */
  commit(draft: Draft, bytes: number): void {
    if (!draft.isDirty) return
    this.bytes = bytes
    this.text = null
    if (this.texts.size > 0) for (const key of draft.changedKeys()) this.texts.delete(key)
    draft.apply(this.changes)
  }

  get sizeBytes(): number {
    return this.bytes
  }

  get isChanged(): boolean {
    return !this.changes.isClean
  }

  /** Returns the changes since the last call as a delta; null if the complete state must be sent. */
  takeDelta(): string | null {
    const { changes } = this
    this.changes = new ChangedPaths()
    return changes.toDelta(this.value)
  }

  /** The state as JSON, cached until it changes. */
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
