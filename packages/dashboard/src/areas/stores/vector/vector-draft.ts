/** What is typed into the search of a vector index. */
import { parseJson } from '../../../text/json.ts'
import type { VectorIndex, VectorQuery } from '../requests.ts'

export interface Draft {
  /** A JSON list of numbers, or an id. */
  readonly target: string
  readonly topK: string
  readonly namespace: string
}

export type ParsedDraft = { readonly query: VectorQuery } | { readonly problem: string | null }

/** The search of a draft, or what is wrong with it; null where nothing is typed yet. */
export function parseDraft({ target, topK, namespace }: Draft, { dimensions }: VectorIndex): ParsedDraft {
  const text = target.trim()
  const top = Number(topK)
  if (text === '' || !Number.isInteger(top) || top < 1) return { problem: null }
  const rest = { topK: top, namespace: namespace.trim() || null }
  if (!text.startsWith('[')) return { query: { by: { vectorId: text }, ...rest } }
  const parsed = parseJson(text)
  if ('problem' in parsed) return parsed
  const vector = parsed.value
  if (!isNumbers(vector)) return { problem: 'Must be a list of numbers.' }
  if (vector.length !== dimensions) return { problem: `Must have ${dimensions} numbers, not ${vector.length}.` }
  return { query: { by: { vector }, ...rest } }
}

const isNumbers = (value: unknown): value is readonly number[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'number')
