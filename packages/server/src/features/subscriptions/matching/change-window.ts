/**
 * Collects the changes between two positions that matter to one subscription: those of its own rows, and those of rows
 * that its rule reads. `reconcile` turns them into events.
 */
import { dependencyGroupsMax, gatheredChangesMax, gatheredCharsMax } from '../../../limits/subscriptions.ts'
import type { Change, LogPosition, Span } from '../change-feed.ts'
import { TooManyChanges } from './classifier.ts'
import { affectsExists } from './shared-queries.ts'
import type { SubscriptionQuery } from './subscription-query.ts'

/** A change of a row, and the number of groups of changes of other tables before it. */
interface RowChange {
  readonly change: Change
  readonly groupsBefore: number
}

/** A change of a row of another table, and the group it is in. */
interface DependencyChange {
  readonly change: Change
  readonly group: number
}

export interface ChangeWindow {
  readonly from: LogPosition
  readonly to: LogPosition
  /** Changes of the subscription's rows, by id in order of the first. */
  readonly rows: ReadonlyMap<string, readonly RowChange[]>
  /**
   * Changes of other tables that may change the result of the rule. Consecutive ones of one request are a group: the
   * groups depend on the log alone, so that a client that resumes gets the same ones.
   */
  readonly others: readonly DependencyChange[]
}

/** The changes of other tables, one group for each state of the condition. Throws `TooManyChanges`. */
export function groupsOf({ others }: ChangeWindow): readonly (readonly Change[])[] {
  if ((others.at(-1)?.group ?? 0) >= dependencyGroupsMax)
    throw new TooManyChanges('Too many requests have changed what the rule reads')
  const groups: Change[][] = []
  for (const { change, group } of others) {
    const found = groups[group]
    if (found) found.push(change)
    else groups[group] = [change]
  }
  return groups
}

/** Takes changes page by page, in order. */
export function createWindowCollector({ call, tables, dependencies }: SubscriptionQuery, from: LogPosition) {
  const rows = new Map<string, RowChange[]>()
  const others: DependencyChange[] = []
  const dependsOn = new Set(tables)
  let [groups, chars, count] = [0, 0, 0]
  /** The request of the group that may continue. */
  let request: string | null = null

  const isRelevant = ({ table, before, after }: Change): boolean =>
    dependsOn.has(table) && dependencies.some((one) => one.table === table && affectsExists(one, before, after))

  return {
    /** Throws `TooManyChanges` where more has changed than one reconciliation may keep in memory. */
    add(changes: readonly Change[]): void {
      for (const change of changes) {
        const { table, id, instanceId, requestId, size } = change
        if (instanceId !== call.address.instanceId) continue
        const [isRow, isDependency] = [table === call.table.name, isRelevant(change)]
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
        if (isRow || isDependency) [chars, count] = [chars + size, count + 1]
      }
      if (chars > gatheredCharsMax || count > gatheredChangesMax) throw new TooManyChanges('Too many changes at once')
    },
    upTo: (to: LogPosition): ChangeWindow => ({ from, to, rows, others }),
  }
}

/** The window of one page of the log. Throws `TooManyChanges`. */
export function windowOf(query: SubscriptionQuery, { from, to, changes }: Span): ChangeWindow {
  const collector = createWindowCollector(query, from)
  collector.add(changes)
  return collector.upTo(to)
}
