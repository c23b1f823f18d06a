/**
 * CSV after RFC 4180, read in chunks and written row by row. An unquoted empty cell is no value, a quoted one is empty
 * text. What cells mean is decided by `query/cells`.
 */

export interface CsvCell {
  readonly text: string
  readonly isQuoted: boolean
}

export interface CsvRow {
  /** The line on which the row begins, from 1. */
  readonly line: number
  readonly cells: readonly CsvCell[]
}

/** Text that is not CSV. */
export class CsvError extends Error {
  constructor(
    readonly line: number,
    message: string,
  ) {
    super(message)
    this.name = 'CsvError'
  }
}

type State = 'start' | 'plain' | 'quoted' | 'closed'

/** Reads rows from text that arrives in chunks; keeps no more than one row. Blank lines are skipped. */
export class CsvReader {
  readonly #delimiter: string
  readonly #rowCharsMax: number
  #state: State = 'start'
  #cells: CsvCell[] = []
  #text = ''
  #chars = 0
  #line = 1
  #rowLine = 1
  #wasReturn = false

  constructor({ delimiter = ',', rowCharsMax }: { readonly delimiter?: string; readonly rowCharsMax: number }) {
    this.#delimiter = delimiter
    this.#rowCharsMax = rowCharsMax
  }

  /** The rows that the text completes. Throws `CsvError`. */
  *read(chunk: string): Generator<CsvRow> {
    for (const char of chunk) {
      const isLineFeedOfReturn = this.#wasReturn && char === '\n'
      this.#wasReturn = char === '\r'
      const endsLine = (char === '\n' || char === '\r') && !isLineFeedOfReturn
      if (isLineFeedOfReturn && this.#state !== 'quoted') continue
      if (++this.#chars > this.#rowCharsMax) throw this.#error(`a row has more than ${this.#rowCharsMax} characters`)
      const isRowEnd = this.#take(char, endsLine)
      if (endsLine) this.#line++
      if (!isRowEnd) continue
      const row = this.#finishRow()
      if (row) yield row
    }
  }

  /** The last row, if it does not end with a line break. Throws `CsvError`. */
  end(): CsvRow | null {
    if (this.#state === 'quoted') throw this.#error('a quoted cell does not end')
    if (this.#chars === 0) return null
    this.#endCell()
    return this.#finishRow()
  }

  /** Returns whether the row ends. */
  #take(char: string, endsLine: boolean): boolean {
    if (this.#state === 'quoted') {
      if (char === '"') this.#state = 'closed'
      else this.#text += char
      return false
    }
    if (char === this.#delimiter || endsLine) {
      this.#endCell()
      return endsLine
    }
    if (this.#state === 'closed') {
      if (char !== '"') throw this.#error('text follows the end of a quoted cell')
      this.#text += char
      this.#state = 'quoted'
      return false
    }
    if (char !== '"') {
      this.#text += char
      this.#state = 'plain'
    } else if (this.#state === 'start') this.#state = 'quoted'
    else throw this.#error('a quote is within a cell that is not quoted')
    return false
  }

  #endCell(): void {
    this.#cells.push({ text: this.#text, isQuoted: this.#state === 'closed' })
    this.#text = ''
    this.#state = 'start'
  }

  #finishRow(): CsvRow | null {
    const row = { line: this.#rowLine, cells: this.#cells }
    const [first] = row.cells
    const isBlank = row.cells.length === 1 && first?.text === '' && !first.isQuoted
    this.#cells = []
    this.#chars = 0
    this.#rowLine = this.#line
    return isBlank ? null : row
  }

  #error(message: string): CsvError {
    return new CsvError(this.#rowLine, message)
  }
}

const needsQuotes = /[",;\t\r\n]|^\s|\s$|^$/

/** One row without its line break; null is no value. */
export const formatCsvRow = (cells: readonly (string | null)[]): string =>
  cells
    .map((text) => (text === null ? '' : needsQuotes.test(text) ? `"${text.replaceAll('"', '""')}"` : text))
    .join(',')

/** What a spreadsheet runs as a formula, also behind the apostrophe that marks text. */
const formula = /^'*[=+\-@\t\r]/
const marked = /^'+[=+\-@\t\r]/

/** Text that no spreadsheet runs as a formula: an apostrophe before it says that it is text. */
export const guardFormula = (text: string): string => (formula.test(text) ? `'${text}` : text)

/** The text that `guardFormula` was given. */
export const unguardFormula = (text: string): string => (marked.test(text) ? text.slice(1) : text)
