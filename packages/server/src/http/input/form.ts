/**
 * Form data with one file (RFC 7578), read as it comes: the file goes on in pieces while the rest is still on its way,
 * and a slow taker slows the sender. What fields and file mean is the endpoint's matter.
 */
import { type ApiError, badRequest, invalidField, payloadTooLarge, unsupportedMediaType } from '../../errors.ts'
import { formFieldBytesMax, formFieldsMax, formHeadBytesMax, formOverheadBytesMax } from '../../limits/storage.ts'
import { type ByteReader, createByteReader, EndedEarly, TooLong } from './byte-reader.ts'
import type { RequestBody } from './request-body.ts'

export interface FormFile {
  /** As the part says it, or null where it says nothing. */
  readonly contentType: string | null
  readonly body: AsyncIterable<Uint8Array>
}

export interface FormOptions<T> {
  /** Name of the one field that is a file. */
  readonly fileName: string
  /** What may come beside `formOverheadBytesMax`. */
  readonly fileBytesMax: number
  /** Takes the file, with the fields that stood before it. What it throws ends the reading. */
  readonly onFile: (file: FormFile, fields: ReadonlyMap<string, string>) => Promise<T>
}

export interface Form<T> {
  readonly fields: ReadonlyMap<string, string>
  /** What `onFile` gave; null without a file. */
  readonly file: T | null
}

/**
 * Reads the whole form. Throws 415 for another content type, 413 beyond the bounds, 400 for a form that is malformed,
 * ends early, or gives a field or a file twice; and what `onFile` throws. Nothing is read on after a throw.
 */
export async function readForm<T>(
  contentType: string | null,
  body: RequestBody,
  options: FormOptions<T>,
): Promise<Form<T>> {
  const delimiter = Buffer.from(`\r\n--${parseBoundary(contentType ?? '')}`)
  const { fileBytesMax } = options
  const pieces = body.stream(fileBytesMax + formOverheadBytesMax, {
    tooLarge: () => payloadTooLarge(fileBytesMax),
    endedEarly: malformed,
  })
  // The first delimiter may stand at the very start, without the line that it ends.
  const reader = createByteReader(pieces, lineEnd)
  try {
    return await readParts(reader, delimiter, options)
  } catch (error) {
    throw refusalOf(error)
  } finally {
    // Has the runtime drop what is still to come; a sender that sends no more is not waited for.
    pieces.return(undefined).catch(() => {})
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
      // A taker that did not want the file has not read it.
      for await (const _ of body);
    } else {
      const value = await reader.readUntil(delimiter, formFieldBytesMax)
      if (fields.has(name)) throw invalidField(name, 'max', 'is given more than once')
      fields.set(name, decode(name, value))
    }
  }
  return { fields, file: file === null ? null : file.taken }
}

/** After a delimiter: a line's end and another part, or two dashes and the end of the form. */
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

/** What counts among a part's headers. Names of files may hold anything and are of no use, so they are not read. */
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

/** RFC 2046 §5.1.1: at most 70 characters, quoted where need be. Throws 415 or 400. */
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

/** What the reader says, as the API says it; what `onFile` throws of its own accord stays what it is. */
function refusalOf(error: unknown): unknown {
  if (error instanceof EndedEarly) return malformed(error)
  return error instanceof TooLong ? payloadTooLarge(formFieldBytesMax) : error
}
