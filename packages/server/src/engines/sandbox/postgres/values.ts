/** Serializes PostgreSQL values, which arrive as text, as JSON by type. */
import pg from 'pg'
import { jsonOfDouble, jsonOfInteger } from '../rows.ts'

const {
  BOOL,
  BYTEA,
  FLOAT4,
  FLOAT8,
  INT2,
  INT4,
  INT8,
  JSON: JSON_TEXT,
  JSONB,
  NUMERIC,
  OID,
  TEXT,
  TIMESTAMP,
  TIMESTAMPTZ,
} = pg.types.builtins

type ToJson = (text: string) => string

const asText: ToJson = (text) => JSON.stringify(text)

/** Digits that a double represents exactly; longer numbers stay text. */
const exactDigits = 15

const ofNumeric: ToJson = (text) => {
  const digits = text.replace(/[-.]/g, '').replace(/^0+/, '')
  return /^-?[\d.]+$/.test(text) && digits.length <= exactDigits ? jsonOfDouble(Number(text)) : asText(text)
}

/** `2026-01-31 12:00:00.123456+00`; without a zone, UTC is assumed. Years outside the range of `Date` stay text. */
const ofTimestamp: ToJson = (text) => {
  const parts = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,3})?)\d*(?:\+00)?$/.exec(text)
  return parts ? `"${new Date(`${parts[1]}T${parts[2]}Z`).toISOString()}"` : asText(text)
}

const readers: ReadonlyMap<number, ToJson> = new Map<number, ToJson>([
  [BOOL, (text) => (text === 't' ? 'true' : 'false')],
  [BYTEA, (text) => `"${Buffer.from(text.slice(2), 'hex').toString('base64')}"`],
  [FLOAT4, (text) => jsonOfDouble(Number(text))],
  [FLOAT8, (text) => jsonOfDouble(Number(text))],
  [INT2, (text) => text],
  [INT4, (text) => text],
  [OID, (text) => text],
  [INT8, (text) => jsonOfInteger(BigInt(text))],
  [NUMERIC, ofNumeric],
  [JSON_TEXT, (text) => text],
  [JSONB, (text) => text],
  [TIMESTAMP, ofTimestamp],
  [TIMESTAMPTZ, ofTimestamp],
])

/**
 * Built-in array types whose elements are serialized as text: dates, times and intervals, characters and names,
 * addresses, bits, money, geometry, ranges, XML and searches. Not boxes, whose separator is a semicolon.
 */
const textArrays = [
  143, 629, 651, 719, 775, 791, 1002, 1003, 1009, 1014, 1015, 1017, 1018, 1019, 1027, 1040, 1041, 1182, 1183, 1187,
  1270, 1561, 1563, 2951, 3643, 3645, 3905, 3907, 3909, 3911, 3913, 3927, 4073,
] as const

/** Element type by array type. */
const elementTypes: ReadonlyMap<number, number> = new Map([
  ...textArrays.map((id) => [id, TEXT] as const),
  [1000, BOOL],
  [1001, BYTEA],
  [1005, INT2],
  [1007, INT4],
  [1016, INT8],
  [1021, FLOAT4],
  [1022, FLOAT8],
  [1028, OID],
  [1115, TIMESTAMP],
  [1185, TIMESTAMPTZ],
  [1231, NUMERIC],
  [199, JSON_TEXT],
  [3807, JSONB],
])

type Nested = string | null | readonly Nested[]

/** Returns the serializer of a column's values; unknown types stay PostgreSQL's text. */
export function createReader(typeId: number): (value: string | null) => string {
  const element = elementTypes.get(typeId)
  const read = readers.get(element ?? typeId) ?? asText
  const ofNested = (value: Nested): string =>
    value === null ? 'null' : typeof value === 'string' ? read(value) : `[${value.map(ofNested).join(',')}]`
  if (element === undefined) return (value) => (value === null ? 'null' : read(value))
  return (value) => ofNested(value === null ? null : parseArray(value))
}

/** `{1,NULL,"a,b"}`, optionally with bounds: `[0:1]={1,2}`. */
function parseArray(text: string): Nested {
  const token = /"([^"\\]*(?:\\[\s\S][^"\\]*)*)"|([{},])|([^{},"]+)/g
  const stack: Nested[][] = []
  let root: Nested[] = []
  token.lastIndex = text.indexOf('{')
  for (let found = token.exec(text); found; found = token.exec(text)) {
    const [, quoted, mark, bare] = found
    const inner = stack.at(-1)
    if (mark === '{') {
      const opened: Nested[] = []
      inner?.push(opened)
      stack.push(opened)
    } else if (mark === '}') root = stack.pop() ?? root
    else if (quoted !== undefined) inner?.push(quoted.replace(/\\([\s\S])/g, '$1'))
    else if (bare !== undefined) inner?.push(bare === 'NULL' ? null : bare)
  }
  return root
}
