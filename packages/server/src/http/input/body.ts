/** JSON bodies: media type, encoding, depth and form. The endpoint's schema checks the fields. */
import { badRequest, unsupportedMediaType } from '../../errors.ts'
import { jsonDepthMax } from '../../limits/api.ts'
import type { RequestBody } from './request-body.ts'

export type JsonObject = Record<string, unknown>

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * The body as a JSON object. Throws 415 for any other or no content type, 400 for what is not UTF-8, not JSON, not an
 * object, or nested too deep, and what `RequestBody.read` throws.
 */
export async function readJsonObject(type: string | null, body: RequestBody, bytesMax: number): Promise<JsonObject> {
  if (type !== 'application/json' && !isJsonType(type)) throw unsupportedMediaType('application/json')
  return parseJsonObject(await body.read(bytesMax))
}

/** Whether the request carries no body, by its headers alone. */
export function hasNoBody(headers: Headers): boolean {
  const length = headers.get('content-length')
  return length === null ? !headers.has('transfer-encoding') : length === '0'
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
