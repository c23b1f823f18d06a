/** Patches of one record as one: a later value replaces an earlier one, and increments add up. */

type Operator = { readonly $op?: unknown; readonly value?: unknown }

const operatorOf = (value: unknown): Operator | null =>
  value && typeof value === 'object' && '$op' in value ? (value as Operator) : null

/** The value that has the effect of both; undefined where only both in order have it. */
function mergeValue(earlier: unknown, later: unknown): unknown {
  const operator = operatorOf(later)
  if (!operator || operator.$op === 'deleteField' || earlier === undefined) return later
  if (operator.$op !== 'increment') return undefined
  const by = operator.value as number
  const before = operatorOf(earlier)
  if (before?.$op === 'increment') return { ...before, value: (before.value as number) + by }
  return typeof earlier === 'number' ? earlier + by : undefined
}

/** The patch that has the effect of both; null where there is none. */
export function mergePatches(earlier: object, later: object): object | null {
  const merged: Record<string, unknown> = { ...earlier }
  for (const [field, value] of Object.entries(later)) {
    if (value === undefined) continue
    const both = mergeValue(merged[field], value)
    if (both === undefined) return null
    merged[field] = both
  }
  return merged
}
