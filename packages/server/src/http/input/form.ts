/**
 * Streaming parser of `multipart/form-data` with one file (RFC 7578). The file is passed on while it arrives, with
 * backpressure to the client.
 */
import { type ApiError, badRequest, invalidField, payloadTooLarge, unsupportedMediaType } from '../../errors.ts'
import { formFieldBytesMax, formFieldsMax, formHeadBytesMax, formOverheadBytesMax } from '../../limits/storage.ts'
import { type ByteReader, createByteReader, EndedEarly, TooLong } from './byte-reader.ts'
import type { RequestBody } from './request-body.ts'

export interface FormFile {
  /** The part's `Content-Type`, or null. */
  readonly contentType: string | null
  readonly body: AsyncIterable<Uint8Array>
}

export interface FormOptions<T> {
  /** Name of the file field. */
  readonly fileName: string
  /** Bound of the file; the rest of the form may take `formOverheadBytesMax` more. */
  readonly fileBytesMax: number
  /** Consumes the file, given the fields that preceded it. An exception aborts the request. */
  readonly onFile: (file: FormFile, fields: ReadonlyMap<string, string>) => Promise<T>
}

export interface Form<T> {
  readonly fields: ReadonlyMap<string, string>
  /** The result of `onFile`; null without a file. */
  readonly file: T | null
}

/**
 * Reads a form. Throws 415 for another content type, 413 beyond the bounds, 400 for a form that is malformed, truncated
 * or repeats a field or the file, and what `onFile` throws. Reads nothing further after an error.
 */
export async function readForm<T>(
  contentType: string | null,
  body: RequestBody,
  options: FormOptions<T>,
): Promise<Form<T>> {
  const delimiter = Buffer.from(`\r\n--${parseBoundary(contentType ?? '')}`)
  const { fileBytesMax } = options
  const chunks = body.stream(fileBytesMax + formOverheadBytesMax, {
    tooLarge: () => payloadTooLarge(fileBytesMax),
    endedEarly: malformed,
  })
  // The first delimiter may be at the very start, without a preceding line break.
  const reader = createByteReader(chunks, lineEnd)
  try {
    return await readParts(reader, delimiter, options)
  } catch (error) {
    throw toApiError(error)
  } finally {
    // Cancels the rest of the body; does not wait for a client that sends no more.
    chunks.return(undefined).catch(() => {})
  }
}

const lineEnd = Buffer.from('\r\n')
const headEnd = Buffer.from('\r\n\r\n')
const utf8 = new TextDecoder('utf-8', { fatal: true })

async function readParts<T>(reader: ByteReader, delimiter: Buffer, options: FormOptions<T>): Promise<Form<T>> {
  const fields = new Map<string, string>()
  let file: { readonly taken: T } | null = null
  for await (const _ of reader.until(delimiter));
  for (let parts = 0; await hasPart(reader); parts++) {
    if (parts === formFieldsMax) throw badRequest(`A form has at most ${formFieldsMax} fields`)
    const { name, isFile, contentType } = parseHead(await reader.readUntil(headEnd, formHeadBytesMax))
    if (isFile) {
      if (name !== options.fileName) throw invalidField(name, 'unknown', 'is not a file of this form')
      if (file) throw invalidField(name, 'max', 'is given more than once')
      const body = reader.until(delimiter)
      file = { taken: await options.onFile({ contentType, body }, fields) }
      // Skips what the consumer did not read.
      for await (const _ of body);
    } else {
      const value = await reader.readUntil(delimiter, formFieldBytesMax)
      if (fields.has(name)) throw invalidField(name, 'max', 'is given more than once')
      fields.set(name, decode(name, value))
    }
  }
  return { fields, file: file === null ? null : file.taken }
}

/** After a delimiter follows a line break and another part, or two dashes and the end of the form. */
async function hasPart(reader: ByteReader): Promise<boolean> {
  const mark = (await reader.take(2)).toString('latin1')
  if (mark !== '\r\n' && mark !== '--') throw malformed()
  return mark === '\r\n'
}

interface PartHead {
  readonly name: string
  readonly isFile: boolean
  readonly contentType: string | null
}

/** Parses the headers of a part. File names are ignored: they are untrusted and not used. */
function parseHead(bytes: Buffer): PartHead {
  const lines = bytes.toString('utf8').split('\r\n')
  const headerOf = (name: string): string | null =>
    lines
      .find((line) => line.toLowerCase().startsWith(`${name}:`))
      ?.slice(name.length + 1)
      .trim() ?? null
  const disposition = headerOf('content-disposition') ?? ''
  const name = /;[ \t]*name="([^"]*)"/i.exec(disposition)?.[1] ?? /;[ \t]*name=([^\s;"]+)/i.exec(disposition)?.[1]
  if (!/^form-data[ \t]*;/i.test(disposition) || name === undefined) throw malformed()
  return { name, isFile: /;[ \t]*filename\*?=/i.test(disposition), contentType: headerOf('content-type') }
}

/** RFC 2046 §5.1.1: at most 70 characters, optionally quoted. Throws 415 or 400. */
function parseBoundary(contentType: string): string {
  if (!/^multipart\/form-data[ \t]*;/i.test(contentType)) throw unsupportedMediaType('multipart/form-data')
  const boundary = /;[ \t]*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))[ \t]*(?:;|$)/i.exec(contentType)
  const text = boundary?.[1] ?? boundary?.[2]
  if (text === undefined) throw malformed()
  return text
}

function decode(name: string, bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw invalidField(name, 'pattern', 'is not valid UTF-8')
  }
}

function malformed(cause?: unknown): ApiError {
  const error = badRequest('The form is malformed or ended early')
  error.cause = cause
  return error
}

/** Maps the reader's errors to errors of the API; errors of `onFile` are unchanged. */
function toApiError(error: unknown): unknown {
  if (error instanceof EndedEarly) return malformed(error)
  return error instanceof TooLong ? payloadTooLarge(formFieldBytesMax) : error
}
