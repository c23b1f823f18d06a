/**
 * Array parameters in PostgreSQL's binary form, which neither side quotes or parses. Texts are sent as `text[]`,
 * numbers as `float8[]`, and booleans as `boolean[]`: a statement casts its parameter to that type.
 */
import pg from 'pg'
import type { SqlScalar } from '../../sql/sql-text.ts'

/** A UTF-16 unit becomes at most this many bytes. */
export const utf8BytesPerUnit = 3

interface ElementType<T> {
  /** The object identifier of the type. */
  readonly type: number
  bytesMax(value: T): number
  /** Writes a value and returns the position after it. */
  write(value: T, target: Buffer, at: number): number
}

const text: ElementType<string> = {
  type: pg.types.builtins.TEXT,
  bytesMax: (value) => value.length * utf8BytesPerUnit,
  write: (value, target, at) => at + target.write(value, at, 'utf8'),
}

const float: ElementType<number> = {
  type: pg.types.builtins.FLOAT8,
  bytesMax: () => 8,
  // As in the text of a number, zero has no sign.
  write: (value, target, at) => target.writeDoubleBE(value + 0, at),
}

const boolean: ElementType<boolean> = {
  type: pg.types.builtins.BOOL,
  bytesMax: () => 1,
  write: (value, target, at) => target.writeUInt8(value ? 1 : 0, at),
}

/** By `typeof`. */
const elementTypes = { string: text, number: float, boolean } as const

/** Before the elements: dimensions, whether there are nulls, type; length and lower bound of the only dimension. */
export const arrayHeadBytes = 20
/** Of an element, before it. */
const lengthBytes = 4

export class ArrayParameter {
  constructor(
    private readonly element: ElementType<SqlScalar>,
    private readonly values: readonly SqlScalar[],
  ) {}

  get bytesMax(): number {
    let bytes = arrayHeadBytes + lengthBytes * this.values.length
    for (const value of this.values) if (value !== null) bytes += this.element.bytesMax(value)
    return bytes
  }

  /** Writes the array and returns the position after it. */
  write(target: Buffer, start: number): number {
    const { element, values } = this
    const head = [1, values.includes(null) ? 1 : 0, element.type, values.length, 1]
    let at = start
    for (const part of head) at = target.writeInt32BE(part, at)
    for (const value of values) {
      if (value === null) {
        at = target.writeInt32BE(-1, at)
        continue
      }
      const end = element.write(value, target, at + lengthBytes)
      target.writeInt32BE(end - at - lengthBytes, at)
      at = end
    }
    return at
  }
}

/** An array of nulls has no type; the server derives it from the statement. */
const nullsOf = (values: readonly SqlScalar[]): string => `{${values.map(() => 'NULL').join(',')}}`

/** Throws `TypeError` for elements that are no SQL values, or of different types. */
export function toArrayParameter(values: readonly SqlScalar[]): ArrayParameter | string {
  const first = values.find((value) => value !== null)
  if (first === undefined) return nullsOf(values)
  const element = elementTypes[typeof first as keyof typeof elementTypes]
  if (!element || !values.every((value) => value === null || typeof value === typeof first))
    throw new TypeError('The elements of an array are not SQL values of one type')
  return new ArrayParameter(element as ElementType<SqlScalar>, values)
}
