/** A DataRow message that is decoded on demand, or written as JSON from its bytes without a string per value. */
import type { EncodedRow } from '../../sql/encoded-rows.ts'
import type { SqlRow } from '../../sql/sql.ts'
import type { Column } from './message-reader.ts'
import {
  createRowDecoder,
  type Decode,
  type DecodeRow,
  decodeBoolean,
  decodeNumber,
  decoderOf,
  exactDigits,
  isBooleanType,
  isJsonType,
  isNumberType,
  isTextType,
} from './row-decoder.ts'

/** Writes a value as JSON; returns where it ends. */
type WriteValue = (bytes: Buffer, start: number, end: number, target: Buffer, at: number) => number

const quote = 0x22
const backslash = 0x5c
const firstPrintable = 0x20
const minus = 0x2d
const point = 0x2e
const zero = 0x30
const nine = 0x39
/** A control character is escaped as `\u0001`. */
const escapedBytesMax = 6

/** Four bytes at a time: for most values, a call of the runtime's own copy would take longer. */
const copy: WriteValue = (bytes, start, end, target, at) => {
  let from = start
  let to = at
  for (; end - from >= 4; from += 4, to += 4) target.writeInt32LE(bytes.readInt32LE(from), to)
  while (from < end) target[to++] = bytes[from++] as number
  return to
}

/** By byte, up to the last one that is escaped. */
const escapes = Array.from({ length: backslash + 1 }, (_, code) =>
  Buffer.from(JSON.stringify(String.fromCharCode(code)).slice(1, -1)),
)

/** A word with the byte in each of its four places. */
const broadcast = (byte: number): number => byte * 0x01010101
const highBits = 0x80808080

/** Non-zero if a byte of `word` is less than `byte`, which is at most 0x80; bytes from 0x80 on are greater. */
const bytesBelow = (word: number, byte: number): number => (word - broadcast(byte)) & ~word & highBits

/** Whether a byte of `word` is escaped in JSON. Bytes from 0x80 on, parts of other characters, are not. */
const hasEscape = (word: number): boolean =>
  (bytesBelow(word, firstPrintable) |
    bytesBelow(word ^ broadcast(quote), 1) |
    bytesBelow(word ^ broadcast(backslash), 1)) !==
  0

/** Four bytes at a time (SWAR) where none of them is escaped. */
const writeText: WriteValue = (bytes, start, end, target, at) => {
  let from = start
  let to = at
  target[to++] = quote
  while (from < end) {
    if (end - from >= 4) {
      const word = bytes.readInt32LE(from)
      if (!hasEscape(word)) {
        target.writeInt32LE(word, to)
        from += 4
        to += 4
        continue
      }
    }
    const byte = bytes[from++] as number
    if (byte >= firstPrintable && byte !== quote && byte !== backslash) target[to++] = byte
    else {
      const escaped = escapes[byte] as Buffer
      to = copy(escaped, 0, escaped.length, target, to)
    }
  }
  target[to++] = quote
  return to
}

/**
 * Whether JavaScript certainly writes a number as the server has: it has no exponent, at most `exactDigits` characters,
 * and is not -0.
 */
function isPlainDecimal(bytes: Buffer, start: number, end: number): boolean {
  if (end - start > exactDigits) return false
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number
    if ((byte < zero || byte > nine) && byte !== point && (byte !== minus || at > start)) return false
  }
  return bytes[start] !== minus || end - start !== 2 || bytes[start + 1] !== zero
}

const trueText = Buffer.from('true')
const falseText = Buffer.from('false')
const nullText = Buffer.from('null')

const writeBoolean: WriteValue = (bytes, start, end, target, at) => {
  const text = decodeBoolean(bytes, start, end) ? trueText : falseText
  return copy(text, 0, text.length, target, at)
}

const writeDecoded =
  (decode: Decode): WriteValue =>
  (bytes, start, end, target, at) =>
    at + target.write(JSON.stringify(decode(bytes, start, end)), at)

const writeDecodedNumber = writeDecoded(decodeNumber)

/** A number is copied where JavaScript writes the same text. */
const writeNumber: WriteValue = (bytes, start, end, target, at) =>
  (isPlainDecimal(bytes, start, end) ? copy : writeDecodedNumber)(bytes, start, end, target, at)

function writerOf(type: number): WriteValue {
  if (isJsonType(type)) return copy
  if (isTextType(type)) return writeText
  if (isBooleanType(type)) return writeBoolean
  return isNumberType(type) ? writeNumber : writeDecoded(decoderOf(type))
}

/** What the rows of a statement have in common. */
export interface RowLayout {
  readonly decode: DecodeRow
  /** By column. */
  readonly decoders: readonly Decode[]
  /** Names of columns that are neither part of the decoded row nor of its JSON. */
  readonly others: readonly string[]
  /** By column: `{"name":` or `,"name":`, and how its value is written; null for one that is not part of the JSON. */
  readonly members: readonly (Readonly<{ key: Buffer; write: WriteValue }> | null)[]
  /** Upper bound of the JSON beside the values. */
  readonly frameBytes: number
}

const isOther = (name: string): boolean => name.startsWith('_')

export function createRowLayout(columns: readonly Column[]): RowLayout {
  let frameBytes = 2
  let before = '{'
  const members = columns.map(({ name, type }) => {
    if (isOther(name)) return null
    const key = Buffer.from(`${before}${JSON.stringify(name)}:`)
    before = ','
    frameBytes += key.length + nullText.length
    return { key, write: writerOf(type) }
  })
  const decoders = columns.map(({ type }) => decoderOf(type))
  const others = columns.map(({ name }) => name).filter(isOther)
  return { decode: createRowDecoder(columns), decoders, others, members, frameBytes }
}

const openBrace = 0x7b
const closeBrace = 0x7d

export class DataRow implements EncodedRow {
  constructor(
    private readonly layout: RowLayout,
    private readonly bytes: Buffer,
    private readonly start: number,
    private readonly end: number,
  ) {}

  decode(names?: readonly string[]): SqlRow {
    const row = this.layout.decode(this.bytes, this.start, names)
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

  writeJson(target: Buffer, at: number): number {
    const { bytes, layout } = this
    let to = at
    let from = this.start + 2
    for (const member of layout.members) {
      const length = bytes.readInt32BE(from)
      from += 4
      if (member !== null) {
        to = copy(member.key, 0, member.key.length, target, to)
        to =
          length < 0
            ? copy(nullText, 0, nullText.length, target, to)
            : member.write(bytes, from, from + length, target, to)
      }
      if (length > 0) from += length
    }
    if (to === at) target[to++] = openBrace
    target[to++] = closeBrace
    return to
  }
}
