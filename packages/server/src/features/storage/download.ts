/**
 * Sends the bytes of objects: conditions, ranges and headers of every download, whether public, authenticated or
 * signed. Callers have authorized the request before.
 */
import { randomBytes } from 'node:crypto'
import { openFileSlice, readFileSlice } from '../../base/files/file-slice.ts'
import type { BlobSource, Blobs, ByteRange } from '../../engines/blobs/blobs.ts'
import { EngineError } from '../../engines/sql/error.ts'
import { preconditionFailed, rangeNotSatisfiable } from '../../errors.ts'
import type { Reply } from '../../http/endpoint.ts'
import { matchesEtag, matchesStrongly } from '../../http/replies/etags.ts'
import { parseHttpDate } from '../../http/replies/http-date.ts'
import { type ByteSpan, contentRange, parseRanges } from '../../http/replies/ranges.ts'
import { bytes, empty } from '../../http/replies/reply.ts'
import { bufferedAnswerBytes, readFileBytes } from '../../limits/storage.ts'
import type { BlobPart } from './blobs/blob-registry.ts'
import { contentHeaders } from './uploads/content.ts'

/** The content of a response: an object, or an image variant made from it. */
export interface Content {
  readonly key: string
  readonly size: number
  readonly contentType: string
  /** Without quotes. */
  readonly etag: string
  readonly createdAt: string
  readonly blobs: readonly BlobPart[]
}

/** The parts of a request that determine the response. */
export interface DownloadRequest {
  readonly method: string
  readonly headers: Headers
  /**
   * Seconds for which a browser may use its copy without revalidation; undefined requires revalidation on every use.
   */
  readonly cacheSeconds?: number
}

/** Throws 412 for a failed precondition, 416 for unsatisfiable ranges. */
export async function sendContent(blobs: Blobs, content: Content, request: DownloadRequest): Promise<Reply> {
  const { size, createdAt } = content
  const etag = `"${content.etag}"`
  const headers: Record<string, string> = {
    ...contentHeaders(content.key, content.contentType),
    ETag: etag,
    'Last-Modified': new Date(createdAt).toUTCString(),
    'Accept-Ranges': 'bytes',
    ...(request.cacheSeconds === undefined ? {} : { 'Cache-Control': `private, max-age=${request.cacheSeconds}` }),
  }
  const modifiedMs = Math.floor(Date.parse(createdAt) / 1000) * 1000
  if (isUnchanged(request.headers, etag, modifiedMs)) return empty(304, headers)
  if (request.method === 'HEAD') return empty(200, { ...headers, 'Content-Length': String(size) })
  const spans = findSpans(request.headers, etag, modifiedMs, size)
  if (spans === null) return bytes(await readAll(blobs, content, request.headers.has('range')), 200, headers)
  if (spans.length === 0) throw rangeNotSatisfiable(size)
  const [span] = spans
  if (spans.length > 1 || !span) return sendSeveral(blobs, content, spans, headers)
  const source = await readSpan(blobs, content.blobs, span)
  return bytes(await buffered(source, span.end - span.start), 206, {
    ...headers,
    'Content-Range': contentRange(span, size),
  })
}

const findDate = (text: string | null): number | null => (text === null ? null : parseHttpDate(text))

/** Evaluates the preconditions in the order of RFC 9110 §13.2.2. True for 304; throws 412. */
function isUnchanged(headers: Headers, etag: string, modifiedMs: number): boolean {
  const ifMatch = headers.get('if-match')
  if (ifMatch !== null) {
    if (!matchesStrongly(ifMatch, etag)) throw preconditionFailed('file')
  } else {
    const unmodifiedSince = findDate(headers.get('if-unmodified-since'))
    if (unmodifiedSince !== null && modifiedMs > unmodifiedSince) throw preconditionFailed('file')
  }
  const ifNoneMatch = headers.get('if-none-match')
  if (ifNoneMatch !== null) return matchesEtag(ifNoneMatch, etag)
  const modifiedSince = findDate(headers.get('if-modified-since'))
  return modifiedSince !== null && modifiedMs <= modifiedSince
}

/** The ranges to send; null for the full content. */
function findSpans(headers: Headers, etag: string, modifiedMs: number, size: number): readonly ByteSpan[] | null {
  const range = headers.get('range')
  if (range === null) return null
  const ifRange = headers.get('if-range')
  if (ifRange !== null && ifRange.trim() !== etag && findDate(ifRange) !== modifiedMs) return null
  return parseRanges(range, size)
}

