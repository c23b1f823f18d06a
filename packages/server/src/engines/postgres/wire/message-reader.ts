/** Splits what PostgreSQL sends into messages, and parses those that are not rows. */
import pg from 'pg'

/** Codes of the messages that matter here; others are ignored. */
export const messageCode = {
  commandComplete: 0x43,
  dataRow: 0x44,
  emptyQuery: 0x49,
  error: 0x45,
  notice: 0x4e,
  parseComplete: 0x31,
  readyForQuery: 0x5a,
  rowDescription: 0x54,
} as const

/** Code and length. */
const headBytes = 5

/** Called for each message with the position of its content. */
export type OnMessage = (code: number, bytes: Buffer, start: number, end: number) => void

export class MessageReader {
  /** The chunks of an incomplete message. */
  private chunks: Buffer[] = []
  private buffered = 0
  /** Bytes until the message is complete. */
  private needed = headBytes

  constructor(private readonly onMessage: OnMessage) {}

  read(chunk: Buffer): void {
    let bytes = chunk
    if (this.buffered > 0) {
      this.chunks.push(chunk)
      this.buffered += chunk.length
      // Joined once per message, however many chunks it has.
      if (this.buffered < this.needed) return
      bytes = Buffer.concat(this.chunks, this.buffered)
    }
    this.keep(bytes, this.split(bytes))
  }

  /** Passes on the complete messages; returns where the incomplete one begins. */
  private split(bytes: Buffer): number {
    let at = 0
    while (bytes.length - at >= headBytes) {
      const end = at + 1 + bytes.readUInt32BE(at + 1)
      if (end > bytes.length) {
        this.needed = end - at
        return at
      }
      this.onMessage(bytes[at] as number, bytes, at + headBytes, end)
      at = end
    }
    this.needed = headBytes
    return at
  }

  private keep(bytes: Buffer, from: number): void {
    this.buffered = bytes.length - from
    this.chunks = this.buffered === 0 ? [] : [bytes.subarray(from)]
  }
}

/** A column of a statement's rows. */
export interface Column {
  readonly name: string
  /** The object identifier of its type. */
  readonly type: number
}

/** Bytes of a column's description after its name. */
const columnBytes = 18

export function readColumns(bytes: Buffer, start: number): Column[] {
  let at = start + 2
  return Array.from({ length: bytes.readUInt16BE(start) }, () => {
    const nameEnd = bytes.indexOf(0, at)
    const column = { name: bytes.toString('utf8', at, nameEnd), type: bytes.readUInt32BE(nameEnd + 7) }
    at = nameEnd + 1 + columnBytes
    return column
  })
}

/** The fields of an error or a notice, by their codes. */
function readFields(bytes: Buffer, start: number): Map<string, string> {
  const fields = new Map<string, string>()
  for (let at = start; bytes[at] !== 0; ) {
    const end = bytes.indexOf(0, at)
    fields.set(String.fromCharCode(bytes[at] as number), bytes.toString('utf8', at + 1, end))
    at = end + 1
  }
  return fields
}

export const readNotice = (bytes: Buffer, start: number): string => readFields(bytes, start).get('M') ?? ''

export function readError(bytes: Buffer, start: number, end: number): pg.DatabaseError {
  const fields = readFields(bytes, start)
  const error = new pg.DatabaseError(fields.get('M') ?? '', end - start, 'error')
  error.severity = fields.get('S')
  error.code = fields.get('C')
  error.detail = fields.get('D')
  error.hint = fields.get('H')
  error.position = fields.get('P')
  error.where = fields.get('W')
  error.schema = fields.get('s')
  error.table = fields.get('t')
  error.column = fields.get('c')
  error.constraint = fields.get('n')
  error.routine = fields.get('R')
  return error
}

/** Command and number of rows of a tag: `INSERT 0 1`, `UPDATE 3`, `BEGIN`. */
export function readTag(bytes: Buffer, start: number, end: number): { command: string; changed: number } {
  const tag = bytes.toString('latin1', start, end - 1)
  const firstSpace = tag.indexOf(' ')
  if (firstSpace < 0) return { command: tag, changed: 0 }
  const count = Number(tag.slice(tag.lastIndexOf(' ') + 1))
  return { command: tag.slice(0, firstSpace), changed: Number.isNaN(count) ? 0 : count }
}
