/** Reading a JSON body within bounds. What the body may say is the endpoint's schema's matter. */
import { badRequest, payloadTooLarge, unsupportedMediaType } from '../errors.ts'
import { jsonDepthMax } from '../limits.ts'

export type JsonObject = Record<string, unknown>

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * The body as a JSON object. Throws 415 for any other or no content type, 413 beyond `bytesMax` (from the declared
 * length before a byte is read, else as soon as that many have come), 400 for what is not UTF-8, not JSON, not an
 * object, or nested too deep.
 */
export async function readJsonObject(request: Request, bytesMax: number): Promise<JsonObject> {
  const type = request.headers.get('content-type')
  if (type !== 'application/json' && !isJsonType(type)) throw unsupportedMediaType('application/json')
  const length = request.headers.get('content-length')
  if (length !== null && Number(length) > bytesMax) throw payloadTooLarge(bytesMax)
  const bytes = length === null ? await readCounted(request, bytesMax) : await readDeclared(request)
  return parseJsonObject(bytes)
}

/** Decodes, measures depth before anything is built, parses. Throws 400. */
export function parseJsonObject(bytes: Uint8Array): JsonObject {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw badRequest('The body is not valid UTF-8')
  }
  if (isDeeperThan(jsonDepthMax, text)) throw badRequest(`The body is nested deeper than ${jsonDepthMax} levels`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw badRequest('The body is not valid JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw badRequest('The body must be a JSON object')
  }
  return value as JsonObject
}

/** `application/json` with any parameters, but no other charset than UTF-8: JSON has no other. */
function isJsonType(type: string | null): boolean {
  if (type === null) return false
  const [mime = '', ...parameters] = type.toLowerCase().split(';')
  if (mime.trim() !== 'application/json') return false
  return parameters.every((parameter) => {
    const [name = '', value = ''] = parameter.split('=', 2)
    return name.trim() !== 'charset' || /^"?utf-?8"?$/.test(value.trim())
  })
}

/** The runtime reads exactly the declared bytes, or fails when the connection ends before. */
async function readDeclared(request: Request): Promise<Uint8Array> {
  try {
    return await request.bytes()
  } catch (cause) {
    throw endedEarly(cause)
  }
}

async function readCounted(request: Request, bytesMax: number): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    // Leaving the loop cancels the stream, and with it the rest of the upload.
    for await (const chunk of request.body) {
      size += chunk.length
      if (size > bytesMax) break
      chunks.push(chunk)
    }
  } catch (cause) {
    throw endedEarly(cause)
  }
  if (size > bytesMax) throw payloadTooLarge(bytesMax)
  return Buffer.concat(chunks, size)
}

/** A body piece by piece. Throws what `refuse` makes where it breaks off: its sender has gone or broken the rules. */
export async function* breakingOff(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  refuse: (cause: unknown) => Error = endedEarly,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (cause) {
    throw refuse(cause)
  }
}

/** The client went away or sent a broken chunk; nobody may be there to read this. */
function endedEarly(cause: unknown): Error {
  const error = badRequest('The body ended early')
  error.cause = cause
  return error
}

/**
 * Whether brackets are nested deeper than `depthMax`. Few bodies have as many opening brackets as that, and skipping
 * from one to the next is nearly free, so the exact walk is left to those that do.
 */
export function isDeeperThan(depthMax: number, text: string): boolean {
  return countsAtMost(depthMax, text) ? false : walksDeeperThan(depthMax, text)
}

function countsAtMost(most: number, text: string): boolean {
  let count = 0
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) {
      if (++count > most) return false
    }
  }
  return true
}

const quote = 0x22
const backslash = 0x5c
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

function walksDeeperThan(depthMax: number, text: string): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === quote) {
      at = endOfString(text, at + 1)
    } else if (unit === openBracket || unit === openBrace) {
      if (++depth > depthMax) return true
    } else if (unit === closeBracket || unit === closeBrace) {
      depth--
    }
  }
  return false
}

/** Index of the closing quote, or the text's length. */
function endOfString(text: string, from: number): number {
  for (let at = from; ; at++) {
    at = text.indexOf('"', at)
    if (at < 0) return text.length
    let escapes = 0
    while (text.charCodeAt(at - 1 - escapes) === backslash) escapes++
    if (escapes % 2 === 0) return at
  }
}
