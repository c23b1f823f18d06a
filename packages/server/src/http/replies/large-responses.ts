/**
 * Large JSON responses, such as pages of records: their size limit, serialization in slices of the event loop, and a
 * fair queue that bounds how many are in memory at once.
 */
import { type Caller, callerKey } from '../../access/caller.ts'
import { createFairQueue } from '../../base/concurrency/fair-queue.ts'
import { createSlices } from '../../base/concurrency/slices.ts'
import { fingerprintPart } from '../../base/crypto/hash.ts'
import { largeResponses, responseEnvelopeBytes } from '../../limits/api.ts'
import type { Reply } from '../endpoint.ts'
import { isJsonWithin, joinParts } from './json-slices.ts'
import { queueRefusal } from './queue-refusal.ts'
import { jsonText } from './reply.ts'

export interface ResponseLimits {
  /** Maximum size of a response in bytes; it contains at least one item, whatever its size. */
  bytesMax(): number
  /**
   * Runs the work for a large response, from reading to serializing, a few at a time to bound memory, round robin over
   * callers. Throws 429 when too many of the caller wait, and 503 when too many wait in all.
   */
  large<T>(caller: Caller, work: () => Promise<T>): Promise<T>
}

export function createResponseLimits(bytesMax: () => number): ResponseLimits {
  const queue = createFairQueue(largeResponses)
  return {
    bytesMax,
    async large(caller, work) {
      try {
        return await queue.enter(callerKey(caller), null, work)
      } catch (error) {
        throw queueRefusal(error, 'large responses')
      }
    },
  }
}

/** Items as JSON in UTF-8, without the brackets around them. */
export interface SerializedItems {
  /** One entry per item, in order. */
  readonly texts: readonly Uint8Array[]
  /** Whether items were omitted because of the limit. */
  readonly isCut: boolean
}

const encoder = new TextEncoder()

/** The limit for items, which leaves room for the envelope. */
export const itemBytesMax = (bytesMax: number): number => Math.max(1, bytesMax - responseEnvelopeBytes)

/**
 * Serializes items in slices until they would exceed `bytesMax`, but at least one. A single call of `textOf` is the
 * longest pause of the event loop.
 */
export async function serializeItems<Item>(
  items: readonly Item[],
  textOf: (item: Item) => string,
  bytesMax: number,
): Promise<SerializedItems> {
  const nextSlice = createSlices()
  const texts: Uint8Array[] = []
  let size = 0
  for (const item of items) {
    const text = encoder.encode(textOf(item))
    size += text.length + 1
    if (size > bytesMax && texts.length > 0) return { texts, isCut: true }
    texts.push(text)
    const pause = nextSlice()
    if (pause) await pause
  }
  return { texts, isCut: false }
}

/** The reply `head item,item,… tail`, with a fingerprint of its content as `ETag`. */
export async function itemsReply(
  head: string,
  texts: readonly Uint8Array[],
  tail: string,
  tagOf = (fingerprint: string): string => `"${fingerprint}"`,
): Promise<Reply> {
  const parts = [encoder.encode(head), ...texts.flatMap((text, at) => (at === 0 ? [text] : [comma, text]))]
  parts.push(encoder.encode(tail))
  let hash = 0n
  const body = await joinParts(parts, (part) => {
    hash = fingerprintPart(part, hash)
  })
  return jsonText(body, 200, { ETag: tagOf(hash.toString(36)) })
}

const comma = encoder.encode(',')

/**
 * The longest prefix of items whose JSON fits `bytesMax`, but at least one. Measured in slices, and only if they may
 * not fit.
 */
export async function fitItems<Item>(
  items: readonly Item[],
  bytesMax: number,
): Promise<{ readonly items: readonly Item[]; readonly isCut: boolean }> {
  if (isJsonWithin(items, bytesMax / jsonBytesPerChar)) return { items, isCut: false }
  const nextSlice = createSlices()
  let left = bytesMax
  for (const [at, item] of items.entries()) {
    left -= Buffer.byteLength(JSON.stringify(item)) + 1
    if (left < 0 && at > 0) return { items: items.slice(0, at), isCut: true }
    const pause = nextSlice()
    if (pause) await pause
  }
  return { items, isCut: false }
}

/** A control character is escaped as `\u0001`. */
const jsonBytesPerChar = 6
