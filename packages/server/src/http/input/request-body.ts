/**
 * The body of a request as bytes, and what its head says about it. The only file that reads from a `Request`: each way
 * to a body takes a bound in bytes and counts against it, so no endpoint can read without one. `scripts/tidy` checks
 * that no other file does.
 */
import { type ApiError, badRequest, payloadTooLarge, unsupportedContentEncoding } from '../../errors.ts'

/** The body of one request; it can be read once. */
export interface RequestBody {
  /** `Content-Length`; null where the request declares none and sends chunks. */
  readonly declaredBytes: number | null
  /**
   * The whole body. Throws 413 beyond `bytesMax` (for a declared length before a byte is read, else as soon as that
   * many have come), 415 for an encoded body, 400 for one that ends early.
   */
  read(bytesMax: number): Promise<Uint8Array>
  /** The body in chunks as they arrive, with the same errors. A slow consumer slows the sender. */
  stream(bytesMax: number, errors?: StreamErrors): AsyncGenerator<Uint8Array>
}

/** Errors of a format that has its own words for them. */
export interface StreamErrors {
  readonly tooLarge?: () => Error
  readonly endedEarly?: (cause: unknown) => Error
}

/** What the body of a request without one looks like: for calls that do not come over HTTP. */
export const emptyBody = (): RequestBody => createRequestBody(new Request('http://localhost/'))

export const createRequestBody = (request: Request): RequestBody => new IncomingBody(request)

/** A class, because one is made for every request: closures would cost more than the request's other bookkeeping. */
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
    this.#admit(bytesMax, payloadTooLarge)
    const bytes = this.declaredBytes === null ? await this.#collect(bytesMax) : await this.#readDeclared()
    if (bytes.length > bytesMax) throw payloadTooLarge(bytesMax)
    return bytes
  }

  async *stream(bytesMax: number, errors: StreamErrors = {}): AsyncGenerator<Uint8Array> {
    const { tooLarge = () => payloadTooLarge(bytesMax), endedEarly = endedEarlyError } = errors
    this.#admit(bytesMax, tooLarge)
    let size = 0
    // Leaving the loop cancels the runtime's stream, and with it the rest of the upload.
    for await (const chunk of rethrowing(this.#request.body, endedEarly)) {
      size += chunk.length
      if (size > bytesMax) throw tooLarge()
      yield chunk
    }
  }

  /** Throws for what the head rules out already. */
  #admit(bytesMax: number, tooLarge: (bytesMax: number) => Error): void {
    const encoding = this.#request.headers.get('content-encoding')
    if (encoding !== null && encoding.toLowerCase() !== 'identity') throw unsupportedContentEncoding()
    const { declaredBytes } = this
    if (declaredBytes !== null && declaredBytes > bytesMax) throw tooLarge(bytesMax)
  }

  /**
   * The runtime frames a body by its one valid `Content-Length` and gives exactly that many bytes, or fails when the
   * connection ends before. A third faster than the stream for a small body.
   */
  async #readDeclared(): Promise<Uint8Array> {
    try {
      return await this.#request.bytes()
    } catch (cause) {
      throw endedEarlyError(cause)
    }
  }

  async #collect(bytesMax: number): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    for await (const chunk of this.stream(bytesMax)) chunks.push(chunk)
    return Buffer.concat(chunks)
  }
}

/** Errors of the sender or the connection become errors of the API; the consumer's own stay what they are. */
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

/** The client closed the connection or sent a broken chunk. */
function endedEarlyError(cause: unknown): ApiError {
  const error = badRequest('The body ended early')
  error.cause = cause
  return error
}

/**
 * Throws 400 for a head that proxies and servers may read differently: more than one `Host`, or a `Content-Length` that
 * is not one whole number. The runtime joins repeated headers with commas.
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
