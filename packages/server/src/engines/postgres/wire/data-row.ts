/** A DataRow message that is decoded on demand, or written as JSON from its bytes without a string per value. */
import type { EncodedRow } from '../../sql/encoded-rows.ts'
import type { SqlRow } from '../../sql/sql.ts'
import type { Column } from './message-reader.ts'
import { createRowDecoder, type Decode, type DecodeRow, decoderOf, isJsonType, isTextType } from './row-decoder.ts'

/** Writes a value as JSON; returns where it ends. */
type WriteValue = (bytes: Buffer, start: number, end: number, target: Uint8Array, at: number) => number

const quote = 0x22
const backslash = 0x5c
const firstPrintable = 0x20
/** A control character is escaped as `\u0001`. */
const escapedBytesMax = 6

const copy: WriteValue = (bytes, start, end, target, at) => {
  let to = at
  for (let from = start; from < end; from++) target[to++] = bytes[from] as number
  return to
}

/** By byte, up to the last one that is escaped. */
const escapes = Array.from({ length: backslash + 1 }, (_, code) =>
  Buffer.from(JSON.stringify(String.fromCharCode(code)).slice(1, -1)),
)

/** Bytes from 0x80 on are parts of characters that JSON does not escape. */
const writeText: WriteValue = (bytes, start, end, target, at) => {
  let to = at
  target[to++] = quote
  for (let from = start; from < end; from++) {
    const byte = bytes[from] as number
    if (byte >= firstPrintable && byte !== quote && byte !== backslash) target[to++] = byte
    else {
      const escaped = escapes[byte] as Buffer
      to = copy(escaped, 0, escaped.length, target, to)
    }
  }
  target[to++] = quote
  return to
}

/** Integers of so many digits are the same text in JSON. */
const exactDigits = 15

function isDigits(bytes: Buffer, start: number, end: number): boolean {
  if (end - start > exactDigits) return false
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number
    if (byte < 0x30 || byte > 0x39) return false
  }
  return true
}

/** Numbers and booleans. */
const writeOther = (type: number): WriteValue => {
  const decode = decoderOf(type)
  return (bytes, start, end, target, at) => {
    if (isDigits(bytes, start, end)) return copy(bytes, start, end, target, at)
    const text = JSON.stringify(decode(bytes, start, end))
    for (let index = 0; index < text.length; index++) target[at + index] = text.charCodeAt(index)
    return at + text.length
  }
}

const writerOf = (type: number): WriteValue => {
  if (isJsonType(type)) return copy
  return isTextType(type) ? writeText : writeOther(type)
}

/** What the rows of a statement have in common. */
export interface RowLayout {
  readonly decode: DecodeRow
  /** By column. */
  readonly decoders: readonly Decode[]
  /** Names of columns that are neither part of the decoded row nor of its JSON. */
  readonly others: readonly string[]
  /** By column: `"name":` and how its value is written; null for a column that is not part of the JSON. */
  readonly members: readonly (Readonly<{ key: Buffer; write: WriteValue }> | null)[]
  /** Upper bound of the JSON beside the values. */
  readonly frameBytes: number
}

const isOther = (name: string): boolean => name.startsWith('_')

export function createRowLayout(columns: readonly Column[]): RowLayout {
  let frameBytes = 2
  const members = columns.map(({ name, type }) => {
    const key = Buffer.from(`${JSON.stringify(name)}:`)
    frameBytes += key.length + nullText.length + 1
    return isOther(name) ? null : { key, write: writerOf(type) }
  })
  const decoders = columns.map(({ type }) => decoderOf(type))
  const others = columns.map(({ name }) => name).filter(isOther)
  return { decode: createRowDecoder(columns), decoders, others, members, frameBytes }
}

const nullText = Buffer.from('null')
const openBrace = 0x7b
const closeBrace = 0x7d
const comma = 0x2c

export class DataRow implements EncodedRow {
  constructor(
    private readonly layout: RowLayout,
    private readonly bytes: Buffer,
    private readonly start: number,
    private readonly end: number,
  ) {}

  decode(): SqlRow {
    const row = this.layout.decode(this.bytes, this.start)
    for (const name of this.layout.others) delete row[name]
    return row
  }

  /** The value of the column at an index. */
  column(index: number): unknown {
    let from = this.start + 2
    for (let before = 0; before < index; before++) from += 4 + Math.max(0, this.bytes.readInt32BE(from))
    const length = this.bytes.readInt32BE(from)
    const decode = this.layout.decoders[index]
    return length < 0 || !decode ? null : decode(this.bytes, from + 4, from + 4 + length)
  }

  get jsonBytesMax(): number {
    return this.layout.frameBytes + (this.end - this.start) * escapedBytesMax
  }

  writeJson(target: Uint8Array, at: number): number {
    const { bytes, layout } = this
    let to = at
    target[to++] = openBrace
    let from = this.start + 2
    for (const member of layout.members) {
      const length = bytes.readInt32BE(from)
      from += 4
      if (member !== null) {
        if (to > at + 1) target[to++] = comma
        to = copy(member.key, 0, member.key.length, target, to)
        to =
          length < 0
            ? copy(nullText, 0, nullText.length, target, to)
            : member.write(bytes, from, from + length, target, to)
      }
      if (length > 0) from += length
    }
    target[to++] = closeBrace
    return to
  }
}
