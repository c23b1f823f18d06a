/**
 * Snapshots of PostgreSQL as text, `xmin:xmax:xip,…`: the transactions before `xmax`, the first that had not begun,
 * without those of the list, which were in progress. Those before `xmin` had all ended.
 */

/** Whether a transaction that has committed is visible in a snapshot. */
export function visibleIn(snapshot: string): (xid: number) => boolean {
  const { xmin, xmax, running } = parse(snapshot)
  return (xid) => xid < xmin || (xid < xmax && !running.includes(xid))
}

/** Whether everything visible in one snapshot is visible in the other. */
export function isWithin(snapshot: string, other: string): boolean {
  if (snapshot === other) return true
  const [inner, outer] = [parse(snapshot), parse(other)]
  return inner.xmax <= outer.xmax && outer.running.every((xid) => xid >= inner.xmax || inner.running.includes(xid))
}

/** Whether transactions had begun when a snapshot was taken, and not when another was. */
export const isAhead = (snapshot: string, of: string): boolean => parse(snapshot).xmax > parse(of).xmax

/** Whether a transaction may be outside of a snapshot: all before `xmin` are in it. */
export const isBeyond = (xid: number, snapshot: string): boolean => xid >= parse(snapshot).xmin

interface Snapshot {
  readonly xmin: number
  readonly xmax: number
  readonly running: readonly number[]
}

function parse(snapshot: string): Snapshot {
  const [xmin, xmax = 0, running] = snapshot.split(':')
  return { xmin: Number(xmin), xmax: Number(xmax), running: running ? running.split(',').map(Number) : [] }
}
