/**
 * The values of records as cells of a table of text, such as CSV: written so that no spreadsheet runs them as formulas,
 * and read by the types of the fields. Whether a value fits its field is checked where it is stored.
 */
import { type CsvCell, guardFormula, unguardFormula } from '../base/text/csv.ts'
import type { Field } from './table.ts'

/** A cell that its field cannot have. */
export class CellError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'CellError'
  }
}

const numberPattern = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i
const booleans: Readonly<Record<string, boolean>> = { true: true, false: false, '1': true, '0': false }

/** The value of a cell; null for an empty one without quotes. Undeclared fields (null) are text. Throws `CellError`. */
export function parseCell(field: Pick<Field, 'type'> | null, { text, isQuoted }: CsvCell): unknown {
  if (text === '' && !isQuoted) return null
  switch (field?.type) {
    case 'number':
      if (!numberPattern.test(text.trim())) throw new CellError('must be a number')
      return Number(text)
    case 'boolean': {
      const value = booleans[text.trim().toLowerCase()]
      if (value === undefined) throw new CellError('must be true or false')
      return value
    }
    case 'json':
    case 'geo':
      try {
        return JSON.parse(unguardFormula(text))
      } catch {
        throw new CellError('must be JSON')
      }
    default:
      return unguardFormula(text)
  }
}

/** The text of a cell; null for no value. Numbers are no formulas, also negative ones. */
export function formatCell(field: Pick<Field, 'type'> | null, value: unknown): string | null {
  if (value === undefined) return null
  if (field?.type === 'json') return value === null ? null : guardFormula(JSON.stringify(value))
  if (value === null) return null
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return guardFormula(typeof value === 'string' ? value : JSON.stringify(value))
}
