/** The text of a field while it is edited, and the value that it stands for. Invalid text is kept as it was typed. */
import type { FieldDescription } from '../../../app/queries.ts'
import { parseJson } from '../../../text/json.ts'
import { parseTimeText } from '../../../text/parse-time.ts'

/** Text, or null for no value. */
export type Draft = string | null

export type Parsed = { readonly value: unknown } | { readonly error: string }

/** How a field is edited; fields that are not declared hold any JSON. */
export type EditorKind = 'line' | 'text' | 'number' | 'boolean' | 'datetime' | 'json' | 'geo' | 'enum' | 'reference'

export function editorKind(name: string, field: FieldDescription | null): EditorKind {
  if (name === 'id') return 'line'
  if (field === null) return 'json'
  if (field.enum) return 'enum'
  if (field.references !== undefined) return 'reference'
  return field.type === 'string' ? 'line' : field.type
}

const isPoint = (value: unknown): value is readonly [number, number] =>
  Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'number')

/** The text that a value is edited as. */
export function draftOf(kind: EditorKind, value: unknown): Draft {
  if (value === null || value === undefined) return null
  if (kind === 'json') return JSON.stringify(value, null, 2)
  if (kind === 'geo' && isPoint(value)) return value.join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const parseNumber = (text: string): Parsed => {
  const value = Number(text.trim())
  return text.trim() === '' || !Number.isFinite(value) ? { error: 'is not a number' } : { value }
}

function parseTime(text: string): Parsed {
  const time = parseTimeText(text)
  return time === null
    ? { error: 'is not a time; write it as 2026-11-24 09:30:00 or 2026-11-24T09:30:00Z' }
    : { value: time.toISOString() }
}

function parsePoint(text: string): Parsed {
  const parts = text.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)))
  const [longitude = Number.NaN, latitude = Number.NaN] = parts
  const isValid = parts.length === 2 && Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90
  return isValid ? { value: [longitude, latitude] } : { error: 'needs a longitude up to 180 and a latitude up to 90' }
}

function jsonOf(text: string): Parsed {
  const parsed = parseJson(text)
  return 'problem' in parsed ? { error: parsed.problem } : parsed
}

/** The value of a text. */
export function parseDraft(kind: EditorKind, draft: Draft, field: FieldDescription | null): Parsed {
  if (draft === null) return { value: null }
  switch (kind) {
    case 'number':
      return parseNumber(draft)
    case 'boolean':
      return { value: draft === 'true' }
    case 'datetime':
      return parseTime(draft)
    case 'json':
      return jsonOf(draft)
    case 'geo':
      return parsePoint(draft)
    case 'enum':
      return { value: field?.enum?.find((one) => String(one) === draft) ?? draft }
    case 'reference':
      return field?.type === 'number' ? parseNumber(draft) : { value: draft }
    default:
      return { value: draft }
  }
}

/** Fields that the server sets. */
export const isReadOnly = (name: string, field: FieldDescription | null, isNew: boolean): boolean =>
  (name === 'id' && !isNew) || name === 'createdAt' || name === 'updatedAt' || field?.readOnly === true

/** An empty text is a value only where the field holds text. */
export const emptyMeansNull = (name: string, kind: EditorKind, draft: Draft): Draft =>
  draft === '' && (name === 'id' || (kind !== 'line' && kind !== 'text')) ? null : draft
