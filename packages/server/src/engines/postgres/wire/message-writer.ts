/**
 * Messages to PostgreSQL: the extended protocol's Parse, Describe, Bind, Execute and Sync, collected in one buffer so
 * that the statements of a tick leave in one write.
 */
import { wireBufferKeptBytes, wireBufferMinBytes } from '../../../limits/postgres.ts'
import { ArrayParameter, toArrayParameter, utf8BytesPerUnit } from './array-parameter.ts'

const code = { parse: 0x50, describe: 0x44, statement: 0x53, bind: 0x42, execute: 0x45, sync: 0x53 } as const

/** A parameter as it is sent: text, or in binary form. */
export type Parameter = string | Uint8Array | ArrayParameter | null

const isBinary = (value: Parameter): boolean => typeof value === 'object' && value !== null

/** Throws `TypeError` for what is no SQL value. */
export function toParameter(value: unknown): Parameter {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return null
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value instanceof Uint8Array) return value
  if (Array.isArray(value)) return toArrayParameter(value)
  throw new TypeError('A parameter is not an SQL value')
}

export class MessageWriter {
  private buffer = Buffer.allocUnsafe(wireBufferMinBytes)
  private at = 0

  /** Prepares a statement under a name, and asks for the columns of its rows. */
  prepare(name: string, text: string): void {
    const parse = this.begin(code.parse)
    this.cstring(name)
    this.cstring(text)
    this.int16(0)
    this.end(parse)
    const describe = this.begin(code.describe)
    this.byte(code.statement)
    this.cstring(name)
    this.end(describe)
  }

  /** Runs a prepared statement. */
  execute(name: string, parameters: readonly Parameter[]): void {
    const bind = this.begin(code.bind)
    this.byte(0)
    this.cstring(name)
    const hasBinary = parameters.some(isBinary)
    this.int16(hasBinary ? parameters.length : 0)
    if (hasBinary) for (const value of parameters) this.int16(isBinary(value) ? 1 : 0)
    this.int16(parameters.length)
    for (const value of parameters) this.parameter(value)
    this.int16(0)
    this.end(bind)
    const execute = this.begin(code.execute)
    this.byte(0)
    this.int32(0)
    this.end(execute)
  }

  /** Ends a segment: what follows a failed statement in it is skipped. */
  sync(): void {
    this.end(this.begin(code.sync))
  }

  /** What was written since the last call. */
  take(): Buffer {
    const written = this.buffer.subarray(0, this.at)
    this.at = 0
    if (this.buffer.length <= wireBufferKeptBytes) return Buffer.from(written)
    this.buffer = Buffer.allocUnsafe(wireBufferMinBytes)
    return written
  }

  private reserve(bytes: number): void {
    const needed = this.at + bytes
    if (needed <= this.buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.buffer.length))
    this.buffer.copy(larger, 0, 0, this.at)
    this.buffer = larger
  }

  private begin(type: number): number {
    this.reserve(5)
    this.buffer[this.at] = type
    const length = this.at + 1
    this.at += 5
    return length
  }

  /** Fills in the length of a message, which includes itself. */
  private end(length: number): void {
    this.buffer.writeInt32BE(this.at - length, length)
  }

  private byte(value: number): void {
    this.reserve(1)
    this.buffer[this.at++] = value
  }

  private int16(value: number): void {
    this.reserve(2)
    this.at = this.buffer.writeUInt16BE(value, this.at)
  }

  private int32(value: number): void {
    this.reserve(4)
    this.at = this.buffer.writeInt32BE(value, this.at)
  }

  private text(value: string): void {
    this.reserve(utf8BytesPerUnit * value.length)
    this.at += this.buffer.write(value, this.at, 'utf8')
  }

  private cstring(value: string): void {
    this.text(value)
    this.byte(0)
  }

  private parameter(value: Parameter): void {
    if (value === null) {
      this.int32(-1)
      return
    }
    const length = this.at
    this.int32(0)
    if (typeof value === 'string') this.text(value)
    else if (value instanceof ArrayParameter) {
      this.reserve(value.bytesMax)
      this.at = value.write(this.buffer, this.at)
    } else {
      this.reserve(value.length)
      this.buffer.set(value, this.at)
      this.at += value.length
    }
    this.buffer.writeInt32BE(this.at - length - 4, length)
  }
}
