/** Records for an attack: valid for their table, and belonging to the victim in every field that rules compare. */
import type { Field, Table } from '../../../query/table.ts'
import { builtInFieldNames } from '../../../query/table.ts'
import type { MarkedField } from './marked-fields.ts'

/** Values of which one fits most patterns that people write. */
const candidates = [
  ...['attack', 'ATTACK', 'ABC', 'abc', 'AB', 'ab', 'A', 'a', '1', '12', '123', '1234', '12345', '2026-01-01', 'A1'],
  ...['attack@example.com', 'https://example.com', '#aabbcc', '+491511234567', 'en', 'en-US', '10:00', 'a-b', 'a_b'],
  '00000000-0000-4000-8000-000000000000',
]

export interface RecordOptions {
  /** 0: the least of each value (false, the first of an enumeration); 1: the most. */
  readonly variant: 0 | 1
  /** Distinguishes unique values. */
  readonly serial: number
  readonly marked: readonly MarkedField[]
  /** The value of a mark for the victim. */
  readonly valueOfMark: (mark: string) => string
  /** The id of a record that a field may refer to; null if there is none. */
  readonly referenceOf: (table: string) => string | null
}

function textFor({ min = 0, max = 64, pattern, unique }: Field, serial: number): string | null {
  if (pattern) return candidates.find((one) => pattern.test(one)) ?? null
  const text = unique ? `attack ${serial}` : 'attack'
  return text.padEnd(min, 'x').slice(0, max)
}

function valueFor(field: Field, { variant, serial, referenceOf }: RecordOptions): unknown {
  if (field.references !== undefined) return referenceOf(field.references)
  if (field.enum) return variant === 0 ? field.enum[0] : field.enum.at(-1)
  switch (field.type) {
    case 'boolean':
      return variant === 1
    case 'number':
      return Math.min(field.max ?? Number.MAX_SAFE_INTEGER, Math.max(field.min ?? 0, field.unique ? serial : variant))
    case 'datetime':
      return variant === 0 ? '2020-01-01T00:00:00.000Z' : '2100-01-01T00:00:00.000Z'
    case 'json':
      return []
    case 'geo':
      return [13.4, 52.5]
    default:
      return textFor(field, serial)
  }
}

/** The body of an insert. Fields of a table without a schema are those that its rules compare. */
export function sampleRecord(table: Table, options: RecordOptions): Record<string, unknown> {
  const record: Record<string, unknown> = {}
  for (const field of table.fields.values())
    if (!builtInFieldNames.has(field.name) && !field.readOnly) record[field.name] = valueFor(field, options)
  for (const { field, mark, isList } of options.marked)
    if (!table.fields.get(field)?.readOnly && table.fields.get(field)?.references === undefined) {
      const value = options.valueOfMark(mark)
      record[field] = isList && table.fields.get(field)?.type !== 'string' ? [value] : value
    }
  return record
}
