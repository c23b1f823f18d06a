/** Metadata of vectors: validation, and the part that searches can filter by. */
import { isStorableText } from '../../base/text/text.ts'
import type { VectorMetadataValue } from '../../engines/vectors/vectors.ts'
import { invalidField } from '../../errors.ts'
import { vectorMetadataBytesMax } from '../../limits/resources.ts'

type Members = Readonly<Record<string, unknown>>

/**
 * Whether every engine stores and returns the value unchanged: `1e999` is parsed as infinity, which JSON would turn
 * into null.
 */
function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return isStorableText(value)
  if (typeof value === 'number') return Number.isFinite(value)
  if (Array.isArray(value)) return value.every(isStorable)
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).every(([name, inner]) => isStorableText(name) && isStorable(inner))
  return true
}

/** The metadata as JSON, null for none. Throws 400. */
export function formatMetadata(metadata: unknown, field: string): string | null {
  if (metadata === undefined || metadata === null) return null
  if (typeof metadata !== 'object' || Array.isArray(metadata)) throw invalidField(field, 'type', 'must be an object')
  if (!isStorable(metadata))
    throw invalidField(field, 'type', 'must not contain NUL, malformed text, or numbers beyond the range of a double')
  const text = JSON.stringify(metadata)
  if (Buffer.byteLength(text) > vectorMetadataBytesMax)
    throw invalidField(field, 'max', `must have at most ${vectorMetadataBytesMax} bytes as JSON`)
  return text
}

const isIndexable = (value: unknown): value is Exclude<VectorMetadataValue, null> =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

/** Values of the indexed fields; null for missing ones and types that cannot be compared. */
export function indexedMetadata(fields: readonly string[], metadata: string | null): VectorMetadataValue[] {
  if (metadata === null || fields.length === 0) return fields.map(() => null)
  const members = JSON.parse(metadata) as Members
  return fields.map((field) => {
    const value = Object.hasOwn(members, field) ? members[field] : null
    return isIndexable(value) ? value : null
  })
}

/** The part of the metadata that a response contains. */
export type ShownMetadata = 'all' | 'indexed' | 'none'

/** The metadata for a response, from its stored form. */
export function showMetadata(metadata: string | null, shown: ShownMetadata, fields: readonly string[]): Members | null {
  if (metadata === null) return null
  const members = JSON.parse(metadata) as Members
  if (shown === 'all') return members
  return Object.fromEntries(
    fields.filter((field) => Object.hasOwn(members, field)).map((field) => [field, members[field]]),
  )
}
