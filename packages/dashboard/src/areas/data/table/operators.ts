/** The operators of filters by the type of a field, and the text of their values. */
import type { FieldDescription } from '../../../app/queries.ts'
import { parseTimeText } from '../../../text/parse-time.ts'
import type { Condition } from '../rows/row-query.ts'

/** Choices of a filter. Those about null have no value of their own. */
export const operatorNames = {
  '==': 'is',
  '!=': 'is not',
  contains: 'contains',
  '>': 'is more than',
  '>=': 'is at least',
  '<': 'is less than',
  '<=': 'is at most',
  in: 'is one of',
  'not in': 'is none of',
  empty: 'is null',
  'not empty': 'is not null',
} as const

export type OperatorId = keyof typeof operatorNames

const comparing: readonly OperatorId[] = ['==', '!=', '>', '>=', '<', '<=', 'in', 'not in', 'empty', 'not empty']
const texts: readonly OperatorId[] = ['==', '!=', 'contains', 'in', 'not in', '>', '<', 'empty', 'not empty']

export function operatorsOf(field: FieldDescription | null): readonly OperatorId[] {
  if (field === null) return [...texts]
  switch (field.type) {
    case 'number':
    case 'datetime':
      return comparing
    case 'boolean':
      return ['==', '!=', 'empty', 'not empty']
    case 'json':
      return ['contains', 'empty', 'not empty']
    case 'geo':
      return ['empty', 'not empty']
    default:
      return field.enum ? ['==', '!=', 'in', 'not in', 'empty', 'not empty'] : texts
  }
}

/** A condition while it is edited. */
export interface FilterDraft {
  readonly field: string
  readonly operator: OperatorId
  readonly text: string
}

export function draftOf([field, operator, value]: Condition): FilterDraft {
  if (value === null && operator === '==') return { field, operator: 'empty', text: '' }
  if (value === null && operator === '!=') return { field, operator: 'not empty', text: '' }
  const text = Array.isArray(value)
    ? value.map(String).join(', ')
    : typeof value === 'string'
      ? value
      : JSON.stringify(value)
  return { field, operator: operator as OperatorId, text }
}

export const hasValue = (operator: OperatorId): boolean => operator !== 'empty' && operator !== 'not empty'

function parseValue(text: string, field: FieldDescription | null): unknown {
  const written = text.trim()
  if (field?.type === 'number') return written === '' || Number.isNaN(Number(written)) ? text : Number(written)
  if (field?.type === 'boolean') return written === 'true'
  if (field?.type === 'datetime') return parseTimeText(written)?.toISOString() ?? text
  if (field !== null) return text
  // Of a field that is not declared, a number is meant as one.
  return /^-?\d+(?:\.\d+)?$/.test(written)
    ? Number(written)
    : written === 'true'
      ? true
      : written === 'false'
        ? false
        : text
}

export function conditionOf({ field, operator, text }: FilterDraft, description: FieldDescription | null): Condition {
  if (operator === 'empty') return [field, '==', null]
  if (operator === 'not empty') return [field, '!=', null]
  if (operator !== 'in' && operator !== 'not in') return [field, operator, parseValue(text, description)]
  const values = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
  return [field, operator, values.map((part) => parseValue(part, description))]
}

export function describeCondition(condition: Condition): string {
  const { field, operator, text } = draftOf(condition)
  const name = operatorNames[operator] ?? operator
  return hasValue(operator) ? `${field} ${name} ${text}` : `${field} ${name}`
}
