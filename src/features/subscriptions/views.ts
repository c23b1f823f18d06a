/**
 * Views: what distinct subscriptions show. Everybody who watches one channel through the same condition shares a view,
 * so a change is judged and written down once for all of them. Finding the views a change concerns, and judging it,
 * is done here; sending is `delivery`'s matter.
 */
import type { Log } from '../../base/log.ts'
import { sql } from '../../engines/sql-text.ts'
import type { Expr } from '../../query/expr.ts'
import { createExprIndex, type ExprIndex } from '../../query/expr-index.ts'
import { settle } from '../../query/matches.ts'
import type { Table } from '../../query/table.ts'
import type { Change, Row, TableCall } from './feed.ts'

export type ChangeType = 'added' | 'modified' | 'removed'

/** What one distinct subscription shows. */
export interface Sight {
  readonly channel: string
  /** Of whoever came first; nothing in it that is said of its caller is used. */
  readonly call: TableCall
  /** Document, filters and rule together. */
  readonly condition: Expr
}

/** A sight, and who has it. `Member` is one socket's part in it. */
export interface View<Member> extends Sight {
  readonly key: string
  /** What its sockets listen to. */
  readonly topic: string
  readonly members: Set<Member>
}

export interface Views<Member> {
  /** The view of a sight, made if nobody has it yet. It goes with its last member. */
  get(sight: Sight): View<Member>
  drop(view: View<Member>): void
  /** The views that see something of a change, and what it is to each, in no particular order. */
  concerned(change: Change): Concerned<Member> | Promise<Concerned<Member>>
  /** What a change is to one sight. */
  judge(sight: Sight, change: Change): ChangeType | null | Promise<ChangeType | null>
  readonly size: number
}

export type Concerned<Member> = readonly (readonly [View<Member>, ChangeType])[]

/** Topics are the process's own, and never come back. */
let topics = 0

/** Tables by the configuration they are of: after a change of it, views are new ones. */
const tableNumbers = new WeakMap<Table, number>()
let tables = 0

function numberOf(table: Table): number {
  const found = tableNumbers.get(table) ?? ++tables
  tableNumbers.set(table, found)
  return found
}

/** Two sights of the same key show the same. */
export const sightKey = ({ channel, call, condition }: Sight): string =>
  JSON.stringify([numberOf(call.table), channel, condition])

/** What a change is to somebody who saw the row before, or sees it after. Null: nothing. */
function transition(before: boolean, after: boolean): ChangeType | null {
  if (after) return before ? 'modified' : 'added'
  return before ? 'removed' : null
}

const nobody: Concerned<never> = []

export function createViews<Member>(log: Log): Views<Member> {
  const views = new Map<string, View<Member>>()
  /** By table, which of an instance or none. */
  const indexes = new Map<string, ExprIndex<View<Member>>>()

  const tableKey = (table: string, instanceId: string | null): string => `${instanceId ?? ''}\n${table}`

  const indexOf = ({ table, address }: TableCall): string => tableKey(table.name, address.instanceId)

  /** Asks the database only for what the row does not decide. A failure hides the row and harms no other view. */
  async function ask({ call, channel }: Sight, settled: Expr): Promise<boolean> {
    try {
      const condition = call.backEnd.condition(settled, call.table)
      return (await call.database.all(sql`SELECT 1 AS yes WHERE ${condition}`)).length > 0
    } catch (error) {
      log.error('A view could not be judged and was told nothing', { channel, error })
      return false
    }
  }

  const settled = ({ condition }: Sight, row: Row | null): Expr | boolean => {
    if (!row) return false
    const left = settle(condition, row)
    return left.kind === 'const' ? left.value : left
  }

  /** What is asked of both rows in the same words is asked once. */
  async function askBoth(sight: Sight, saw: Expr | boolean, sees: Expr | boolean): Promise<ChangeType | null> {
    const before = typeof saw === 'boolean' ? saw : ask(sight, saw)
    const isSame = typeof saw !== 'boolean' && JSON.stringify(saw) === JSON.stringify(sees)
    const after = typeof sees === 'boolean' ? sees : isSame ? before : ask(sight, sees)
    return transition(await before, await after)
  }

  function judge(sight: Sight, { before, after }: Change): ChangeType | null | Promise<ChangeType | null> {
    const [saw, sees] = [settled(sight, before), settled(sight, after)]
    if (typeof saw === 'boolean' && typeof sees === 'boolean') return transition(saw, sees)
    return askBoth(sight, saw, sees)
  }

  async function awaitAll(
    asked: readonly (readonly [View<Member>, Promise<ChangeType | null>])[],
    known: [View<Member>, ChangeType][],
  ): Promise<Concerned<Member>> {
    for (const [view, judged] of asked) {
      const type = await judged
      if (type) known.push([view, type])
    }
    return known
  }

  return {
    get size() {
      return views.size
    },
    get(sight) {
      const key = sightKey(sight)
      const found = views.get(key)
      if (found) return found
      const { channel, call, condition } = sight
      const view = { key, topic: `view ${++topics}`, channel, call, condition, members: new Set<Member>() }
      views.set(key, view)
      const at = indexOf(call)
      const index = indexes.get(at) ?? createExprIndex<View<Member>>()
      indexes.set(at, index)
      index.add(condition, view)
      return view
    },
    drop(view) {
      if (view.members.size > 0 || views.get(view.key) !== view) return
      views.delete(view.key)
      const at = indexOf(view.call)
      const index = indexes.get(at)
      index?.remove(view.condition, view)
      if (index?.size === 0) indexes.delete(at)
    },
    concerned(change) {
      const index = indexes.get(tableKey(change.table, change.instanceId))
      if (!index) return nobody
      const candidates = new Set<View<Member>>()
      const { before, after } = change
      if (before) index.candidates(before, candidates)
      if (after) index.candidates(after, candidates)
      const known: [View<Member>, ChangeType][] = []
      const asked: [View<Member>, Promise<ChangeType | null>][] = []
      for (const view of candidates) {
        const judged = judge(view, change)
        if (judged instanceof Promise) asked.push([view, judged])
        else if (judged) known.push([view, judged])
      }
      // Most views are decided by the row alone: waiting is for those that are not.
      return asked.length > 0 ? awaitAll(asked, known) : known
    },
    judge(sight, change) {
      const isOfTable = tableKey(change.table, change.instanceId) === indexOf(sight.call)
      return isOfTable ? judge(sight, change) : null
    },
  }
}