async function readAll(blobs: Blobs, { blobs: parts, size }: Content, hasRange: boolean): Promise<BytesSource> {
  if (size === 0) return new Uint8Array()
  const source = await readSpan(blobs, parts, { start: 0, end: size })
  // The runtime applies `Range` to a complete file by itself, even where this request must get the full content.
  const decided =
    hasRange && source.kind === 'file' && size > readFileBytes
      ? { kind: 'stream' as const, stream: streamOf(source) }
      : source
  return buffered(decided, size)
}

type BytesSource = NonNullable<Reply['source']>

/** The runtime sends streams without a `Content-Length`; short ones are buffered so that the response has one. */
async function buffered(source: BlobSource, size: number): Promise<BytesSource> {
  if (source.kind === 'file') return size <= readFileBytes ? read(source) : source
  if (size > bufferedAnswerBytes) return source
  return new Response(source.stream).bytes() as Promise<Uint8Array<ArrayBuffer>>
}

function read(source: BlobSource & { kind: 'file' }): Uint8Array<ArrayBuffer> {
  try {
    return readFileSlice(source)
  } catch (error) {
    throw new EngineError('unavailable', 'A file cannot be read', [], error)
  }
}

/** The bytes of a source as a stream. */
export const streamOf = (source: BlobSource): ReadableStream<Uint8Array> =>
  source.kind === 'file' ? openFileSlice(source.path, source.start, source.end).stream() : source.stream

/** Maps a range of an object to the ranges of the blobs that contain it. */
function* cut(parts: readonly BlobPart[], { start, end }: ByteSpan): Generator<{ id: string; range: ByteRange }> {
  let at = 0
  for (const [id, size] of parts) {
    const range = { start: Math.max(0, start - at), end: Math.min(size, end - at) }
    if (range.start < range.end) yield { id, range }
    at += size
    if (at >= end) return
  }
}

/** Reads a range of an object, which may span several blobs. */
export async function readSpan(blobs: Blobs, parts: readonly BlobPart[], span: ByteSpan): Promise<BlobSource> {
  const [first, ...rest] = cut(parts, span)
  if (!first) return { kind: 'stream', stream: new Blob([]).stream() }
  // The first blob is opened before the response starts, so that an unavailable store causes an error response, not a
  // truncated body.
  const opened = await blobs.read(first.id, first.range)
  if (rest.length === 0) return opened
  return {
    kind: 'stream',
    stream: chain([
      opened,
      ...rest.map(
        ({ id, range }) =>
          () =>
            blobs.read(id, range),
      ),
    ]),
  }
}

/** An element of a chain: bytes, an open source, or a function that opens one when it is reached. */
type Link = BlobSource | Uint8Array | (() => Promise<BlobSource>)

/** Concatenates streams. Each is opened when the one before has ended; canceling releases all of them. */
function chain(links: readonly Link[]): ReadableStream<Uint8Array> {
  const waiting = [...links]
  let current: ReadableStreamDefaultReader<Uint8Array> | null = null
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      for (;;) {
        if (!current) {
          const next = waiting.shift()
          if (next === undefined) return controller.close()
          if (next instanceof Uint8Array) return controller.enqueue(next)
          current = streamOf(typeof next === 'function' ? await next() : next).getReader()
        }
        const { done, value } = await current.read()
        if (!done) return controller.enqueue(value)
        current = null
      }
    },
    async cancel(reason) {
      const opened = waiting.filter((link) => typeof link !== 'function' && !(link instanceof Uint8Array))
      waiting.length = 0
      await Promise.all([current?.cancel(reason), ...opened.map((link) => streamOf(link as BlobSource).cancel(reason))])
    },
  })
}

/** Sends several ranges as `multipart/byteranges` (RFC 9110 §14.6). */
function sendSeveral(
  blobs: Blobs,
  content: Content,
  spans: readonly ByteSpan[],
  headers: Record<string, string>,
): Reply {
  const boundary = randomBytes(18).toString('base64url')
  const links = spans.flatMap((span): Link[] => [
    Buffer.from(
      `\r\n--${boundary}\r\nContent-Type: ${headers['Content-Type']}\r\nContent-Range: ${contentRange(span, content.size)}\r\n\r\n`,
    ),
    () => readSpan(blobs, content.blobs, span),
  ])
  const stream = chain([...links, Buffer.from(`\r\n--${boundary}--\r\n`)])
  return bytes({ kind: 'stream', stream }, 206, {
    ...headers,
    'Content-Type': `multipart/byteranges; boundary=${boundary}`,
  })
}
