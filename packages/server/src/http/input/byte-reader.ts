/** Reads a stream of chunks up to delimiters. Buffers at most one chunk and the length of a delimiter. */

export interface ByteReader {
  /** Yields the bytes before a delimiter as they arrive, and skips the delimiter. Throws `EndedEarly` without one. */
  until(delimiter: Buffer): AsyncGenerator<Uint8Array>
  /** The bytes before a delimiter in one buffer. Throws `TooLong` beyond `bytesMax`. */
  readUntil(delimiter: Buffer, bytesMax: number): Promise<Buffer>
  /** Exactly the next `count` bytes. Throws `EndedEarly` if there are fewer. */
  take(count: number): Promise<Buffer>
}

export class EndedEarly extends Error {}
export class TooLong extends Error {}

/** `head` precedes the chunks. */
export function createByteReader(chunks: AsyncIterator<Uint8Array>, head: Buffer): ByteReader {
  let buffered: Buffer = head

  async function readMore(): Promise<void> {
    const { done, value } = await chunks.next()
    if (done) throw new EndedEarly()
    // The buffer has at most the beginning of a delimiter or a few bytes, so copying it is cheap.
    buffered =
      buffered.length === 0
        ? Buffer.from(value.buffer, value.byteOffset, value.length)
        : Buffer.concat([buffered, value])
  }

  async function* until(delimiter: Buffer): AsyncGenerator<Uint8Array> {
    for (;;) {
      const at = buffered.indexOf(delimiter)
      // The last bytes may be the beginning of the delimiter.
      const sure = at >= 0 ? at : Math.max(0, buffered.length - delimiter.length + 1)
      const found = buffered.subarray(0, sure)
      buffered = buffered.subarray(at >= 0 ? sure + delimiter.length : sure)
      if (found.length > 0) yield found
      if (at >= 0) return
      await readMore()
    }
  }

  return {
    until,
    async readUntil(delimiter, bytesMax) {
      const found: Uint8Array[] = []
      let size = 0
      for await (const chunk of until(delimiter)) {
        size += chunk.length
        if (size > bytesMax) throw new TooLong()
        found.push(chunk)
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
