/** What a view of a table shows: filter, order and search words, as they are in the URL. */

/** `[field, operator, value]` */
export type Condition = readonly [field: string, operator: string, value: unknown]

export interface RowQuery {
  readonly filter: readonly Condition[]
  /** `field:asc` or `field:desc`; null for the order of the table. */
  readonly sort: string | null
  /** Words of a full-text search; null for a list. */
  readonly words: string | null
}

const isCondition = (value: unknown): value is Condition =>
  Array.isArray(value) && value.length === 3 && typeof value[0] === 'string' && typeof value[1] === 'string'

/** The conditions of the parameter `filter`; none for a text that is no list of them. */
export function parseConditions(text: string | null): readonly Condition[] {
  if (text === null) return []
  try {
    const list: unknown = JSON.parse(text)
    return Array.isArray(list) ? list.filter(isCondition) : []
  } catch {
    return []
  }
}

export const formatConditions = (conditions: readonly Condition[]): string | null =>
  conditions.length === 0 ? null : JSON.stringify(conditions)

export const readRowQuery = (get: (name: string) => string | null): RowQuery => ({
  filter: parseConditions(get('filter')),
  sort: get('sort'),
  words: get('q')?.trim() || null,
})

/** The parameters of a request for the rows. */
export const parametersOf = ({ filter, sort, words }: RowQuery): Readonly<Record<string, string>> => ({
  ...(filter.length > 0 ? { filter: JSON.stringify(filter) } : {}),
  ...(sort !== null && words === null ? { sort } : {}),
  ...(words !== null ? { q: words } : {}),
})

export interface SortOrder {
  readonly field: string
  readonly direction: 'asc' | 'desc'
}

export function parseSortOrder(text: string | null): SortOrder | null {
  const [, field, direction] = /^(.+?)(?::(asc|desc))?$/.exec(text ?? '') ?? []
  return field === undefined ? null : { field, direction: direction === 'desc' ? 'desc' : 'asc' }
}

/** Ascending, then descending, then the order of the table. */
export function nextSort(text: string | null, field: string): string | null {
  const current = parseSortOrder(text)
  if (current?.field !== field) return `${field}:asc`
  return current.direction === 'asc' ? `${field}:desc` : null
}
