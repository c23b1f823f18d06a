/**
 * One versioned state of a room (shared, the server's, a player's, the metadata): its value, its size, what has changed
 * since the last delta, and its text. Owns no history; who may see it is the room's matter.
 */
import { Dirt } from './dirt.ts'
import { Draft, type Turn } from './draft.ts'
import { type JsonRecord, type JsonValue, jsonBytes } from './json.ts'
import { Refusal } from './refusal.ts'

export class LiveState {
  private dirt = new Dirt()
  private bytes: number
  private text: string | null = null
  /** Texts of members, so that a large state with a small change is not written anew as a whole. */
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

  /** Judges a draft: gives the size the state would have, or throws `INVALID_STATE` or `STATE_TOO_LARGE`. */
  prepare(draft: Draft): number {
    const bytes = this.bytes + draft.prepare()
    // What a smaller limit found too large may still shrink.
    if (bytes > this.bytesMax && bytes > this.bytes)
      throw new Refusal('STATE_TOO_LARGE', `State may not be larger than ${this.bytesMax} bytes`)
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

  /** The changes since the last call as a delta, and forgets them; null when the state has to be sent whole. */
  takeDelta(): string | null {
    const { dirt } = this
    this.dirt = new Dirt()
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

  /** Gives back the memory of texts that nobody may ask for soon. */
  forgetText(): void {
    this.text = null
    this.texts.clear()
  }
}
