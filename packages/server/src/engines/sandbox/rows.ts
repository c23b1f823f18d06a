/** The rows of an answer as JSON, written as they come and bounded all the while. What a value is, the engines know. */
import { type SandboxLimits, StatementError } from './sandbox.ts'

export interface Rows {
  /** Adds a row whose values are JSON already, in order of the columns. Throws `StatementError` beyond the bounds. */
  add(values: readonly string[]): void
  readonly count: number
  /** All of them as a JSON array. */
  text(): string
}

/** Of columns with the same name, the last is in the row. */
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

/** A floating-point number; as text where JSON has none. */
export const jsonOfDouble = (value: number): string => (Number.isFinite(value) ? JSON.stringify(value) : `"${value}"`)

/** A whole number; as text where a reader of JSON would lose digits. */
export const jsonOfInteger = (value: bigint): string =>
  value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? String(value) : `"${value}"`
