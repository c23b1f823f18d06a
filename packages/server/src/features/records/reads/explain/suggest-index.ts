/** Finds the index that a query would use, from its conditions and its order. Pure. */
import type { Expr } from '../../../../query/expr.ts'
import type { Sort } from '../../../../query/sort.ts'
import type { Table } from '../../../../query/table.ts'

/** A filter has more conditions than an index should have fields. */
const fieldsMax = 4

/** The conditions that every row of the result satisfies. */
const conjuncts = (condition: Expr): readonly Expr[] => (condition.kind === 'and' ? condition.of : [condition])

/** The fields that the conditions bind to one value; those bound to one of several values follow. */
function boundFields(parts: readonly Expr[]): string[] {
  const one: string[] = []
  const several: string[] = []
  for (const part of parts) {
    if (part.kind === 'compare' && part.op === '==' && typeof part.value !== 'object') one.push(part.field)
    if (part.kind === 'null' && !part.negated) one.push(part.field)
    if (part.kind === 'in' && !part.negated) several.push(part.field)
  }
  return [...one, ...several]
}

const rangeOps: ReadonlySet<string> = new Set(['>', '>=', '<', '<='])

const rangeFields = (parts: readonly Expr[]): string[] =>
  parts.flatMap((part) => (part.kind === 'compare' && rangeOps.has(part.op) ? [part.field] : []))

/** The fields of the sort before the id, which every index ends with; none if the directions differ. */
function sortedFields(sort: Sort): string[] {
  // A distance has no index; its field may have one, for the condition `near`.
  if (sort.some(({ from }) => from)) return []
  const isOneWay = sort.every(({ descending }) => descending === sort[0]?.descending)
  return isOneWay ? sort.map(({ field }) => field).filter((field) => field !== 'id') : []
}

/** The first geo field of a condition that lacks the index it can declare. */
const fieldWithoutIndex = (table: Table, parts: readonly Expr[]): string | null =>
  parts.flatMap((part) => (part.kind === 'geo' && !table.fields.get(part.field)?.index ? [part.field] : []))[0] ?? null

/** Whether an index on `fields` serves the wanted fields, of which the first `bound` may stand in any order. */
function serves(fields: readonly string[], wanted: readonly string[], bound: number): boolean {
  const start = new Set(fields.slice(0, bound))
  return (
    wanted.slice(0, bound).every((field) => start.has(field)) &&
    wanted.slice(bound).every((field, at) => fields[bound + at] === field)
  )
}

/**
 * The fields of an index for rows that satisfy the condition, in the order of the sort: those bound to a value, then
 * those of the sort or else of a range. Null if there are none, or if one of the present indexes has them.
 */
export function suggestIndex(
  table: Table,
  query: { readonly condition: Expr; readonly sort: Sort },
  present: readonly (readonly string[])[],
): readonly string[] | null {
  const unindexed = fieldWithoutIndex(table, conjuncts(query.condition))
  if (unindexed !== null) return [unindexed]
  const canBeIndexed = (name: string): boolean => {
    const type = table.fields.get(name)?.type
    return type !== undefined && type !== 'json' && type !== 'geo' && name !== 'id'
  }
  const parts = conjuncts(query.condition)
  const bound = [...new Set(boundFields(parts))].filter(canBeIndexed)
  const sorted = sortedFields(query.sort)
  const order = sorted.length > 0 ? sorted : rangeFields(parts).slice(0, 1)
  const then = order.every(canBeIndexed) ? order.filter((field) => !bound.includes(field)) : []
  const wanted = [...bound, ...new Set(then)].slice(0, fieldsMax)
  if (wanted.length === 0) return null
  const boundCount = Math.min(bound.length, fieldsMax)
  return present.some((fields) => serves(fields, wanted, boundCount)) ? null : wanted
}

/**
 * Whether no index narrows the rows or has them in order: then every row may be visited or sorted. The condition of a
 * rule alone, which most rows satisfy, is not a reason. By the declared fields only: the engine may know better.
 */
export function scansTable(
  table: Pick<Table, 'fields' | 'indexes'>,
  { condition, sort }: { readonly condition: Expr; readonly sort: Sort },
  isFiltered: boolean,
): boolean {
  const isIndexed = (name: string): boolean => {
    const field = table.fields.get(name)
    if (field?.unique || field?.references !== undefined || field?.index) return true
    return table.indexes.some(({ fields }) => fields[0] === name)
  }
  const parts = conjuncts(condition)
  const narrowed = [...boundFields(parts), ...rangeFields(parts)]
  if (narrowed.some(isIndexed) || parts.some((part) => part.kind === 'geo' && isIndexed(part.field))) return false
  const [first] = sortedFields(sort)
  const isById = sort.length === 1
  return first === undefined ? isFiltered || !isById : !isIndexed(first)
}
