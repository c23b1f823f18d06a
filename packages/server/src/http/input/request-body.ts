/**
 * The body of a request as bytes. The only file that reads from a `Request`: every method takes a bound in bytes, so no
 * endpoint can read without one. A static check refuses reads elsewhere.
 */
import { type ApiError, badRequest, payloadTooLarge, unsupportedContentEncoding } from '../../errors.ts'

/** The body of one request; it can be read once. */
export interface RequestBody {
  /** `Content-Length`; null for a chunked body. */
  readonly declaredBytes: number | null
  /**
   * Reads the complete body. Throws 413 beyond `bytesMax` (before reading if the length is declared, otherwise as soon
   * as the bound is exceeded), 415 for a body with a content encoding, 400 for a truncated body.
   */
  read(bytesMax: number): Promise<Uint8Array>
  /** The body in chunks as they arrive, with the same errors and with backpressure to the client. */
  stream(bytesMax: number, errors?: StreamErrors): AsyncGenerator<Uint8Array>
}

/** Errors of a format that words them differently. */
export interface StreamErrors {
  readonly tooLarge?: () => Error
  readonly endedEarly?: (cause: unknown) => Error
}

/** An empty body, for calls that do not come over HTTP. */
export const emptyBody = (): RequestBody => createRequestBody(new Request('http://localhost/'))

/** The body of a request that does not come over HTTP; `headers` state its length. */
export const createInternalBody = (headers: Headers, body: BodyInit | null): RequestBody =>
  createRequestBody(new Request('http://localhost/', { method: 'POST', headers, body }))

export const createRequestBody = (request: Request): RequestBody => new IncomingBody(request)

/** A class because one is created per request: closures would cost more than the request's other bookkeeping. */
class IncomingBody implements RequestBody {
  readonly #request: Request

  constructor(request: Request) {
    this.#request = request
  }

  get declaredBytes(): number | null {
    const length = this.#request.headers.get('content-length')
    return length === null ? null : parseContentLength(length)
  }

  async read(bytesMax: number): Promise<Uint8Array> {
    const isDeclared = this.#checkHeaders(bytesMax, payloadTooLarge)
    const bytes = isDeclared ? await this.#readDeclared() : await this.#collect(bytesMax)
    if (bytes.length > bytesMax) throw payloadTooLarge(bytesMax)
    return bytes
  }

  async *stream(bytesMax: number, errors: StreamErrors = {}): AsyncGenerator<Uint8Array> {
    const { tooLarge = () => payloadTooLarge(bytesMax), endedEarly = endedEarlyError } = errors
    this.#checkHeaders(bytesMax, tooLarge)
    let size = 0
    // Leaving the loop cancels the stream and the rest of the upload.
    for await (const chunk of rethrowing(this.#request.body, endedEarly)) {
      size += chunk.length
      if (size > bytesMax) throw tooLarge()
      yield chunk
    }
  }

  /** Checks the headers, and returns whether they state the length. Throws 415 or 413. */
  #checkHeaders(bytesMax: number, tooLarge: (bytesMax: number) => Error): boolean {
    const encoding = this.#request.headers.get('content-encoding')
    if (encoding !== null && encoding.toLowerCase() !== 'identity') throw unsupportedContentEncoding()
    const { declaredBytes } = this
    if (declaredBytes !== null && declaredBytes > bytesMax) throw tooLarge(bytesMax)
    return declaredBytes !== null
  }

  /**
   * The runtime returns exactly `Content-Length` bytes, or fails when the connection ends before. A third faster than
   * the stream for a small body.
   */
  #readDeclared(): Promise<Uint8Array> {
    return this.#request.bytes().catch(throwEndedEarly)
  }

  async #collect(bytesMax: number): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    for await (const chunk of this.stream(bytesMax)) chunks.push(chunk)
    return Buffer.concat(chunks)
  }
}

/** Maps errors of the connection to errors of the API; errors of the consumer are unchanged. */
async function* rethrowing(
  body: AsyncIterable<Uint8Array> | null,
  errorOf: (cause: unknown) => Error,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body ?? []
  } catch (cause) {
    throw errorOf(cause)
  }
}

/** The client closed the connection or sent a malformed chunk. */
function endedEarlyError(cause: unknown): ApiError {
  const error = badRequest('The body ended early')
  error.cause = cause
  return error
}

function throwEndedEarly(cause: unknown): never {
  throw endedEarlyError(cause)
}

/**
 * Throws 400 for headers that proxies and servers may interpret differently: more than one `Host`, or a
 * `Content-Length` that is not a single integer. The runtime joins repeated headers with commas.
 */
export function checkHead(headers: Headers): void {
  if (headers.get('host')?.includes(',')) throw badRequest('The request must have exactly one Host header')
  const length = headers.get('content-length')
  if (length !== null) parseContentLength(length)
}

function parseContentLength(text: string): number {
  if (!/^\d+$/.test(text)) throw badRequest('Content-Length must be sent once, as a whole number of bytes')
  return Number(text)
}
