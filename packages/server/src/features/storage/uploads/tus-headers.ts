/** Headers of tus requests: version, offsets, the declared file and the type of a body. */
import { invalidField, unsupportedMediaType, unsupportedVersion } from '../../../errors.ts'
import { parseKey } from '../keys.ts'
import { type Metadata, parseMetadataText } from '../metadata.ts'
import { normalizeType } from './content.ts'

export const tusVersion = '1.0.0'
const bodyType = 'application/offset+octet-stream'

/** Throws 412 unless the client declares the supported version. */
export function checkVersion(headers: Headers): void {
  if (headers.get('tus-resumable') === tusVersion) return
  throw unsupportedVersion(`Tus-Resumable must be ${tusVersion}`, { 'Tus-Version': tusVersion })
}

/** Throws 415 unless the body is declared as bytes of an upload. */
export function checkBodyType(headers: Headers): void {
  if (headers.get('content-type') !== bodyType) throw unsupportedMediaType(bodyType)
}

/** Parses a header with a number of bytes. Throws 400. */
export function parseBytes(headers: Headers, name: string): number {
  const text = headers.get(name)
  if (text === null) throw invalidField(name, 'required', 'is required')
  const bytes = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(bytes)) throw invalidField(name, 'type', 'must be an integer number of bytes')
  return bytes
}

/** The file that a creation declares. */
export interface TusCreation {
  /** In bytes. */
  readonly length: number
  readonly key: string
  readonly type: string
  readonly customMetadata: Metadata
}

/** Parses `Upload-Length` and `Upload-Metadata`. Throws 400. */
export function parseCreation(headers: Headers): TusCreation {
  const length = parseBytes(headers, 'Upload-Length')
  const metadata = parseTusMetadata(headers.get('upload-metadata'))
  const key = metadata.get('key')
  if (key === undefined) throw invalidField('key', 'required', 'is required in Upload-Metadata')
  return {
    length,
    key: parseKey(key),
    type: normalizeType(metadata.get('contentType') ?? metadata.get('filetype')),
    customMetadata: parseMetadataText(metadata.get('customMetadata'), 'customMetadata'),
  }
}

/** Parses `Upload-Metadata`. Throws 400 for values that are not base64 of UTF-8 and for duplicate names. */
function parseTusMetadata(text: string | null): ReadonlyMap<string, string> {
  const members = new Map<string, string>()
  for (const pair of text?.trim() ? text.split(',') : []) {
    const [name = '', encoded = '', ...rest] = pair.trim().split(' ')
    const bytes = Buffer.from(encoded, 'base64')
    const value = bytes.toString()
    const isGood =
      name !== '' && rest.length === 0 && bytes.equals(Buffer.from(value)) && /^[\w+/-]*={0,2}$/.test(encoded)
    if (!isGood || members.has(name))
      throw invalidField('Upload-Metadata', 'pattern', 'must be a list of unique names with base64 values')
    members.set(name, value)
  }
  return members
}
