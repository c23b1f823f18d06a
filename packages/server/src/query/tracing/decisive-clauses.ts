/** Which clauses of a traced tree decide its result: the first false part of an `and`, every part of a false `or`. */
import type { Clause } from './trace.ts'

/** Clauses that are named for one result; a wider tree is decided by more than a person reads. */
const decisiveMax = 3

const parentOf = (path: string): string => path.replace(/\.(?:not|(?:and|or)\[\d+\])$/, '')

/** `clauses` are those of one tree: the root first, each node before its parts. An empty clause counts as false. */
export function decisiveClauses(clauses: readonly Clause[]): readonly Clause[] {
  const [root] = clauses
  if (!root) return []
  const parts = new Map<string, Clause[]>()
  for (const clause of clauses.slice(1)) {
    const parent = parentOf(clause.path)
    parts.set(parent, [...(parts.get(parent) ?? []), clause])
  }
  const visit = (clause: Clause): readonly Clause[] => {
    const found = parts.get(clause.path)
    if (!found) return [clause]
    if (found[0]?.path === `${clause.path}.not`) return found.flatMap(visit)
    const isOr = found[0]?.path.startsWith(`${clause.path}.or[`) === true
    // One part decides where it is true in an `or`, or false in an `and`; otherwise all of them together.
    const decider = found.find(({ result }) => (result === true) === isOr)
    return decider ? visit(decider) : found.flatMap(visit)
  }
  return visit(root).slice(0, decisiveMax)
}

const isPart = /\.(?:not|(?:and|or)\[\d+\])(?:\.|$)/

/** The clauses of each tree of a list of trees. */
export function stepsOf(clauses: readonly Clause[]): readonly (readonly Clause[])[] {
  const steps: Clause[][] = []
  for (const clause of clauses)
    if (isPart.test(clause.path)) steps.at(-1)?.push(clause)
    else steps.push([clause])
  return steps
}
