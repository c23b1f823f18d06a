/** Metadata of vectors: what may be stored, and what of it searches can filter by. */
import { isStorableText } from '../../base/text/text.ts'
import type { VectorMetadataValue } from '../../engines/vectors/vectors.ts'
import { invalidField } from '../../errors.ts'
import { vectorMetadataBytesMax } from '../../limits/resources.ts'

type Members = Readonly<Record<string, unknown>>

/** Whether every engine stores and returns it unchanged: `1e999` is read as infinity, which JSON would make null. */
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
    throw invalidField(field, 'type', 'must not hold NUL, broken characters, or numbers beyond the range of a double')
  const text = JSON.stringify(metadata)
  if (Buffer.byteLength(text) > vectorMetadataBytesMax)
    throw invalidField(field, 'max', `must have at most ${vectorMetadataBytesMax} bytes as JSON`)
  return text
}

const isIndexable = (value: unknown): value is Exclude<VectorMetadataValue, null> =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

/** The values of the indexed fields, null for those that are missing or of no type that can be compared. */
export function indexedMetadata(fields: readonly string[], metadata: string | null): VectorMetadataValue[] {
  if (metadata === null || fields.length === 0) return fields.map(() => null)
  const members = JSON.parse(metadata) as Members
  return fields.map((field) => {
    const value = Object.hasOwn(members, field) ? members[field] : null
    return isIndexable(value) ? value : null
  })
}

/** How much of the metadata an answer shows. */
export type ShownMetadata = 'all' | 'indexed' | 'none'

/** Metadata as it is shown, from what is stored. */
export function showMetadata(metadata: string | null, shown: ShownMetadata, fields: readonly string[]): Members | null {
  if (metadata === null) return null
  const members = JSON.parse(metadata) as Members
  if (shown === 'all') return members
  return Object.fromEntries(
    fields.filter((field) => Object.hasOwn(members, field)).map((field) => [field, members[field]]),
  )
}
