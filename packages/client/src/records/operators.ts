/** Operators: values of an update that the server computes from the stored ones. */
import type { DeleteField, Increment } from '../types/rows.ts'
import type { Row } from './query.ts'

/** Adds a number; a missing value counts as 0. Concurrent increments are never lost. */
export const increment = (by: number): Increment => ({ $op: 'increment', value: by })

/** Sets an optional field to null. */
export const deleteField = (): DeleteField => ({ $op: 'deleteField' })

/** A copy of a row with a patch, whose operators are computed on it. */
export function applyPatch(row: object | null, patch: object): Row {
  const patched = { ...row } as Record<string, unknown>
  for (const [field, value] of Object.entries(patch)) {
    const { $op, value: by } = (value ?? {}) as { $op?: string; value?: number }
    if ($op === 'increment') patched[field] = (Number(patched[field]) || 0) + Number(by)
    else patched[field] = $op === 'deleteField' ? null : value
  }
  return patched as Row
}
