/** Operators: values of an update that the server computes from the stored ones. */
import type { DeleteField, Increment } from '../types/rows.ts'

/** Adds a number; a missing value counts as 0. Concurrent increments are never lost. */
export const increment = (by: number): Increment => ({ $op: 'increment', value: by })

/** Sets an optional field to null. */
export const deleteField = (): DeleteField => ({ $op: 'deleteField' })
