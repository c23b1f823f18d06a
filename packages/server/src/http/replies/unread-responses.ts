/**
 * Responses that clients are slow to read. Large texts are sent in pieces, so that it is known what is still in memory:
 * over all connections that has a bound, for which those are cut that nothing was read of for a while. Downloads are
 * the runtime's own and take handles instead: with too many requests under way, those that are not read end sooner.
 */
import { unavailable } from '../../errors.ts'
import {
  crowdedIdleSeconds,
  largeResponseBytes,
  rememberedDownloadsMax,
  responsePieceBytes,
  stalledResponseMs,
  unreadResponseBytesMax,
} from '../../limits/api.ts'

/** Closes a connection once there is no traffic on it for so many seconds. */
export type LimitIdle = (seconds: number) => void

export interface UnreadResponses {
  /** The body to send for a text. Throws 503 where there is no room for it and no response has stalled. */
  bodyOf(text: string | Uint8Array<ArrayBuffer>): string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>
  /** To be called for each response whose bytes are a file's or a stream's, with the number of requests under way. */
  download(pendingRequests: number, limitIdle: LimitIdle): void
}

export interface UnreadResponsesOptions {
  /** Requests under way from which on downloads that stall end sooner. */
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

export function createUnreadResponses({
  pendingMax,
  bytesMax = unreadResponseBytesMax,
  elapsedMs = () => performance.now(),
}: UnreadResponsesOptions): UnreadResponses {
  /** In the order of their last progress. */
  const unread = new Set<Unread>()
  let unreadBytes = 0
  let downloads: LimitIdle[] = []

  function forget(one: Unread): void {
    if (unread.delete(one)) unreadBytes -= one.bytes
  }

  /** Cuts those without progress for longest until so many bytes more have room. */
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
          // Moves it to the end.
          if (unread.delete(one)) unread.add(one)
        },
        cancel: () => forget(one),
      },
      { highWaterMark: 0 },
    )
  }

  return {
    bodyOf(text) {
      if (text.length < largeResponseBytes) return text
      const bytes = typeof text === 'string' ? Buffer.from(text) : text
      makeRoom(bytes.length)
      return inPieces(bytes)
    },
    download(pendingRequests, limitIdle) {
      if (pendingRequests <= pendingMax) {
        // Which of them have ended is not known; the oldest most likely have.
        if (downloads.length >= rememberedDownloadsMax) downloads = downloads.slice(rememberedDownloadsMax / 2)
        downloads.push(limitIdle)
        return
      }
      for (const limit of downloads) limit(crowdedIdleSeconds)
      downloads = []
      // The runtime sets its own when it begins to send.
      setImmediate(limitIdle, crowdedIdleSeconds)
    },
  }
}
