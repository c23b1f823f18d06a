/** JSON values from text that arrives in chunks: one per line (NDJSON), or the items of one array. */

export interface JsonItem {
  /** The line on which the value begins, from 1. */
  readonly line: number
  readonly text: string
}

/** Text that has no such values. */
export class JsonItemsError extends Error {
  constructor(
    readonly line: number,
    message: string,
  ) {
    super(message)
    this.name = 'JsonItemsError'
  }
}

export interface JsonItemsReader {
  /** The texts of the values that the chunk completes; they are not checked to be JSON. Throws `JsonItemsError`. */
  read(chunk: string): Generator<JsonItem>
  /** The last value, if nothing follows it. Throws `JsonItemsError`. */
  end(): JsonItem | null
}

const tooLong = (line: number, charsMax: number) =>
  new JsonItemsError(line, `a value has more than ${charsMax} characters`)

/** One value per line. Blank lines are skipped. */
export class NdjsonReader implements JsonItemsReader {
  readonly #charsMax: number
  #rest = ''
  #line = 1

  constructor(charsMax: number) {
    this.#charsMax = charsMax
  }

  *read(chunk: string): Generator<JsonItem> {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const text of lines) {
      const item = this.#item(text)
      this.#line++
      if (item) yield item
    }
    if (this.#rest.length > this.#charsMax) throw tooLong(this.#line, this.#charsMax)
  }

  end(): JsonItem | null {
    return this.#item(this.#rest)
  }

  #item(text: string): JsonItem | null {
    if (text.length > this.#charsMax) throw tooLong(this.#line, this.#charsMax)
    return text.trim() === '' ? null : { line: this.#line, text }
  }
}

/** The items of an array. Finds where each one ends, by its brackets outside of strings. */
export class JsonArrayReader implements JsonItemsReader {
  readonly #charsMax: number
  #state: 'before' | 'within' | 'after' = 'before'
  #text = ''
  #line = 1
  #itemLine = 1
  #depth = 0
  #isString = false
  #isEscaped = false
  /** Whether a comma has announced another item. */
  #isExpected = false

  constructor(charsMax: number) {
    this.#charsMax = charsMax
  }

  *read(chunk: string): Generator<JsonItem> {
    for (const char of chunk) {
      if (this.#state === 'within') {
        const item = this.#takeWithin(char)
        if (item) yield item
      } else if (!/\s/.test(char)) {
        if (this.#state === 'after' || char !== '[')
          throw new JsonItemsError(this.#line, 'the file must contain one JSON array')
        this.#state = 'within'
      }
      if (char === '\n') this.#line++
    }
  }

  end(): JsonItem | null {
    if (this.#state === 'after') return null
    throw new JsonItemsError(this.#line, 'the JSON array does not end')
  }

  #takeWithin(char: string): JsonItem | null {
    if (!this.#isString && this.#depth === 0 && (char === ',' || char === ']')) return this.#endItem(char)
    if (this.#text === '') {
      if (/\s/.test(char)) return null
      this.#itemLine = this.#line
    }
    this.#text += char
    if (this.#text.length > this.#charsMax) throw tooLong(this.#itemLine, this.#charsMax)
    if (this.#isString) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (char === '\\') this.#isEscaped = true
      else if (char === '"') this.#isString = false
    } else if (char === '"') this.#isString = true
    else if (char === '{' || char === '[') this.#depth++
    else if (char === '}' || char === ']') this.#depth--
    return null
  }

  #endItem(char: ',' | ']'): JsonItem | null {
    if (this.#text === '' && (char === ',' || this.#isExpected))
      throw new JsonItemsError(this.#line, 'an item of the JSON array is missing')
    const item = this.#text === '' ? null : { line: this.#itemLine, text: this.#text }
    this.#text = ''
    this.#isExpected = char === ','
    if (char === ']') this.#state = 'after'
    return item
  }
}
