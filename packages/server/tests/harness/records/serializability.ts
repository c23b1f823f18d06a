/**
 * Whether a history of transactions that read lists and append to them is strictly serializable: the dependencies of
 * the transactions, and their order in time, make no cycle. The final lists have the order of the appends.
 */

/** A committed transaction; times are of one clock. */
export interface Observed {
  readonly id: string
  readonly begin: number
  readonly end: number
  /** The transactions whose appends it has read, by list. */
  readonly reads: ReadonlyMap<string, readonly string[]>
  /** The lists to which it has appended itself, after all its reads. */
  readonly appended: readonly string[]
}

/**
 * What is wrong, as a sentence; null where nothing is. `final` has the transactions of the appends in order, by list.
 */
export function findAnomaly(
  history: readonly Observed[],
  final: ReadonlyMap<string, readonly string[]>,
): string | null {
  const following = new Map(history.map(({ id }) => [id, new Set<string>()]))
  const precedes = (first: string | undefined, second: string | undefined): void => {
    if (first !== undefined && second !== undefined && first !== second) following.get(first)?.add(second)
  }
  for (const order of final.values()) for (const [at, id] of order.entries()) precedes(id, order[at + 1])
  for (const { id, reads } of history)
    for (const [key, read] of reads) {
      const order = final.get(key) ?? []
      if (read.some((one, at) => one !== order[at])) return `${id} has read ${key} as ${read}, which it never was`
      precedes(order[read.length - 1], id)
      precedes(id, order[read.length])
    }
  for (const one of history) for (const other of history) if (one.end < other.begin) precedes(one.id, other.id)
  const cycle = findCycle(following)
  return cycle && `cycle: ${cycle.join(' → ')}`
}

function findCycle(following: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] | null {
  const done = new Set<string>()
  for (const start of following.keys()) {
    const trail: { id: string; rest: string[] }[] = []
    const onTrail = new Set<string>()
    const enter = (id: string): void => {
      trail.push({ id, rest: [...(following.get(id) ?? [])] })
      onTrail.add(id)
    }
    if (!done.has(start)) enter(start)
    for (let top = trail.at(-1); top; top = trail.at(-1)) {
      const next = top.rest.pop()
      if (next === undefined) {
        done.add(top.id)
        onTrail.delete(top.id)
        trail.pop()
      } else if (onTrail.has(next)) {
        const ids = trail.map(({ id }) => id)
        return [...ids.slice(ids.indexOf(next)), next]
      } else if (!done.has(next)) enter(next)
    }
  }
  return null
}
