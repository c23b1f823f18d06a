/**
 * Requests to providers, within bounds of time and size and never redirected. Where they go comes from the
 * configuration and from the documents of the issuers named there; what a caller names is asked by `public-fetch`.
 */

export interface FetchBounds {
  /** For the whole answer. */
  readonly timeoutMs: number
  /** Of the answer's body. */
  readonly bytesMax: number
}

/** `fetch` for one question: rejects when the whole answer is not there in time, or is larger than it may be. */
export type BoundedFetch = (url: string, init?: RequestInit) => Promise<Response>

/** Asks providers alone: over HTTPS, or on this machine. */
export function createBoundedFetch(bounds: FetchBounds): BoundedFetch {
  return async (url, init = {}) => {
    if (!isProviderUrl(url)) throw new Error('A provider must be asked over HTTPS')
    return fetchWithin(bounds, url, init)
  }
}

/** Asks whatever it is told to; whoever calls this has looked at the URL. */
export async function fetchWithin(
  { timeoutMs, bytesMax }: FetchBounds,
  url: string,
  init: BunFetchRequestInit,
): Promise<Response> {
  const headers = new Headers(init.headers)
  // Compressed answers would have to be unpacked before they can be measured.
  headers.set('Accept-Encoding', 'identity')
  const timeout = AbortSignal.timeout(timeoutMs)
  const response = await fetch(url, {
    ...init,
    headers,
    redirect: 'manual',
    decompress: false,
    signal: init.signal ? AbortSignal.any([init.signal, timeout]) : timeout,
  })
  const bytes = await readAtMost(response.body, bytesMax)
  if (bytes === null) throw new RangeError(`The answer is larger than ${bytesMax} bytes`)
  const { status } = response
  return new Response(bytes.length > 0 ? bytes : null, { status, headers: response.headers })
}

/** Plain HTTP never leaves this machine: it is for tests and for trying things out. */
export const isLoopback = (url: string): boolean =>
  /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?(?:\/|$)/.test(url)

/** Whether a provider may be asked there. */
export const isProviderUrl = (url: unknown): url is string =>
  typeof url === 'string' && URL.canParse(url) && (url.startsWith('https://') || isLoopback(url))

/** All of a stream, or null when it is longer than `bytesMax`; no more than that is held, and the rest not read. */
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
