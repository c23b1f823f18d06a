/** Validates vectors of requests against their index. */
import { isStorableText } from '../../base/text/text.ts'
import type { VectorIndexDefinition } from '../../config/sections/vector/vector.ts'
import { ApiError, type FieldError, invalid, invalidField } from '../../errors.ts'
import { fieldErrorsMax } from '../../limits/api.ts'
import { vectorIdBytesMax, vectorLengthMin, vectorNamespaceBytesMax, vectorValueMax } from '../../limits/resources.ts'
import { formatMetadata } from './metadata.ts'

/** A vector to be stored. */
export interface NewVector {
  readonly id: string
  /** Empty for none. */
  readonly namespace: string
  /** JSON, or null for none. */
  readonly metadata: string | null
  readonly values: Float32Array
}

/** A vector as sent by the client. */
export interface WrittenVector {
  readonly id: string
  readonly values?: unknown
  readonly metadata?: unknown
  readonly namespace?: string | null | undefined
}

/** The error of a name, or null. */
function findNameMistake(text: string, bytesMax: number): string | null {
  if (text === '') return 'must not be empty'
  if (!isStorableText(text) || /\p{Cc}/u.test(text)) return 'must be well-formed text without control characters'
  return Buffer.byteLength(text) > bytesMax ? `must have at most ${bytesMax} bytes of UTF-8` : null
}

/** The error of an id, or null. */
export const findIdMistake = (id: string): string | null => findNameMistake(id, vectorIdBytesMax)

/** The error of a namespace's name, or null. */
export const findNamespaceMistake = (name: string): string | null => findNameMistake(name, vectorNamespaceBytesMax)

/** The numbers of a vector, rounded to 32-bit floats. Throws 400. */
export function parseValues(
  values: unknown,
  { dimensions, metric }: VectorIndexDefinition,
  field: string,
): Float32Array {
  if (values === undefined) throw invalidField(field, 'required', 'is required')
  if (!Array.isArray(values)) throw invalidField(field, 'type', 'must be an array of numbers')
  const { length } = values
  if (length !== dimensions)
    throw invalidField(field, length < dimensions ? 'min' : 'max', `must have ${dimensions} numbers, not ${length}`)
  const floats = new Float32Array(dimensions)
  let squares = 0
  for (let at = 0; at < dimensions; at++) {
    const value = values[at] as unknown
    if (typeof value !== 'number' || !(Math.abs(value) <= vectorValueMax))
      throw invalidField(`${field}[${at}]`, 'type', `must be a number from ${-vectorValueMax} to ${vectorValueMax}`)
    floats[at] = value
    squares += (floats[at] as number) ** 2
  }
  if (metric === 'cosine' && squares < vectorLengthMin ** 2)
    throw invalidField(field, 'min', 'must not be the zero vector, which has no direction')
  return floats
}

/** The vectors of a request. Throws 400 that names each invalid vector and each duplicate id. */
export function parseVectors(
  written: readonly WrittenVector[],
  namespace: string,
  definition: VectorIndexDefinition,
): readonly NewVector[] {
  const mistakes: Record<string, FieldError> = {}
  let found = 0
  const note = (data: ApiError['data'] = {}): void => {
    for (const [field, mistake] of Object.entries(data)) if (found++ < fieldErrorsMax) mistakes[field] = mistake
  }
  const vectors: NewVector[] = []
  const ids = new Set<string>()
  for (const [at, vector] of written.entries()) {
    const { id } = vector
    if (ids.has(id)) note({ [`vectors[${at}].id`]: { code: 'unique', message: 'is a duplicate' } })
    ids.add(id)
    try {
      vectors.push({
        id,
        namespace: vector.namespace ?? namespace,
        metadata: formatMetadata(vector.metadata, `vectors[${at}].metadata`),
        values: parseValues(vector.values, definition, `vectors[${at}].values`),
      })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      note(error.data)
    }
  }
  if (found > 0) throw invalid(mistakes)
  return vectors
}
