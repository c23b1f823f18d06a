/**
 * Framing of messages over a pipe between a process and its child: four bytes of length, big-endian, then the body. The
 * two programs define the bodies.
 */

const headBytes = 4

/** The frame of a body; text is encoded as UTF-8. */
export function writeFrame(body: string | Uint8Array): Uint8Array {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const frame = Buffer.allocUnsafe(headBytes + bytes.length)
  frame.writeUInt32BE(bytes.length)
  frame.set(bytes, headBytes)
  return frame
}

/**
 * Returns a function that takes received bytes; `onFrame` is called with each complete body, which may share memory
 * with the input.
 */
export function createFrameReader(onFrame: (body: Buffer) => void): (bytes: Uint8Array) => void {
  let parts: Uint8Array[] = []
  let size = 0
  return (bytes) => {
    parts.push(bytes)
    size += bytes.length
    while (size >= headBytes) {
      // Concatenated only when needed: a long message arrives in hundreds of chunks.
      if ((parts[0]?.length ?? 0) < headBytes) parts = [Buffer.concat(parts)]
      const first = parts[0] as Uint8Array
      const end = headBytes + Buffer.from(first.buffer, first.byteOffset, first.length).readUInt32BE()
      if (size < end) return
      const all = parts.length === 1 ? Buffer.from(first.buffer, first.byteOffset, first.length) : Buffer.concat(parts)
      parts = [all.subarray(end)]
      size -= end
      onFrame(all.subarray(headBytes, end))
    }
  }
}
