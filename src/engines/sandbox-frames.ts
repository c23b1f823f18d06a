/** Messages over a pipe: each is its length in four bytes, then as many bytes of UTF-8. What they say is the ends'. */

const headBytes = 4

export function writeFrame(text: string): Uint8Array {
  const body = Buffer.from(text)
  const frame = Buffer.allocUnsafe(headBytes + body.length)
  frame.writeUInt32BE(body.length)
  body.copy(frame, headBytes)
  return frame
}

/** Takes bytes as they come, and tells of each message once it is whole. */
export function createFrameReader(onFrame: (text: string) => void): (bytes: Uint8Array) => void {
  let parts: Uint8Array[] = []
  let size = 0
  return (bytes) => {
    parts.push(bytes)
    size += bytes.length
    while (size >= headBytes) {
      // Joined only where that is needed: a long message comes in hundreds of pieces.
      if ((parts[0]?.length ?? 0) < headBytes) parts = [Buffer.concat(parts)]
      const first = parts[0] as Uint8Array
      const end = headBytes + Buffer.from(first.buffer, first.byteOffset, first.length).readUInt32BE()
      if (size < end) return
      const all = parts.length === 1 ? Buffer.from(first.buffer, first.byteOffset, first.length) : Buffer.concat(parts)
      parts = [all.subarray(end)]
      size -= end
      onFrame(all.toString('utf8', headBytes, end))
    }
  }
}
