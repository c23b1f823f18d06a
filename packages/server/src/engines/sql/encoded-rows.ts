/**
 * Rows that stay as the engine received them: a page of which only the last row is needed as an object is written as
 * JSON from their bytes.
 */
import { encodedRowsKeptBytes, encodedRowsMinBytes } from '../../limits/api.ts'

export interface EncodedRow {
  /** The columns of these names, by default all that do not start with an underscore. */
  decode(names?: readonly string[]): Record<string, unknown>
  /** Upper bound of the bytes of its JSON. */
  readonly jsonBytesMax: number
  /**
   * Writes the same row in UTF-8 as `JSON.stringify` does, with stored JSON as it is; returns where it ends.
   */
  writeJson(bytes: Buffer, at: number): number
}

const comma = 0x2c

/** Kept between calls: what is written is copied at its exact length. */
let buffer = Buffer.allocUnsafe(encodedRowsMinBytes)

function reserve(length: number, used: number): void {
  if (length <= buffer.length) return
  const larger = Buffer.allocUnsafe(Math.max(length, 2 * buffer.length))
  buffer.copy(larger, 0, 0, used)
  buffer = larger
}

/** The rows as JSON in UTF-8, separated by commas, between two texts. */
export function encodeRows(head: string, rows: readonly EncodedRow[], tail: string): Uint8Array<ArrayBuffer> {
  reserve(head.length * 3, 0)
  let at = buffer.write(head)
  for (let index = 0; index < rows.length; index++) {
    const row = rows[index] as EncodedRow
    reserve(at + 1 + row.jsonBytesMax, at)
    if (index > 0) buffer[at++] = comma
    at = row.writeJson(buffer, at)
  }
  reserve(at + tail.length * 3, at)
  at += buffer.write(tail, at)
  const encoded = Buffer.from(buffer.subarray(0, at))
  if (buffer.length > encodedRowsKeptBytes) buffer = Buffer.allocUnsafe(encodedRowsMinBytes)
  return encoded
}
