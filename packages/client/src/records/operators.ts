/** Operators: values of an update that the server computes. */

/** A value of an update that the server computes from the stored one. */
export interface Operator {
  readonly $op: string
  readonly value?: number
}

/** Adds a number; a missing value counts as 0. Concurrent increments are never lost. */
export const increment = (by: number): Operator => ({ $op: 'increment', value: by })

/** Sets an optional field to null. */
export const deleteField = (): Operator => ({ $op: 'deleteField' })
