/**
 * Views: sockets that watch one channel through the same condition share one, so a change is judged and serialized once
 * for all of them. Finds the views that a change concerns, by the row itself or by a table that their rule depends on.
 */
import type { Dependency } from '../../query/dependencies.ts'
import { createExprIndex, type ExprIndex } from '../../query/expr-index.ts'
import { asksOtherTables } from '../../query/matches.ts'
import type { Change, Row, TableCall } from './feed.ts'
import { type At, type ChangeType, type Judge, TooMuchChanged } from './judge.ts'
import { type Sight, sightKey } from './sight.ts'

/** A sight and the sockets that have it. `Member` is one socket's part in it. */
export interface View<Member> extends Sight {
  readonly key: string
  /** What its sockets listen to. */
  readonly topic: string
  readonly members: Set<Member>
}

/** What a change is to a view; `lost` where that could not be found out. */
export type Verdict = ChangeType | 'lost'

export type Concerned<Member> = readonly (readonly [View<Member>, Verdict])[]

export interface Views<Member> {
  /** The view of a sight, made by its first member; it goes with its last. */
  get(sight: Sight): View<Member>
  drop(view: View<Member>): void
  /** The views that see something of a change, in no particular order. `skipped` are not judged. */
  concerned(change: Change, at: At, skipped: ReadonlySet<View<Member>>): Concerned<Member> | Promise<Concerned<Member>>
  /** The views whose condition may be decided differently for some rows after these changes of other tables. */
  dependents(changes: readonly Change[]): ReadonlySet<View<Member>>
  readonly size: number
}

/** Topics are the process's own, and never come back. */
let topics = 0

const none: Concerned<never> = []
const noViews: ReadonlySet<never> = new Set()

export const tableKey = (table: string, instanceId: string | null): string => `${instanceId ?? ''}\n${table}`

/** Whether a change of another table's row may change what an `exists` says of any row. */
export function matters({ where, concerns }: Dependency, before: Row | null, after: Row | null): boolean {
  const [was, is] = [before && concerns(before), after && concerns(after)]
  const isNothing = (one: typeof was): boolean => !one || (one.kind === 'const' && !one.value)
  if (isNothing(was) && isNothing(is)) return false
  // What a nested `exists` takes from the row is not in what it concerns.
  return asksOtherTables(where) || JSON.stringify(was) !== JSON.stringify(is)
}

/** Indexes of conditions by table. */
function createTableIndexes<Entry>() {
  const indexes = new Map<string, ExprIndex<Entry>>()
  return {
    get: (key: string) => indexes.get(key),
    open(key: string): ExprIndex<Entry> {
      const index = indexes.get(key) ?? createExprIndex<Entry>()
      indexes.set(key, index)
      return index
    },
    trim(key: string): void {
      if (indexes.get(key)?.size === 0) indexes.delete(key)
    },
    get isEmpty() {
      return indexes.size === 0
    },
  }
}

interface Dependent<Member> {
  readonly view: View<Member>
  readonly dependency: Dependency
}

export function createViews<Member>({ judge }: Judge): Views<Member> {
  const views = new Map<string, View<Member>>()
  const byTable = createTableIndexes<View<Member>>()
  const byDependency = createTableIndexes<Dependent<Member>>()
  const dependentsOf = new Map<View<Member>, readonly Dependent<Member>[]>()

  const keyOf = ({ table, address }: TableCall): string => tableKey(table.name, address.instanceId)
  const dependencyKey = ({ view, dependency }: Dependent<Member>): string =>
    tableKey(dependency.table, view.call.address.instanceId)

  async function awaitAll(
    asked: readonly (readonly [View<Member>, Promise<Verdict | null>])[],
    known: [View<Member>, Verdict][],
  ): Promise<Concerned<Member>> {
    for (const [view, judged] of asked) {
      const verdict = await judged
      if (verdict) known.push([view, verdict])
    }
    return known
  }

  const orLost = (error: unknown): 'lost' => {
    if (error instanceof TooMuchChanged) return 'lost'
    throw error
  }

  return {
    get size() {
      return views.size
    },
    get(sight) {
      const key = sightKey(sight)
      const found = views.get(key)
      if (found) return found
      const view: View<Member> = { ...sight, key, topic: `view ${++topics}`, members: new Set<Member>() }
      views.set(key, view)
      byTable.open(keyOf(view.call)).add(view.condition, view)
      if (view.dependencies.length === 0) return view
      const dependents = view.dependencies.map((dependency) => ({ view, dependency }))
      dependentsOf.set(view, dependents)
      for (const one of dependents) byDependency.open(dependencyKey(one)).add(one.dependency.where, one)
      return view
    },
    drop(view) {
      if (view.members.size > 0 || views.get(view.key) !== view) return
      views.delete(view.key)
      byTable.get(keyOf(view.call))?.remove(view.condition, view)
      byTable.trim(keyOf(view.call))
      for (const one of dependentsOf.get(view) ?? []) {
        byDependency.get(dependencyKey(one))?.remove(one.dependency.where, one)
        byDependency.trim(dependencyKey(one))
      }
      dependentsOf.delete(view)
    },
    concerned(change, at, skipped) {
      const index = byTable.get(tableKey(change.table, change.instanceId))
      if (!index) return none
      const candidates = new Set<View<Member>>()
      const { before, after } = change
      if (before) index.candidates(before, candidates)
      if (after) index.candidates(after, candidates)
      const known: [View<Member>, Verdict][] = []
      const asked: [View<Member>, Promise<Verdict | null>][] = []
      for (const view of candidates) {
        if (skipped.has(view)) continue
        const judged = judge(view, change, at)
        if (judged instanceof Promise) asked.push([view, judged.catch(orLost)])
        else if (judged) known.push([view, judged])
      }
      // Most views are decided by the row alone: waiting is for those that are not.
      return asked.length > 0 ? awaitAll(asked, known) : known
    },
    dependents(changes) {
      if (byDependency.isEmpty) return noViews
      const found = new Set<View<Member>>()
      for (const { table, instanceId, before, after } of changes) {
        const index = byDependency.get(tableKey(table, instanceId))
        if (!index) continue
        const candidates = new Set<Dependent<Member>>()
        if (before) index.candidates(before, candidates)
        if (after) index.candidates(after, candidates)
        for (const { view, dependency } of candidates)
          if (!found.has(view) && matters(dependency, before, after)) found.add(view)
      }
      return found
    },
  }
}
