/**
 * Bytes that come in pieces of any size, read by the marks between them. Holds a piece and a mark's length at most.
 */

export interface ByteReader {
  /** Gives what comes before the mark, as it comes, and passes the mark. Throws `EndedEarly` where there is no mark. */
  until(mark: Buffer): AsyncGenerator<Uint8Array>
  /** The same in one. Throws `TooLong` beyond `bytesMax`. */
  readUntil(mark: Buffer, bytesMax: number): Promise<Buffer>
  /** The next bytes, exactly so many. Throws `EndedEarly` where there are fewer. */
  take(count: number): Promise<Buffer>
}

export class EndedEarly extends Error {}
export class TooLong extends Error {}

/** `head` comes before the pieces. */
export function createByteReader(pieces: AsyncIterator<Uint8Array>, head: Buffer): ByteReader {
  let buffered: Buffer = head

  async function readMore(): Promise<void> {
    const { done, value } = await pieces.next()
    if (done) throw new EndedEarly()
    // What is held is what may be the beginning of a mark, or of a few bytes asked for: a copy of it is cheap.
    buffered =
      buffered.length === 0
        ? Buffer.from(value.buffer, value.byteOffset, value.length)
        : Buffer.concat([buffered, value])
  }

  async function* until(mark: Buffer): AsyncGenerator<Uint8Array> {
    for (;;) {
      const at = buffered.indexOf(mark)
      // The last bytes may be the beginning of the mark, whose end is still to come.
      const sure = at >= 0 ? at : Math.max(0, buffered.length - mark.length + 1)
      const found = buffered.subarray(0, sure)
      buffered = buffered.subarray(at >= 0 ? sure + mark.length : sure)
      if (found.length > 0) yield found
      if (at >= 0) return
      await readMore()
    }
  }

  return {
    until,
    async readUntil(mark, bytesMax) {
      const found: Uint8Array[] = []
      let size = 0
      for await (const piece of until(mark)) {
        size += piece.length
        if (size > bytesMax) throw new TooLong()
        found.push(piece)
      }
      return Buffer.concat(found, size)
    },
    async take(count) {
      while (buffered.length < count) await readMore()
      const taken = buffered.subarray(0, count)
      buffered = buffered.subarray(count)
      return taken
    },
  }
}
