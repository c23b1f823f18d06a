/**
 * JSON responses that hold many stored things: how many bytes one may have, how it is serialized without blocking the
 * event loop, and how many of them are in memory at once.
 */

import { createSemaphore } from '../../base/concurrency/semaphore.ts'
import { createSlices } from '../../base/concurrency/slices.ts'
import { fingerprintPart } from '../../base/crypto/hash.ts'
import { unavailable } from '../../errors.ts'
import { largeResponsesMax, largeResponsesWaitingMax, responseEnvelopeBytes } from '../../limits/api.ts'
import type { Reply } from '../endpoint.ts'
import { isJsonWithin, joinParts } from './json-slices.ts'
import { jsonText } from './reply.ts'

export interface ResponseLimits {
  /** Bytes of a JSON response, at most; one item is always answered, whatever its size. */
  bytesMax(): number
  /**
   * Runs the making of a large response, from reading to serializing; a few at a time, so that memory is bounded by
   * their number. Throws 503 when too many wait.
   */
  large<T>(work: () => Promise<T>): Promise<T>
}

export function createResponseLimits(bytesMax: () => number): ResponseLimits {
  const gate = createSemaphore({ running: largeResponsesMax, waiting: largeResponsesWaitingMax })
  return {
    bytesMax,
    async large(work) {
      const entered = gate.run(work)
      if (!entered) throw unavailable()
      return entered
    },
  }
}

/** Items as JSON in UTF-8, without the brackets around them. */
export interface SerializedItems {
  /** One for each item, in order. */
  readonly texts: readonly Uint8Array[]
  /** Whether the bound left items out. */
  readonly isCut: boolean
}

const encoder = new TextEncoder()

/** Bytes of items that leave room for what stands around them. */
export const itemBytesMax = (bytesMax: number): number => Math.max(1, bytesMax - responseEnvelopeBytes)

/**
 * Serializes items in slices until they would exceed `bytesMax`, but at least one. What one `textOf` does is the
 * longest that the event loop is blocked for.
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

/** The reply `head item,item,… tail`, with its content's fingerprint as its entity tag. */
export async function itemsReply(head: string, texts: readonly Uint8Array[], tail: string): Promise<Reply> {
  const parts = [encoder.encode(head), ...texts.flatMap((text, at) => (at === 0 ? [text] : [comma, text]))]
  parts.push(encoder.encode(tail))
  let hash = 0n
  const body = await joinParts(parts, (part) => {
    hash = fingerprintPart(part, hash)
  })
  return jsonText(body, 200, { ETag: `"${hash.toString(36)}"` })
}

const comma = encoder.encode(',')

/**
 * The first of some items whose JSON fits into `bytesMax` together, but at least one. Measured in slices, and only
 * where they might not.
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

/** A control character is `\u0001`. */
const jsonBytesPerChar = 6
