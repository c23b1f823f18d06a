/** Finds the end of a body in chunked transfer coding, which some servers that are compared respond with. */

const head = /^([0-9a-f]+)[^\r\n]*\r\n/i
/** Enough for the size of a chunk. */
const headBytesMax = 64

/** Takes the bytes of a body as they arrive. */
export class ChunkedBody {
  /** Received and not yet read. */
  #rest: Buffer = Buffer.alloc(0)
  /** Of the current chunk with the line end after it; 0 between chunks. */
  #left = 0
  readonly #data: Buffer[] = []
  bytes = 0

  constructor(private readonly keeps: boolean) {}

  /** Returns whether the body is complete. Throws for bytes that are no chunk. */
  push(received: Buffer): boolean {
    this.#rest = this.#rest.length === 0 ? received : Buffer.concat([this.#rest, received])
    for (;;) {
      if (this.#left > 0) {
        const some = Math.min(this.#left, this.#rest.length)
        const data = Math.max(0, Math.min(some, this.#left - 2))
        if (this.keeps) this.#data.push(this.#rest.subarray(0, data))
        this.bytes += data
        this.#left -= some
        this.#rest = this.#rest.subarray(some)
        if (this.#left > 0) return false
      }
      const found = head.exec(this.#rest.toString('latin1', 0, headBytesMax))
      if (found === null) {
        if (this.#rest.length >= headBytesMax) throw new Error('A chunk without a size')
        return false
      }
      const size = Number.parseInt(found[1] as string, 16)
      if (size === 0) {
        // Without trailers, which none of the servers sends.
        return this.#rest.length >= found[0].length + 2
      }
      this.#rest = this.#rest.subarray(found[0].length)
      this.#left = size + 2
    }
  }

  data(): Buffer {
    return Buffer.concat(this.#data)
  }
}
