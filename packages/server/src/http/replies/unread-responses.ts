/**
 * Backpressure for responses that clients read slowly. Large texts are sent in chunks, so that the unread bytes over
 * all connections are known and bounded: beyond the bound, stalled responses are aborted. Downloads are streamed by the
 * runtime and hold file handles instead: with too many requests in progress, their idle timeout becomes shorter.
 */
import { inOneChunk } from '../../base/network/one-chunk.ts'
import { unavailable } from '../../errors.ts'
import {
  chunkedTextBytes,
  crowdedIdleSeconds,
  largeResponseBytes,
  rememberedDownloadsMax,
  responsePieceBytes,
  stalledResponseMs,
  unreadResponseBytesMax,
} from '../../limits/api.ts'

/** Sets the idle timeout of a connection. */
export type LimitIdle = (seconds: number) => void

export interface UnreadResponses {
  /** The body to send for a text. Throws 503 if the bound is reached and no response has stalled. */
  bodyOf(text: string | Uint8Array<ArrayBuffer>): string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>
  /** Call for each response that streams a file, with the number of requests in progress. */
  download(pendingRequests: number, limitIdle: LimitIdle): void
}

export interface UnreadResponsesOptions {
  /** Requests in progress from which on stalled downloads get the shorter timeout. */
  readonly pendingMax: number
  readonly bytesMax?: number
  /** A monotonic clock. */
  readonly elapsedMs?: () => number
}

interface Unread {
  readonly bytes: number
  progressMs: number
  /** Closes the connection. */
  cut(): void
}

/** Exact where it matters: a UTF-16 unit takes at most three bytes. */
const byteLength = (text: string | Uint8Array): number =>
  typeof text === 'string' && text.length * 3 >= chunkedTextBytes ? Buffer.byteLength(text) : text.length

export function createUnreadResponses({
  pendingMax,
  bytesMax = unreadResponseBytesMax,
  elapsedMs = () => performance.now(),
}: UnreadResponsesOptions): UnreadResponses {
  /** Ordered by their last progress. */
  const unread = new Set<Unread>()
  let unreadBytes = 0
  let downloads: LimitIdle[] = []

  function forget(one: Unread): void {
    if (unread.delete(one)) unreadBytes -= one.bytes
  }

  /** Aborts the responses that stalled longest until there is room for so many more bytes. */
  function makeRoom(bytes: number): void {
    const stalledSinceMs = elapsedMs() - stalledResponseMs
    for (const one of unread) {
      if (unreadBytes + bytes <= bytesMax) return
      if (one.progressMs > stalledSinceMs) break
      forget(one)
      one.cut()
    }
    if (unreadBytes + bytes > bytesMax) throw unavailable()
  }

  function inPieces(bytes: Uint8Array): ReadableStream<Uint8Array> {
    let at = 0
    let one: Unread
    return new ReadableStream<Uint8Array>(
      {
        start(controller) {
          const cut = (): void => controller.error(new Error('The client has stopped reading the response'))
          one = { bytes: bytes.length, progressMs: elapsedMs(), cut }
          unread.add(one)
          unreadBytes += one.bytes
        },
        pull(controller) {
          if (at >= bytes.length) {
            forget(one)
            return controller.close()
          }
          controller.enqueue(bytes.subarray(at, at + responsePieceBytes))
          at += responsePieceBytes
          one.progressMs = elapsedMs()
          // Moves it to the end of the order.
          if (unread.delete(one)) unread.add(one)
        },
        cancel: () => forget(one),
      },
      { highWaterMark: 0 },
    )
  }

  return {
    bodyOf(text) {
      if (byteLength(text) < chunkedTextBytes) return text
      const bytes = typeof text === 'string' ? Buffer.from(text) : text
      if (text.length < largeResponseBytes) return inOneChunk(bytes)
      makeRoom(bytes.length)
      return inPieces(bytes)
    },
    download(pendingRequests, limitIdle) {
      if (pendingRequests <= pendingMax) {
        // Which downloads have ended is unknown; the oldest ones most likely have.
        if (downloads.length >= rememberedDownloadsMax) downloads = downloads.slice(rememberedDownloadsMax / 2)
        downloads.push(limitIdle)
        return
      }
      for (const limit of downloads) limit(crowdedIdleSeconds)
      downloads = []
      // The runtime sets its own timeout when it begins to send.
      setImmediate(limitIdle, crowdedIdleSeconds)
    },
  }
}
