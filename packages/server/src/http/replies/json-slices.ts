/**
 * Serializes JSON of any size without blocking the event loop: small values in one step, large ones in slices, as
 * UTF-8.
 */
import { createSlices } from '../../base/concurrency/slices.ts'
import { quickResponseBytes, responsePieceBytes } from '../../limits/api.ts'

/**
 * What remains of a budget of `chars` after a value's JSON, negative if it is longer; escapes are not counted. Stops
 * there, so it costs a fraction of serializing the value.
 */
function weigh(value: unknown, chars: number): number {
  if (typeof value === 'string') return chars - value.length - 2
  if (typeof value !== 'object' || value === null) return chars - 8
  let left = chars - 2
  if (Array.isArray(value)) {
    for (const item of value) {
      left = weigh(item, left - 1)
      if (left < 0) return left
    }
    return left
  }
  const members = value as Readonly<Record<string, unknown>>
  for (const name in members) {
    left = weigh(members[name], left - name.length - 4)
    if (left < 0) return left
  }
  return left
}

/** Whether the JSON of a value has at most `chars` characters, escapes not counted. */
export const isJsonWithin = (value: unknown, chars: number): boolean => weigh(value, chars) >= 0

/** Whether a value is serialized in one step. */
export const isQuickJson = (value: unknown): boolean => isJsonWithin(value, quickResponseBytes)

const isOmitted = (value: unknown): boolean =>
  value === undefined || typeof value === 'function' || typeof value === 'symbol'

/** The JSON of a value in pieces, as `JSON.stringify` writes it. */
function* piecesOf(value: unknown): Generator<string> {
  if (isJsonWithin(value, responsePieceBytes)) yield JSON.stringify(value) ?? 'null'
  else if (typeof value === 'string') yield* piecesOfText(value)
  else if (Array.isArray(value)) yield* piecesOfArray(value)
  else if (hasOwnForm(value)) yield JSON.stringify(value)
  else yield* piecesOfMembers(value as object)
}

const hasOwnForm = (value: unknown): boolean => typeof (value as { toJSON?: unknown }).toJSON === 'function'

function* piecesOfText(text: string): Generator<string> {
  yield '"'
  for (let at = 0; at < text.length; ) {
    const end = pieceEnd(text, at)
    yield JSON.stringify(text.slice(at, end)).slice(1, -1)
    at = end
  }
  yield '"'
}

/** The end of a piece of text that begins at `at`, never between the halves of a surrogate pair. */
function pieceEnd(text: string, at: number): number {
  const end = at + responsePieceBytes
  const last = text.charCodeAt(end - 1)
  return end < text.length && last >= 0xd800 && last < 0xdc00 ? end - 1 : end
}

function* piecesOfArray(items: readonly unknown[]): Generator<string> {
  let before = '['
  for (const item of items) {
    yield before
    before = ','
    yield* piecesOf(isOmitted(item) ? null : item)
  }
  yield items.length === 0 ? '[]' : ']'
}

function* piecesOfMembers(value: object): Generator<string> {
  let before = '{'
  for (const [name, member] of Object.entries(value)) {
    if (isOmitted(member)) continue
    yield `${before}${JSON.stringify(name)}:`
    before = ','
    yield* piecesOf(member)
  }
  yield before === '{' ? '{}' : '}'
}

function* piecesOfWritten(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const end = pieceEnd(text, at)
    yield text.slice(at, end)
    at = end
  }
}

const encoder = new TextEncoder()

/** Pieces, gathered into parts of at least `responsePieceBytes`. */
async function encodePieces(pieces: Iterable<string>): Promise<Uint8Array<ArrayBuffer>> {
  const nextSlice = createSlices()
  const parts: Uint8Array[] = []
  let gathered = ''
  for (const piece of pieces) {
    gathered += piece
    if (gathered.length < responsePieceBytes) continue
    parts.push(encoder.encode(gathered))
    gathered = ''
    const pause = nextSlice()
    if (pause) await pause
  }
  parts.push(encoder.encode(gathered))
  return joinParts(parts)
}

/** The JSON of a value in UTF-8. */
export const serializeJson = (value: unknown): Promise<Uint8Array<ArrayBuffer>> => encodePieces(piecesOf(value))

/** A text in UTF-8. */
export const encodeText = (text: string): Promise<Uint8Array<ArrayBuffer>> => encodePieces(piecesOfWritten(text))

/** Joins parts in slices; `visit` is called with each of them. */
export async function joinParts(
  parts: readonly Uint8Array[],
  visit?: (part: Uint8Array) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const nextSlice = createSlices()
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
    visit?.(part)
    const pause = nextSlice()
    if (pause) await pause
  }
  return joined
}
