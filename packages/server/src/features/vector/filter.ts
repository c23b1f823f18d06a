/** Parses metadata filters of searches into conditions that every search engine supports. */
import { isStorableText } from '../../base/text/text.ts'
import type { VectorCondition, VectorMetadataValue } from '../../engines/vectors/vectors.ts'
import { badRequest, type FieldErrorCode, invalidField } from '../../errors.ts'
import { filterConditionsMax, inValuesMax } from '../../limits/api.ts'
import { vectorFieldNameCharsMax } from '../../limits/resources.ts'

const comparisons = { $eq: '=', $ne: '!=', $gt: '>', $gte: '>=', $lt: '<', $lte: '<=' } as const
const lists = { $in: 'in', $nin: 'not in' } as const
const operatorNames = [...Object.keys(comparisons), ...Object.keys(lists)].join(', ')

/** Throws 400 for an invalid filter. */
export function parseFilter(filter: unknown, fields: readonly string[]): readonly VectorCondition[] {
  if (filter === undefined) return []
  if (typeof filter !== 'object' || filter === null || Array.isArray(filter))
    throw invalidField('filter', 'type', 'must be an object')
  const conditions: VectorCondition[] = []
  for (const [field, wanted] of Object.entries(filter)) {
    if (!fields.includes(field))
      throw mistake(field, 'unknown', `is not a metadata index; declared are: ${fields.join(', ') || 'none'}`)
    conditions.push(...parseMember(field, wanted))
    if (conditions.length > filterConditionsMax)
      throw badRequest(`filter: must have at most ${filterConditionsMax} conditions`)
  }
  return conditions
}

/** Truncates the field's name, so that the error stays short. */
const mistake = (field: string, code: FieldErrorCode, message: string): Error =>
  invalidField(`filter.${field.slice(0, vectorFieldNameCharsMax).toWellFormed()}`, code, message)

function parseMember(field: string, wanted: unknown): VectorCondition[] {
  if (typeof wanted !== 'object' || wanted === null) return [{ field, operator: '=', value: parseValue(field, wanted) }]
  const operators = Array.isArray(wanted) ? [] : Object.entries(wanted)
  if (operators.length === 0)
    throw mistake(field, 'type', 'must be a string, a number, true, false, null, or an object of operators')
  return operators.map(([name, value]) => parseOperator(field, name, value))
}

function parseOperator(field: string, name: string, value: unknown): VectorCondition {
  if (Object.hasOwn(lists, name)) {
    const operator = lists[name as keyof typeof lists]
    return { field, operator, values: parseList(field, name, value) }
  }
  if (!Object.hasOwn(comparisons, name)) throw mistake(field, 'operator', `must be one of ${operatorNames}`)
  const operator = comparisons[name as keyof typeof comparisons]
  const parsed = parseValue(field, value)
  if (operator !== '=' && operator !== '!=' && typeof parsed !== 'number' && typeof parsed !== 'string')
    throw mistake(field, 'type', `${name} compares strings and numbers`)
  return { field, operator, value: parsed }
}

function parseList(field: string, name: string, value: unknown): readonly VectorMetadataValue[] {
  if (!Array.isArray(value)) throw mistake(field, 'type', `${name} takes an array`)
  if (value.length > inValuesMax) throw mistake(field, 'max', `${name} takes at most ${inValuesMax} values`)
  return value.map((item) => parseValue(field, item))
}

function parseValue(field: string, value: unknown): VectorMetadataValue {
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (typeof value === 'string' && isStorableText(value)) return value
  throw mistake(field, 'type', 'must be compared with a string without NUL, a number, true, false or null')
}
