/**
 * Content types of files. The only module that decides the response headers of user-uploaded bytes; every download uses
 * it.
 */
import { contentTypeCharsMax } from '../../../limits/storage.ts'

export const unknownType = 'application/octet-stream'

const token = "[a-z0-9!#$%&'*+.^_`|~-]+"
const typePattern = new RegExp(`^${token}/${token}$`)

/** Lower case without parameters; `application/octet-stream` for an invalid media type. */
export function normalizeType(text: string | null | undefined): string {
  const type = (text ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return type.length <= contentTypeCharsMax && typePattern.test(type) ? type : unknownType
}

const latin = (bytes: Uint8Array, start: number, end: number): string =>
  Buffer.from(bytes.subarray(start, end)).toString('latin1')

/** Sizes of the BMP header that follows the 14-byte file header. */
const bitmapHeaders = new Set([12, 40, 52, 56, 64, 108, 124])

/** Detects the type of a raster image by its first bytes; null for anything else. */
export function sniffImage(head: Uint8Array): string | null {
  if (latin(head, 0, 8) === '\x89PNG\r\n\x1a\n') return 'image/png'
  if (latin(head, 0, 3) === '\xff\xd8\xff') return 'image/jpeg'
  if (/^GIF8[79]a/.test(latin(head, 0, 6))) return 'image/gif'
  if (latin(head, 0, 4) === 'RIFF' && latin(head, 8, 12) === 'WEBP') return 'image/webp'
  if (/^ftypavi[fs]/.test(latin(head, 4, 12))) return 'image/avif'
  if (latin(head, 0, 2) === 'BM' && bitmapHeaders.has(head[14] ?? 0) && latin(head, 15, 18) === '\0\0\0')
    return 'image/bmp'
  return null
}

const passiveTypes = new Set([
  ...['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp'],
  'text/plain',
])
const passiveKinds = /^(?:audio|video|font)\//

/** Whether browsers never execute anything in files of this type. */
export const isPassive = (type: string): boolean => passiveTypes.has(type) || passiveKinds.test(type)

/** `filename` in plain ASCII, plus `filename*` with the full name if it differs (RFC 6266, RFC 8187). */
function fileNameParameters(key: string): string {
  const name = key.slice(key.lastIndexOf('/') + 1)
  const plain = name.replace(/[^A-Za-z0-9._-]/g, '_')
  const full = encodeURIComponent(name).replace(/['()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
  return plain === name ? `filename="${plain}"` : `filename="${plain}"; filename*=UTF-8''${full}`
}

/** Headers that prevent browsers from executing stored files; every response of the server has `nosniff`. */
export function contentHeaders(key: string, type: string): Record<string, string> {
  const name = fileNameParameters(key)
  if (isPassive(type)) return { 'Content-Type': type, 'Content-Disposition': `inline; ${name}` }
  return {
    'Content-Type': unknownType,
    'Content-Disposition': `attachment; ${name}`,
    'Content-Security-Policy': "sandbox; default-src 'none'",
  }
}
