/**
 * The function that caused a change. Requests of functions carry it in their request id, which the change log stores;
 * clients cannot choose request ids.
 */

export interface Cause {
  readonly function: string
  /** How many functions caused each other up to this one: 1 for one that a client caused. */
  readonly depth: number
}

const pattern = /^fn:([0-9]{1,4}):([^:]+):/

/** `unique` differs for each request. */
export const requestIdOf = (cause: Cause, unique: string): string => `fn:${cause.depth}:${cause.function}:${unique}`

/** Null for a request that no function made. */
export function causeOf(requestId: string): Cause | null {
  const match = pattern.exec(requestId)
  return match ? { depth: Number(match[1]), function: match[2] as string } : null
}
