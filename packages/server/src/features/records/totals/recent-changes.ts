/**
 * The last changes of a table, kept for all of its totals: whatever moves the snapshot, also a write to another table,
 * the log is read once, and not for each total that is requested next.
 */

import { createCoalescer } from '../../../base/batching/coalescer.ts'
import type { Clock } from '../../../base/clock.ts'
import { createLru } from '../../../base/concurrency/lru.ts'
import type { Follow } from '../../../engines/sql/dialect.ts'
import { ident } from '../../../engines/sql/sql-text.ts'
import { followedBytesMax, followedChangesMax, followedKeptBytes, followedTablesMax } from '../../../limits/postgres.ts'
import type { Expr } from '../../../query/expr.ts'
import type { Row } from '../../../query/matches.ts'
import { changeLog, movedBy, parseRecord, readBefore } from '../changes/changes.ts'
import { mayBeTrimmed } from '../changes/trim.ts'
import type { TableCall } from '../resolve-table.ts'

/** A state of the log. */
export interface LogState {
  readonly snapshot: string
  /** When the snapshot was taken; the log must reach back to that time. */
  readonly atMs: number
}

interface LogChange {
  readonly before: Row | null
  readonly after: Row | null
  readonly position: number
}

/** What the log has since a snapshot, up to that of the statement. */
interface ChangesSince {
  readonly snapshot: string
  readonly fits: boolean
  readonly changes: string | null
}

/** What one statement read. */
interface Part {
  /** The changes are those after this snapshot. */
  readonly from: string
  readonly changes: readonly LogChange[]
  readonly chars: number
}

/** All changes of a table after the snapshot of the first part, up to this one. */
interface Tail extends LogState {
  readonly parts: readonly Part[]
}

export interface RecentChanges {
  /** Keeps the changes from a state on, unless some are kept. */
  keepFrom(call: TableCall, state: LogState): void
  /**
   * By how much a total differs at a state from that at a known one, in either direction, now unless `to` is given.
   * Null if too much has changed between them.
   */
  difference(call: TableCall, expr: Expr, known: LogState, to?: LogState): Promise<Difference | null>
  clear(): void
}

/** What to add to a known total for that at a state of the log. */
export interface Difference extends LogState {
  readonly by: number
}

const bounds = { limit: followedChangesMax + 1, bytesMax: followedBytesMax }

const startOf = ({ parts, snapshot }: Tail): string => parts[0]?.from ?? snapshot

/** Removes the first parts, until the others are within the bounds. */
function trimmed(tail: Tail): Tail {
  const parts = [...tail.parts]
  let changes = parts.reduce((sum, part) => sum + part.changes.length, 0)
  let chars = parts.reduce((sum, part) => sum + part.chars, 0)
  while (changes > followedChangesMax || chars > followedKeptBytes) {
    const first = parts.shift() as Part
    changes -= first.changes.length
    chars -= first.chars
  }
  return { ...tail, parts }
}

function parseChanges(text: string | null): LogChange[] {
  const changes = text === null ? [] : (JSON.parse(text) as [string | null, string | null, number][])
  return changes.map(([before, afterText, position]) => {
    const after = parseRecord(afterText)
    return { before: readBefore(before, after), after, position }
  })
}

export function createRecentChanges(clock: Clock): RecentChanges {
  const tails = createLru<string, Tail>(followedTablesMax)
  const extensions = createCoalescer<Tail>()

  const keyOf = ({ address, table }: TableCall): string =>
    JSON.stringify([address.namespace, address.instanceId, table.name])

  /** The tail with the changes since. It begins now if there are too many, or if some may have been deleted. */
  async function extend({ database, address, table }: TableCall, follow: Follow, tail: Tail): Promise<Tail> {
    const atMs = clock.now()
    const log = database.dialect.from(changeLog(table), ident('_changes'))
    const [row] = await database.all<ChangesSince>(follow.changesSince(log, table.name, tail.snapshot, bounds))
    const { snapshot, fits, changes: text } = row as ChangesSince
    const changes = parseChanges(text)
    const isTooMuch = !fits || changes.length > followedChangesMax
    if (isTooMuch || (await mayBeTrimmed(database, address.namespace, tail, clock.now())))
      return { snapshot, atMs, parts: [] }
    const part = { from: tail.snapshot, changes, chars: text?.length ?? 0 }
    return { snapshot, atMs, parts: changes.length > 0 || tail.parts.length === 0 ? [...tail.parts, part] : tail.parts }
  }

  /** Extends what is kept, once for all concurrent calls. */
  const extendKept = (call: TableCall, follow: Follow, kept: Tail): Promise<Tail> =>
    extensions.run(keyOf(call), async () => {
      const extended = await extend(call, follow, tails.get(keyOf(call)) ?? kept)
      tails.set(keyOf(call), trimmed(extended))
      return extended
    })

  /** What has changed since a state from before all that is kept; it is kept instead unless it is too much. */
  async function begin(call: TableCall, follow: Follow, from: LogState): Promise<Tail> {
    const begun = await extend(call, follow, { ...from, parts: [] })
    if (begun.parts.length > 0) tails.set(keyOf(call), trimmed(begun))
    return begun
  }

  return {
    keepFrom(call, state) {
      if (!tails.get(keyOf(call))) tails.set(keyOf(call), { ...state, parts: [] })
    },
    async difference(call, expr, known, to) {
      const { follow } = call.database.dialect
      if (!follow) return null
      if (known.snapshot === to?.snapshot) return { ...to, by: 0 }
      const earlier = to && follow.isWithin(to.snapshot, known.snapshot) ? to : known
      const later = earlier === known ? to : known
      let tail = tails.get(keyOf(call))
      if (!tail || !follow.isWithin(startOf(tail), earlier.snapshot)) tail = await begin(call, follow, earlier)
      else if (!later || !follow.isWithin(later.snapshot, tail.snapshot)) tail = await extendKept(call, follow, tail)
      const [start, end, at] = [startOf(tail), tail.snapshot, to ?? tail]
      const isCovered = [known, at].every(
        ({ snapshot }) => follow.isWithin(start, snapshot) && follow.isWithin(snapshot, end),
      )
      if (!isCovered) return null
      return { snapshot: at.snapshot, atMs: at.atMs, by: movement(follow, expr, tail, known.snapshot, at.snapshot) }
    },
    clear: () => tails.clear(),
  }
}

/** By how much a total moves from one snapshot to another, both within a tail. */
function movement({ isWithin, visibleIn }: Follow, expr: Expr, tail: Tail, from: string, to: string): number {
  const [isInFrom, isInTo] = [visibleIn(from), visibleIn(to)]
  let by = 0
  let end = tail.snapshot
  for (let at = tail.parts.length - 1; at >= 0 && !(isWithin(end, from) && isWithin(end, to)); at--) {
    const part = tail.parts[at] as Part
    const added = part.changes.filter(({ position }) => isInTo(position) && !isInFrom(position))
    const taken = part.changes.filter(({ position }) => isInFrom(position) && !isInTo(position))
    by += movedBy(expr, added) - movedBy(expr, taken)
    end = part.from
  }
  return by
}
