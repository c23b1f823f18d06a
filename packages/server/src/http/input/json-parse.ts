/**
 * Parses JSON of any size without blocking the event loop: small texts in one step, large ones in slices. Accepts and
 * returns exactly what `JSON.parse` does.
 */
import { createSlices } from '../../base/concurrency/slices.ts'
import { bodyItemsMax, parsePieceChars } from '../../limits/api.ts'

/** The JSON is nested too deep or an array has too many items; the message states the bound. */
export class JsonBoundError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'JsonBoundError'
  }
}

/**
 * JSON that was validated but not parsed into objects, which take ten times its memory: for values that are only
 * stored.
 */
export class JsonText {
  /** `isExact`: whether all numbers are within the range of a double. */
  constructor(
    readonly text: string,
    readonly isExact: boolean,
  ) {}
}

/** Whether a number survives serialization: `1e999` parses as infinity, which would be written as null. */
export function isExactJson(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  return Array.isArray(value) ? value.every(isExactJson) : Object.values(value).every(isExactJson)
}

export interface ParseOptions {
  readonly depthMax: number
  /** Members of the outermost object that are returned as `JsonText` if they are large. */
  readonly textMembers?: readonly string[]
}

const quote = 0x22
const comma = 0x2c
const backslash = 0x5c
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

const blank = /^[ \t\n\r]*$/
const leadingComma = /^[ \t\n\r]*,/

/** Index of the quote that closes the string whose contents begin at `from`, or the text's length. */
export function endOfString(text: string, from: number): number {
  for (let at = from; ; at++) {
    at = text.indexOf('"', at)
    if (at < 0) return text.length
    let escapes = 0
    while (text.charCodeAt(at - 1 - escapes) === backslash) escapes++
    if (escapes % 2 === 0) return at
  }
}

/** Parses a text in slices. Throws `JsonBoundError`, and `SyntaxError` for malformed JSON. */
export async function parseJsonInSlices(text: string, options: ParseOptions): Promise<unknown> {
  const nextSlice = createSlices()
  const parser = new Parser(text, options)
  while (!parser.advance()) {
    const pause = nextSlice()
    if (pause) await pause
  }
  return parser.result
}

/** Collects the items of an array or object that is parsed in runs. */
interface Container {
  readonly value: unknown
  /** Adds a run of items; its text has no comma at either end. Throws `SyntaxError`. */
  addRun(items: string): void
  /** `key` is empty in an array. */
  addChild(key: string, child: unknown): void
}

/** An array or object whose end has not been reached. */
interface Frame {
  /** Index of the opening bracket. */
  readonly start: number
  readonly isArray: boolean
  /** Set once some items were parsed; until then it may be small enough to be parsed with its parent. */
  value: Container | null
  /** Index of the first item not yet parsed; after another item, the index of the comma. */
  from: number
  /** Index of the last comma between items; -1 if none follows `from`. */
  comma: number
  isEmpty: boolean
  /** Name of the member that is parsed separately. */
  key: string
}

/**
 * Scans for brackets, strings and commas and passes runs of complete items to `JSON.parse`. Linear: each character is
 * scanned once and parsed once.
 */
class Parser {
  result: unknown
  readonly #text: string
  readonly #depthMax: number
  readonly #textMembers: readonly string[]
  readonly #frames: Frame[] = []
  #at = 0
  #isDone = false

  constructor(text: string, { depthMax, textMembers = [] }: ParseOptions) {
    this.#text = text
    this.#depthMax = depthMax
    this.#textMembers = textMembers
  }

