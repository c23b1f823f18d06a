/** The rows of a reply as JSON, serialized as they arrive and bounded throughout. The engines serialize the values. */
import { type SandboxLimits, StatementError } from './sandbox.ts'

export interface Rows {
  /** Adds a row of serialized values, in column order. Throws `StatementError` beyond the bounds. */
  add(values: readonly string[]): void
  readonly count: number
  /** All rows as a JSON array. */
  text(): string
}

/** If several columns have the same name, the last one is in the row. */
export function createRows(
  columns: readonly string[],
  { rowsMax, answerBytesMax }: Pick<SandboxLimits, 'rowsMax' | 'answerBytesMax'>,
): Rows {
  const last = new Map(columns.map((name, at) => [name, at]))
  const members = [...last].map(([name, at]) => ({ at, head: `${JSON.stringify(name)}:` }))
  const rows: string[] = []
  let bytes = 0
  return {
    add(values) {
      if (rows.length >= rowsMax)
        throw new StatementError('query', `The statement gives more than ${rowsMax} rows; add a LIMIT`)
      const row = `{${members.map(({ at, head }) => head + values[at]).join(',')}}`
      bytes += Buffer.byteLength(row) + 1
      if (bytes > answerBytesMax)
        throw new StatementError(
          'query',
          `The rows are more than ${answerBytesMax} bytes of JSON (limits.responseBytes); select fewer or add a LIMIT`,
        )
      rows.push(row)
    },
    get count() {
      return rows.length
    },
    text: () => `[${rows.join(',')}]`,
  }
}

/** A floating-point number; as text if JSON cannot represent it. */
export const jsonOfDouble = (value: number): string => (Number.isFinite(value) ? JSON.stringify(value) : `"${value}"`)

/** An integer; as text if a double would lose digits. */
export const jsonOfInteger = (value: bigint): string =>
  value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? String(value) : `"${value}"`
