/** Decodes rows into objects by the columns of their statement. */
import pg from 'pg'
import type { Column } from './message-reader.ts'

const { builtins } = pg.types

/** Texts of the port; JSON stays text, since features parse records themselves. */
const textTypes: ReadonlySet<number> = new Set([
  builtins.TEXT,
  builtins.VARCHAR,
  builtins.JSON,
  builtins.JSONB,
  builtins.INT8,
])
export const isTextType = (type: number): boolean => textTypes.has(type)
export const isBooleanType = (type: number): boolean => type === builtins.BOOL
export const isJsonType = (type: number): boolean => type === builtins.JSON || type === builtins.JSONB

const numberTypes: ReadonlySet<number> = new Set([builtins.FLOAT8, builtins.FLOAT4, builtins.INT4, builtins.INT2])
export const isNumberType = (type: number): boolean => numberTypes.has(type)

export type Decode = (bytes: Buffer, start: number, end: number) => unknown

const decodeText: Decode = (bytes, start, end) => bytes.toString('utf8', start, end)
/** Decimals of so many digits survive the conversion to a number and back. */
export const exactDigits = 15

/** Most numbers are a few digits, which cost less than a text. */
export const decodeNumber: Decode = (bytes, start, end) => {
  let value = 0
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] as number) - 0x30
    if (digit < 0 || digit > 9 || end - start > exactDigits) return Number(bytes.toString('latin1', start, end))
    value = value * 10 + digit
  }
  return value
}

export const decodeBoolean: Decode = (bytes, start) => bytes[start] === 0x74

export function decoderOf(type: number): Decode {
  if (isTextType(type)) return decodeText
  if (isNumberType(type)) return decodeNumber
  if (isBooleanType(type)) return decodeBoolean
  const parse = pg.types.getTypeParser(type, 'text') as (text: string) => unknown
  return (bytes, start, end) => parse(bytes.toString('utf8', start, end))
}

/** Decodes the content of a DataRow message: the columns of these names, or all. */
export type DecodeRow = (bytes: Buffer, start: number, only?: readonly string[]) => Record<string, unknown>

export function createRowDecoder(columns: readonly Column[]): DecodeRow {
  const names = columns.map(({ name }) => name)
  const decoders = columns.map(({ type }) => decoderOf(type))
  return (bytes, start, only) => {
    const row: Record<string, unknown> = {}
    let at = start + 2
    for (let index = 0; index < names.length; index++) {
      const length = bytes.readInt32BE(at)
      at += 4
      const name = names[index] as string
      if (!only || only.includes(name))
        row[name] = length < 0 ? null : (decoders[index] as Decode)(bytes, at, at + length)
      if (length > 0) at += length
    }
    return row
  }
}