  /** Advances by about `parsePieceChars`; true at the end. */
  advance(): boolean {
    const text = this.#text
    const until = Math.min(text.length, this.#at + parsePieceChars)
    let at = this.#at
    while (at < until && !this.#isDone) {
      const unit = text.charCodeAt(at)
      if (unit === quote) at = endOfString(text, at + 1)
      else if (unit === comma) this.#separate(at)
      else if (unit === openBracket || unit === openBrace) this.#open(at, unit === openBracket)
      else if (unit === closeBracket || unit === closeBrace) this.#close(at, unit === closeBracket)
      at += 1
    }
    this.#at = at
    if (this.#isDone) return this.#end(at)
    if (at < text.length) return false
    if (this.#frames.length > 0) throw new SyntaxError('Unexpected end of JSON')
    this.result = JSON.parse(text)
    return true
  }

  #end(at: number): boolean {
    if (!blank.test(this.#text.slice(at))) throw new SyntaxError('Text after the JSON value')
    return true
  }

  #open(at: number, isArray: boolean): void {
    if (this.#frames.length === 0 && !blank.test(this.#text.slice(0, at))) throw new SyntaxError('No JSON container')
    const frame = { start: at, isArray, value: null, from: at + 1, comma: -1, isEmpty: true, key: '' }
    if (this.#frames.push(frame) > this.#depthMax)
      throw new JsonBoundError(`is nested deeper than ${this.#depthMax} levels`)
  }

  #separate(at: number): void {
    const frame = this.#frames.at(-1)
    if (!frame) throw new SyntaxError('No JSON container')
    frame.comma = at
    if (at - frame.from < parsePieceChars) return
    this.#begin()
    this.#take(frame, at)
  }

  #close(at: number, isArray: boolean): void {
    const frame = this.#frames.at(-1)
    if (!frame || frame.isArray !== isArray) throw new SyntaxError('A bracket without its counterpart')
    const parent = this.#frames.at(-2)
    if (frame.value === null) {
      this.#frames.pop()
      // Small: parsed together with its siblings.
      if (!parent) this.#finish(JSON.parse(this.#text.slice(frame.start, at + 1)))
      return
    }
    if (!blank.test(this.#text.slice(frame.from, at)) || frame.isEmpty) this.#take(frame, at)
    this.#frames.pop()
    if (!parent) {
      this.#finish(frame.value.value)
      return
    }
    parent.value?.addChild(parent.key, frame.value.value)
    parent.isEmpty = false
    parent.from = at + 1
    parent.comma = -1
  }

  #finish(value: unknown): void {
    this.result = value
    this.#isDone = true
  }

  /** Parses the innermost container separately, and so each container around it. */
  #begin(): void {
    for (const [depth, frame] of this.#frames.entries()) {
      frame.value ??= this.#containerOf(frame, this.#frames[depth - 1])
      const child = this.#frames[depth + 1]
      if (child && child.value === null) this.#takeBefore(frame, child.start)
    }
  }

  #containerOf({ isArray }: Frame, parent: Frame | undefined): Container {
    const isText = parent?.value instanceof TextContainer
    const isTextMember =
      this.#frames[0] === parent && parent?.isArray === false && this.#textMembers.includes(parent.key)
    if (isText || isTextMember) return new TextContainer(isArray)
    return isArray ? new ArrayContainer() : new ObjectContainer()
  }

  /** Parses the items before a child, and the child's name. */
  #takeBefore(frame: Frame, childStart: number): void {
    if (frame.comma < 0 && !frame.isEmpty) throw new SyntaxError('A comma is missing')
    if (frame.comma >= 0) this.#take(frame, frame.comma)
    const head = this.#text.slice(frame.comma < 0 ? frame.from : frame.comma + 1, childStart)
    if (!frame.isArray) frame.key = nameOf(head)
    else if (!blank.test(head)) throw new SyntaxError('A comma is missing')
  }

  /** Parses the items between `from` and a comma or the end. */
  #take(frame: Frame, end: number): void {
    const run = this.#text.slice(frame.from, end)
    // The comma at `end` follows the previous item.
    if (!frame.isEmpty && blank.test(run)) return
    const items = frame.isEmpty ? run : withoutComma(run)
    if (blank.test(items)) throw new SyntaxError('An item is missing')
    frame.value?.addRun(items)
    frame.isEmpty = false
    frame.from = end
  }
}

class ArrayContainer implements Container {
  readonly value: unknown[] = []

  addRun(items: string): void {
    for (const item of JSON.parse(`[${items}]`) as unknown[]) this.value.push(item)
    if (this.value.length > bodyItemsMax) throw new JsonBoundError(`has an array of more than ${bodyItemsMax} items`)
  }

  addChild(_: string, child: unknown): void {
    this.value.push(child)
  }
}

class ObjectContainer implements Container {
  readonly value: Record<string, unknown> = {}

  addRun(items: string): void {
    const members = JSON.parse(`{${items}}`) as Record<string, unknown>
    for (const name of Object.keys(members)) setMember(this.value, name, members[name])
  }

  addChild(key: string, child: unknown): void {
    setMember(this.value, key, child)
  }
}

/** Reserializes each run and discards the objects. */
class TextContainer implements Container {
  readonly #isArray: boolean
  readonly #parts: string[] = []
  #isExact = true

  constructor(isArray: boolean) {
    this.#isArray = isArray
  }

  get value(): JsonText {
    const [open, close] = this.#isArray ? '[]' : '{}'
    return new JsonText(`${open}${this.#parts.join(',')}${close}`, this.#isExact)
  }

  addRun(items: string): void {
    const run: unknown = JSON.parse(this.#isArray ? `[${items}]` : `{${items}}`)
    if (!isExactJson(run)) this.#isExact = false
    this.#parts.push(JSON.stringify(run).slice(1, -1))
  }

  addChild(key: string, child: unknown): void {
    const { text, isExact } = child as JsonText
    if (!isExact) this.#isExact = false
    this.#parts.push(this.#isArray ? text : `${JSON.stringify(key)}:${text}`)
  }
}

function withoutComma(run: string): string {
  const found = leadingComma.exec(run)
  if (!found) throw new SyntaxError('A comma is missing')
  return run.slice(found[0].length)
}

/** The name in `"name":`. */
function nameOf(head: string): string {
  const names = Object.keys(JSON.parse(`{${head}0}`) as object)
  const [name] = names
  if (name === undefined || names.length > 1) throw new SyntaxError('A name is missing')
  return name
}

/** Defines an own property even for `__proto__`, as `JSON.parse` does. */
function setMember(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true })
  else target[name] = value
}
