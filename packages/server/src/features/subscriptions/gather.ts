/**
 * Gathers the changes between two places that matter to one subscription: those of its own rows, and those of the rows
 * that its rule depends on. What they come to is `reconcile`'s.
 */
import { dependencyGroupsMax, gatheredChangesMax, gatheredCharsMax } from '../../limits/subscriptions.ts'
import type { Change, Place, Span } from './feed.ts'
import { TooMuchChanged } from './judge.ts'
import type { Sight } from './sight.ts'
import { matters } from './views.ts'

/** A change of a row, and how many groups of changes of other tables come before it. */
interface Step {
  readonly change: Change
  readonly groupsBefore: number
}

/** A change of a row of another table, and the group it is in. */
interface Other {
  readonly change: Change
  readonly group: number
}

export interface Gathered {
  readonly from: Place
  readonly to: Place
  /** Changes of the subscription's rows, by id in order of the first. */
  readonly rows: ReadonlyMap<string, readonly Step[]>
  /**
   * Changes of other tables that may change what the rule decides. Those of one request that follow one another are a
   * group: where groups end depends on nothing but the log, so that a client which comes back finds the same ones.
   */
  readonly others: readonly Other[]
}

/** The changes of other tables, one group for each state of the condition. Throws `TooMuchChanged`. */
export function groupsOf({ others }: Gathered): readonly (readonly Change[])[] {
  if ((others.at(-1)?.group ?? 0) >= dependencyGroupsMax) throw new TooMuchChanged('Too much has changed')
  const groups: Change[][] = []
  for (const { change, group } of others) {
    const found = groups[group]
    if (found) found.push(change)
    else groups[group] = [change]
  }
  return groups
}

/** Takes changes page by page, in order. */
export function createGathering({ call, tables, dependencies }: Sight, from: Place) {
  const rows = new Map<string, Step[]>()
  const others: Other[] = []
  const dependsOn = new Set(tables)
  let [groups, chars, count] = [0, 0, 0]
  /** The request of the group that goes on. */
  let request: string | null = null

  const isOther = ({ table, before, after }: Change): boolean =>
    dependsOn.has(table) && dependencies.some((one) => one.table === table && matters(one, before, after))

  function hold({ size }: Change): void {
    chars += size
    count += 1
  }

  return {
    /** Throws `TooMuchChanged` where more has changed than can be held. */
    add(changes: readonly Change[]): void {
      for (const change of changes) {
        const { table, id, instanceId, requestId } = change
        if (instanceId !== call.address.instanceId) continue
        const [isRow, isDependency] = [table === call.table.name, isOther(change)]
        if (isRow) {
          const steps = rows.get(id)
          if (steps) steps.push({ change, groupsBefore: groups })
          else rows.set(id, [{ change, groupsBefore: groups }])
          request = null
        }
        if (isDependency) {
          if (request !== requestId) groups += 1
          others.push({ change, group: groups - 1 })
          request = isRow ? null : requestId
        }
        if (isRow || isDependency) hold(change)
      }
      if (chars > gatheredCharsMax || count > gatheredChangesMax) throw new TooMuchChanged('Too much has changed')
    },
    to: (to: Place): Gathered => ({ from, to, rows, others }),
  }
}

export function gather(sight: Sight, { from, to, changes }: Span): Gathered {
  const gathering = createGathering(sight, from)
  gathering.add(changes)
  return gathering.to(to)
}
