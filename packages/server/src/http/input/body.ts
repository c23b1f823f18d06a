/** Reads JSON bodies: checks media type, encoding, depth and type. The endpoint's schema validates the fields. */
import { createSlices } from '../../base/concurrency/slices.ts'
import { badRequest, unsupportedMediaType } from '../../errors.ts'
import { jsonDepthMax, quickBodyBytes } from '../../limits/api.ts'
import { endOfString, JsonBoundError, parseJsonInSlices } from './json-parse.ts'
import type { RequestBody } from './request-body.ts'

export type JsonObject = Record<string, unknown>

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * The body as a JSON object. Throws 415 for another or no content type, 400 for a body that is not UTF-8, not JSON, not
 * an object or nested too deep, and what `RequestBody.read` throws. `textMembers` as in `Endpoint`.
 */
export async function readJsonObject(
  type: string | null,
  body: RequestBody,
  bytesMax: number,
  textMembers: readonly string[] = [],
): Promise<JsonObject> {
  if (type !== 'application/json' && !isJsonType(type)) throw unsupportedMediaType('application/json')
  const bytes = await body.read(bytesMax)
  return bytes.length <= quickBodyBytes ? parseJsonObject(bytes) : objectOf(await parseLarge(bytes, textMembers))
}

/** The body as any JSON value; throws like `readJsonObject`. */
export async function readJsonValue(type: string | null, body: RequestBody, bytesMax: number): Promise<unknown> {
  if (type !== 'application/json' && !isJsonType(type)) throw unsupportedMediaType('application/json')
  const bytes = await body.read(bytesMax)
  return bytes.length <= quickBodyBytes ? parseJson(bytes) : parseLarge(bytes, [])
}

/** Whether the request has no body according to its headers. */
export function hasNoBody(headers: Headers): boolean {
  const length = headers.get('content-length')
  return length === null ? !headers.has('transfer-encoding') : length === '0'
}

/** Decodes, checks the depth, then parses. Throws 400. */
export const parseJsonObject = (bytes: Uint8Array): JsonObject => objectOf(parseJson(bytes))

/** The same for any value. */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw notUtf8()
  }
  if (isDeeperThan(jsonDepthMax, text)) throw tooDeep()
  try {
    return JSON.parse(text)
  } catch (error) {
    throw error instanceof SyntaxError ? notJson() : error
  }
}

/** The same in slices of the event loop. */
async function parseLarge(bytes: Uint8Array, textMembers: readonly string[]): Promise<unknown> {
  try {
    return await parseJsonInSlices(await decodeInSlices(bytes), { depthMax: jsonDepthMax, textMembers })
  } catch (error) {
    if (error instanceof JsonBoundError) throw badRequest(`The body ${error.message}`)
    throw error instanceof SyntaxError ? notJson() : error
  }
}

async function decodeInSlices(bytes: Uint8Array): Promise<string> {
  const nextSlice = createSlices()
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  try {
    for (let at = 0; at < bytes.length; at += quickBodyBytes) {
      text += decoder.decode(bytes.subarray(at, at + quickBodyBytes), { stream: true })
      const pause = nextSlice()
      if (pause) await pause
    }
    return text + decoder.decode()
  } catch {
    throw notUtf8()
  }
}

const notUtf8 = (): Error => badRequest('The body is not valid UTF-8')
const notJson = (): Error => badRequest('The body is not valid JSON')
const tooDeep = (): Error => badRequest(`The body is nested deeper than ${jsonDepthMax} levels`)

function objectOf(value: unknown): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badRequest('The body must be a JSON object')
  return value as JsonObject
}

/** `application/json` with any parameters, but no charset other than UTF-8. */
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
 * Whether brackets are nested deeper than `depthMax`. Most bodies have fewer opening brackets than that, which
 * `indexOf` finds out at almost no cost; only the others are scanned exactly.
 */
export function isDeeperThan(depthMax: number, text: string): boolean {
  return text.length > depthMax && !countsAtMost(depthMax, text) && walksDeeperThan(depthMax, text)
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
