/** Custom metadata: what users may say of a file, as objects show it and as rules find it. */
import { isStorableText } from '../../base/text/text.ts'
import { type FieldErrors, invalid, invalidField } from '../../errors.ts'
import { fieldErrorsMax } from '../../limits/api.ts'
import { customMetadataBytesMax, customMetadataNameCharsMax } from '../../limits/storage.ts'
import { findUndeclaredNameError } from '../../query/field-name.ts'

export type Metadata = Readonly<Record<string, string>>

/** Prefix of the names under which rules access custom metadata. */
const prefix = 'customMetadata.'

/** Throws 400 naming every invalid member, or `field` if the value is not an object or is too large. */
export function parseMetadata(value: unknown, field: string): Metadata {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidField(field, 'type', 'must be an object of strings')
  const mistakes: Record<string, FieldErrors[string]> = {}
  for (const [name, text] of Object.entries(value)) {
    const wrongName =
      name.length > customMetadataNameCharsMax
        ? `must have at most ${customMetadataNameCharsMax} characters`
        : findUndeclaredNameError(name)
    const at = `${field}.${name.slice(0, customMetadataNameCharsMax)}`
    if (wrongName !== null) mistakes[at] = { code: 'pattern', message: wrongName }
    else if (typeof text !== 'string') mistakes[at] = { code: 'type', message: 'must be a string' }
    else if (!isStorableText(text)) mistakes[at] = { code: 'pattern', message: 'must be text without NUL' }
    if (Object.keys(mistakes).length >= fieldErrorsMax) break
  }
  if (Object.keys(mistakes).length > 0) throw invalid(mistakes)
  if (Buffer.byteLength(JSON.stringify(value)) > customMetadataBytesMax)
    throw invalidField(field, 'max', `must have at most ${customMetadataBytesMax} bytes of JSON`)
  return value as Metadata
}

/** As `parseMetadata`, from JSON text; undefined is empty metadata. */
export function parseMetadataText(text: string | undefined, field: string): Metadata {
  if (text === undefined) return {}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalidField(field, 'type', 'must be JSON')
  }
  return parseMetadata(value, field)
}

/** Custom metadata under the names that rules use. */
export const toExtra = (metadata: Metadata): Record<string, string> =>
  Object.fromEntries(Object.entries(metadata).map(([name, text]) => [prefix + name, text]))

/** The inverse of `toExtra`. */
export const fromExtra = (extra: Metadata): Record<string, string> =>
  Object.fromEntries(Object.entries(extra).map(([name, text]) => [name.slice(prefix.length), text]))
