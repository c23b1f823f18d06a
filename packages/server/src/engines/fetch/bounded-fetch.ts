/**
 * Requests to providers, bounded in time and size and never redirected. Their URLs come from the configuration and from
 * the documents of the issuers named there; URLs from callers go through `public-fetch`.
 */
import { type Clock, systemClock, timeoutOn } from '../../base/clock.ts'

export interface FetchBounds {
  /** Time limit of the complete response. */
  readonly timeoutMs: number
  /** Maximum size of the response body; 0 discards the body unread. */
  readonly bytesMax: number
  /** Measures the time limit; the system's by default. */
  readonly clock?: Clock
}

/** `fetch` that rejects if the complete response is late or too large. */
export type BoundedFetch = (url: string, init?: RequestInit) => Promise<Response>

/** Requests to providers only: over HTTPS, or on the loopback interface. */
export function createBoundedFetch(bounds: FetchBounds): BoundedFetch {
  return async (url, init = {}) => {
    if (!isProviderUrl(url)) throw new Error('The URL of a provider must use HTTPS')
    return fetchWithin(bounds, url, init)
  }
}

/** Fetches any URL; the caller has validated it. */
export async function fetchWithin(
  { timeoutMs, bytesMax, clock = systemClock }: FetchBounds,
  url: string,
  init: BunFetchRequestInit,
): Promise<Response> {
  const headers = new Headers(init.headers)
  // A compressed response would have to be decompressed before it can be measured.
  headers.set('Accept-Encoding', 'identity')
  const timeout = timeoutOn(clock, timeoutMs)
  const response = await fetch(url, {
    ...init,
    headers,
    redirect: 'manual',
    decompress: false,
    signal: init.signal ? AbortSignal.any([init.signal, timeout]) : timeout,
  })
  const { status } = response
  if (bytesMax === 0) {
    await response.body?.cancel()
    return new Response(null, { status, headers: response.headers })
  }
  const bytes = await readAtMost(response.body, bytesMax)
  if (bytes === null) throw new RangeError(`The response is larger than ${bytesMax} bytes`)
  return new Response(bytes.length > 0 ? bytes : null, { status, headers: response.headers })
}

/** Plain HTTP is allowed on the loopback interface only, for tests and development. */
export const isLoopback = (url: string): boolean =>
  /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?(?:\/|$)/.test(url)

/** Whether the URL is allowed for a provider. */
export const isProviderUrl = (url: unknown): url is string =>
  typeof url === 'string' && URL.canParse(url) && (url.startsWith('https://') || isLoopback(url))

/**
 * Reads a stream completely, or returns null if it is longer than `bytesMax`; buffers no more than that and cancels the
 * rest.
 */
export async function readAtMost(
  stream: ReadableStream<Uint8Array> | null,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop cancels the stream.
  for await (const chunk of stream ?? []) {
    size += chunk.length
    if (size > bytesMax) return null
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks, size))
}
