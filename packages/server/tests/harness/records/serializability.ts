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

/** A committed transaction that reads the last writer of registers and writes some of those that it has read. */
export interface ObservedRegisters {
  readonly id: string
  readonly begin: number
  readonly end: number
  /** The transaction that had written each register last; null for none. */
  readonly reads: ReadonlyMap<string, string | null>
  readonly written: readonly string[]
}

/**
 * What is wrong with a history in which each write of a register follows a read of it, so that the reads give the order
 * of the writes; null where nothing is. `final` has the last writer of each register. Takes time in proportion to the
 * history.
 */
export function findRegisterAnomaly(
  history: readonly ObservedRegisters[],
  final: ReadonlyMap<string, string | null>,
): string | null {
  const following = new Map(history.map(({ id }) => [id, new Set<string>()]))
  const precedes = (first: string | null | undefined, second: string): void => {
    if (typeof first === 'string' && first !== second) following.get(first)?.add(second)
  }
  for (const [register, last] of final) {
    const writers = history.filter(({ written }) => written.includes(register))
    const nextOf = new Map(writers.map(({ id, reads }) => [reads.get(register) ?? null, id]))
    if (nextOf.size < writers.length) return `an update of ${register} is lost`
    let [count, at]: [number, string | null] = [0, null]
    for (let next = nextOf.get(at); next !== undefined && count < writers.length; next = nextOf.get(at)) {
      precedes(at, next)
      at = next
      count++
    }
    if (count < writers.length || at !== last) return `the writes of ${register} do not end in ${last}`
    for (const { id, reads } of history) {
      if (!reads.has(register)) continue
      const read = reads.get(register) ?? null
      precedes(read, id)
      const next = nextOf.get(read)
      if (next !== undefined) precedes(id, next)
    }
  }
  addTimeline(history, following)
  const cycle = findCycle(following)
  return cycle && `cycle: ${cycle.join(' → ')}`
}

/** A committed transaction that reads the states of registers and leaves others in some of those that it has read. */
export interface ObservedStates {
  readonly id: string
  readonly begin: number
  readonly end: number
  readonly reads: Readonly<Record<string, string>>
  readonly left: Readonly<Record<string, string>>
}

/**
 * What is wrong with a history in which no register has a state twice, so that a state has one writer; null where
 * nothing is. `initial` and `final` have the states before and after the history.
 */
export function findStateAnomaly(
  history: readonly ObservedStates[],
  initial: Readonly<Record<string, string>>,
  final: Readonly<Record<string, string>>,
): string | null {
  const writers = new Map(
    Object.entries(initial).map(([name, state]) => [name, new Map<string, string | null>([[state, null]])]),
  )
  for (const { id, left } of history)
    for (const [name, state] of Object.entries(left)) {
      if (writers.get(name)?.has(state)) return `${id} has left ${name} as ${state}, which it was before`
      writers.get(name)?.set(state, id)
    }
  const unknown: string[] = []
  const writersOf = (id: string, states: Readonly<Record<string, string>>): ReadonlyMap<string, string | null> =>
    new Map(
      Object.entries(states).map(([name, state]) => {
        const writer = writers.get(name)?.get(state)
        if (writer === undefined) unknown.push(`${id} has ${name} as ${state}, which it never was`)
        return [name, writer ?? null]
      }),
    )
  const observed = history.map(({ id, begin, end, reads, left }) => ({
    id,
    begin,
    end,
    reads: writersOf(id, reads),
    written: Object.keys(left),
  }))
  const last = writersOf('the end', final)
  return unknown[0] ?? findRegisterAnomaly(observed, last)
}

/** The order in time, by a node for each end: one edge to it and one from it for each transaction. */
function addTimeline(history: readonly ObservedRegisters[], following: Map<string, Set<string>>): void {
  const ends = [...history].sort((a, b) => a.end - b.end)
  for (const [at, { id }] of ends.entries()) {
    following.get(id)?.add(`end ${at}`)
    following.set(`end ${at}`, new Set(at + 1 < ends.length ? [`end ${at + 1}`] : []))
  }
  const begins = [...history].sort((a, b) => a.begin - b.begin)
  let before = 0
  for (const { id, begin } of begins) {
    while (before < ends.length && (ends[before] as ObservedRegisters).end < begin) before++
    if (before > 0) following.get(`end ${before - 1}`)?.add(id)
  }
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
