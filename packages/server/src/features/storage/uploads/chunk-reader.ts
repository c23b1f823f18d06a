/**
 * Reads a request body in chunks of bounded size. An error that ends the body is kept instead of thrown, so that the
 * bytes before it can be stored.
 */

export class ChunkReader {
  readonly #body: AsyncGenerator<Uint8Array>
  #left: Uint8Array = new Uint8Array()
  #failure: unknown = null
  #hasEnded = false

  constructor(body: AsyncGenerator<Uint8Array>) {
    this.#body = body
  }

  /** The error that ended the body, or null. */
  get failure(): unknown {
    return this.#failure
  }

  /** Waits for the next byte; false at the end of the body and after a failure. */
  async hasMore(): Promise<boolean> {
    while (this.#left.length === 0 && !this.#hasEnded) {
      try {
        const { done, value } = await this.#body.next()
        if (done) this.#hasEnded = true
        else this.#left = value
      } catch (error) {
        this.#failure = error
        this.#hasEnded = true
      }
    }
    return this.#left.length > 0
  }

  /** At most `bytesMax` of the next bytes; ends early at the end of the body and after a failure. */
  async *next(bytesMax: number): AsyncGenerator<Uint8Array> {
    for (let size = 0; size < bytesMax && (await this.hasMore()); ) {
      const chunk = this.#left.subarray(0, bytesMax - size)
      this.#left = this.#left.subarray(chunk.length)
      size += chunk.length
      yield chunk
    }
  }

  /** Stops reading the body. */
  close(): void {
    void this.#body.return(undefined).catch(() => {})
  }
}
