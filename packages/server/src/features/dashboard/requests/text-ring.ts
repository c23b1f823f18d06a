/**
 * The last texts that were added, as bytes in one buffer. As objects they would live until they are overwritten, and
 * the garbage collector would visit most of them in each of its runs.
 */

export class TextRing {
  readonly #count: number
  readonly #slotBytes: number
  readonly #bytes: Buffer
  /** Bytes of each slot; 0 where nothing was added, and where the text is in `#long`. */
  readonly #sizes: Int32Array
  /** Texts that do not fit into their slot. */
  readonly #long = new Map<number, string>()
  #next = 0

  /** `slotBytes` is what most texts fit in. */
  constructor(count: number, slotBytes: number) {
    this.#count = count
    this.#slotBytes = slotBytes
    this.#bytes = Buffer.allocUnsafeSlow(count * slotBytes)
    this.#sizes = new Int32Array(count)
  }

  /** Adds a text, which is not empty; overwrites the oldest if the ring is full. Returns the slot of the text. */
  add(text: string): number {
    const slot = this.#next
    this.#next = (slot + 1) % this.#count
    this.#long.delete(slot)
    if (Buffer.byteLength(text) > this.#slotBytes) {
      this.#long.set(slot, text)
      this.#sizes[slot] = 0
    } else this.#sizes[slot] = this.#bytes.write(text, slot * this.#slotBytes)
    return slot
  }

  /** Newest first. */
  *newest(): Generator<{ readonly slot: number; readonly text: string }> {
    for (let back = 1; back <= this.#count; back++) {
      const slot = (this.#next - back + this.#count) % this.#count
      const text = this.#textAt(slot)
      if (text === '') return
      yield { slot, text }
    }
  }

  #textAt(slot: number): string {
    const start = slot * this.#slotBytes
    return this.#long.get(slot) ?? this.#bytes.toString('utf8', start, start + (this.#sizes[slot] as number))
  }
}
